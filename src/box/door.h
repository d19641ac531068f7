#ifndef BOX_BOX_DOOR_H
#define BOX_BOX_DOOR_H

#include "base/error.h"
#include "box/box.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A door: a port of the host's loopback, 127.0.0.1 alone, behind which a server in a box answers. It is a proxy device of
 * Incus's, whose forwarder connects from within the box's own network: no route and no allow rule is needed, and no
 * network reaches it. It stays with the box: shut while that is down, gone with it. */
struct door {
    char *box;              /* owned */
    uint16_t port;          /* in the box */
    uint16_t host_port;     /* on 127.0.0.1 of the host */
    bool open;              /* the box runs */
};

/* The doors of all boxes (of one, where `box` is not NULL), by box and port: one request. The caller frees. */
int door_list(struct client *client, const char *box, struct door **ret_doors, size_t *ret_count, struct error *err);
void door_list_free(struct door *doors, size_t count);

/* Opens one into a running box. Where a server listens there on ::1 only, the door leads there, else to 127.0.0.1, and
 * a server may come later. ERR_EXISTS where the box has a door to that port, another box has that host port (it is
 * named), or anything on the host listens there; ERR_STATE for a VM, where Incus has no such forwarder. */
int door_open(struct client *client, const struct box *box, uint16_t port, uint16_t host_port, struct error *err);

/* Closes the door to that port of the box. ERR_NOT_FOUND where there is none. */
int door_close(struct client *client, const struct box *box, uint16_t port, struct error *err);

#endif
