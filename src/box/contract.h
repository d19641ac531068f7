#ifndef BOX_BOX_CONTRACT_H
#define BOX_BOX_CONTRACT_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

/* The placement contract of a box, in one function: the tag; the profile box-net alone; exactly one NIC, the profile's,
 * on boxnet with its filters on; no path of the host mounted; no device of the host passed on; no raw.*, privileged or
 * otherwise loosening key. Doors (proxies from the host's loopback, devices "door-...") are part of it. */
enum contract_kind {
    CONTRACT_TAG,
    CONTRACT_PROFILES,
    CONTRACT_CONFIG, /* `key` is the configuration key */
    CONTRACT_DEVICE, /* `key` is the device */
};

/* One way in which an instance is off it. */
struct contract_deviation {
    enum contract_kind kind;
    char *key;  /* owned; NULL for the tag and the profiles */
    char *text; /* owned; "the device data mounts /srv of the host": one line, may quote an artifact */
};

#define CONTRACT_DOOR_PREFIX "door-"

/* Compares the daemon's object (expanded_config and expanded_devices are judged where they are there, else config and
 * devices, as in the index of an artifact). `ret_deviations` is NULL with count 0 where it holds. Never fails: what
 * cannot be understood is a deviation. */
void contract_check(const json_t *instance, struct contract_deviation **ret_deviations, size_t *ret_count);
void contract_free(struct contract_deviation *deviations, size_t count);

/* True where there is none. */
bool contract_holds(const json_t *instance);

/* ERR_CONTRACT naming the box and its deviations, with the remedy. */
int contract_require(const json_t *instance, const char *name, struct error *err);

#endif
