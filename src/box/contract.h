#ifndef BOX_BOX_CONTRACT_H
#define BOX_BOX_CONTRACT_H

#include "base/argv.h"
#include "base/json.h"

#include <stdbool.h>

/* The contract of a box: what it may be made of, so that the walls are all that is between it and the rest. One function
 * compares; listings show, start refuses or warns, clone and import refuse or strip. */

/* Appends one line a deviation ("profile dev: only box-net may be there") to `ret_deviations`: none means that the
 * instance (the daemon's object, with its expanded configuration and devices) keeps the contract. Keys, devices and
 * profiles that nobody knows are deviations: what is allowed is listed, not what is forbidden. */
void contract_check(const json_t *instance, struct argv *ret_deviations);

/* True where an instance's configuration key with that value keeps the contract. `ret_why` (may be NULL) receives a
 * static text where it does not. */
bool contract_allows_key(const char *key, const char *value, const char **ret_why);

/* Likewise for a device of that name: an object of strings. The root disk and the NIC are judged by name, too. */
bool contract_allows_device(const char *name, const json_t *device, const char **ret_why);

/* How the name of a proxy device starts that is a door of box's own. */
#define CONTRACT_DOOR_PREFIX "door-"

#endif
