#ifndef BOX_BOX_BOX_H
#define BOX_BOX_BOX_H

#include "base/json.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* A box as the daemon knows it. Everything is owned; texts are NULL where the box does not say. */
struct box {
    char *name;
    char *status;        /* Incus's word: "Running", "Stopped", "Frozen", "Error", ... */
    bool running;
    bool vm;
    char *user;          /* that exec and shell land in; NULL: root */
    int64_t uid, gid;    /* of that user in the guest as the mint found them; -1 where unknown */
    char *home;          /* likewise; NULL where unknown */
    char *template_name;
    char *state;         /* TAG_STATE_... on an incomplete box, else NULL */
    char *reason;        /* why it is incomplete */
    int64_t created;     /* seconds since the epoch; 0 where unknown */
    char *hwaddr;        /* MAC of its NIC */
    char *ipv4;          /* its leased address on the boxes' network while it runs (box_list, box_find_address) */
    json_t *instance;    /* the daemon's own object: config, devices, expanded_config, expanded_devices */
};

/* The box of that name: one request. A name that breaks the rule is ERR_USAGE before any request; an instance
 * without the tag, and none at all, are both ERR_NOT_FOUND "no such box". */
int box_find(struct client *client, const char *name, struct box **ret_box, struct error *err);

/* All boxes, sorted by name, addresses filled in: at most two requests. Never fails because one of them is being
 * deleted meanwhile, nor because the boxes' network is missing. `ret_boxes` is an array of `ret_count` boxes, NULL
 * where there are none. */
int box_list(struct client *client, struct box ***ret_boxes, size_t *ret_count, struct error *err);

/* Fills in `ipv4` from the leases: one request. Leaves NULL where there is none. */
int box_find_address(struct client *client, struct box *box, struct error *err);

/* From the daemon's object (borrowed; a reference is kept). */
struct box *box_from_instance(json_t *instance);

void box_free(struct box *box);
DEFINE_CLEANUP(struct box *, box_free)
void box_list_free(struct box **boxes, size_t count);

#endif
