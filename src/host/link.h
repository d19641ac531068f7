#ifndef BOX_HOST_LINK_H
#define BOX_HOST_LINK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Network interfaces, bridges and bridge ports as the kernel has them. */
struct link {
    int index;
    uint32_t mtu;
    int master;    /* index of the bridge (or bond) it belongs to, 0: none */
    char name[16]; /* IFNAMSIZ */
    char kind[16]; /* "bridge", "veth", ... or "" */
    uint8_t mac[6];
    bool up;
    bool carrier;
    bool peer_here;   /* of a veth: its other end lies in this namespace, not in a guest */
    bool bridge_port;     /* the following two hold for a port of a bridge */
    bool isolated;        /* frames to other isolated ports are dropped */
    bool learning;        /* source addresses enter the bridge's table */
    bool linklocal_learn; /* of a bridge: frames to reserved addresses enter the table */
};

/* All interfaces. The caller frees the array. */
int link_list(struct link **ret_links, size_t *ret_count, struct error *err);

/* The first of that name among `count`, or NULL. */
const struct link *link_find(const struct link *links, size_t count, const char *name);

/* Sets both flags of a bridge port. */
int link_set_port(int index, bool isolated, bool learning, struct error *err);

/* Removes an interface (of a veth, both ends). One that is gone already is success. */
int link_remove(int index, struct error *err);

/* Keeps frames to the reserved group addresses from writing a bridge's table. */
int link_stop_linklocal_learning(int index, struct error *err);

/* Binds a MAC to a port of its bridge: static (never ages) and sticky (never moves to another port). */
int link_pin_mac(int port, const uint8_t mac[6], struct error *err);

/* "00:16:3e:0a:0b:0c"; `ret_text` has room for 18 bytes. */
void link_format_mac(const uint8_t mac[6], char ret_text[18]);

/* False, leaving ret_mac alone, where the text is no MAC. */
bool link_parse_mac(const char *text, uint8_t ret_mac[6]);

#endif
