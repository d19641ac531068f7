#ifndef BOX_INCUS_SERVER_H
#define BOX_INCUS_SERVER_H

#include "incus/client.h"

/* What the daemon says of itself: GET /1.0. */
struct server {
    char *version;          /* "6.0.4" */
    bool drives_containers; /* environment.driver names lxc */
    bool drives_vms;        /* environment.driver names qemu */
    bool trusted;           /* auth == "trusted": false where this user may not use the daemon */
};

int server_get(struct client *client, struct server *ret_server, struct error *err);
void server_reset(struct server *server);

/* The leases of a network: array of {hostname, hwaddr, address, type}. Match by hwaddr; a lease can be stale. */
int server_leases(struct client *client, const char *network, json_t **ret_array, struct error *err);

#endif
