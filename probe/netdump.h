#pragma once

#include "endpoint.h"
#include "outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's links, addresses and routes, as rtnetlink tells them in one go. */
enum { NETDUMP_LINKS = 64, NETDUMP_ADDRESSES = 256, NETDUMP_ROUTES = 256, NETDUMP_NAME = 16 };

struct netdump_link {
    unsigned index;
    char name[NETDUMP_NAME];
    uint8_t mac[6];
    bool has_mac;
    bool up;
    bool carrier;
    bool loopback;
    unsigned mtu;
};

struct netdump_address {
    unsigned index;
    struct endpoint address;
    uint8_t prefix;
};

struct netdump_route {
    struct endpoint destination; /* family is always set; all zero for the default route */
    uint8_t prefix;
    struct endpoint gateway; /* family 0: none */
    struct endpoint source;  /* preferred source; family 0: none */
    unsigned index;
    uint32_t table;
    uint32_t metric;
    uint8_t type; /* RTN_*: 1 unicast, 6 blackhole, 7 unreachable, 8 prohibit */
};

struct netdump {
    struct netdump_link links[NETDUMP_LINKS];
    size_t link_count;
    struct netdump_address addresses[NETDUMP_ADDRESSES];
    size_t address_count;
    struct netdump_route routes[NETDUMP_ROUTES];
    size_t route_count;
    bool left_out; /* more than the ceilings allow */
};

/* Local, broadcast and cached routes are not listed. */
int netdump_read(struct netdump *ret_dump, struct outcome *outcome);

const struct netdump_link *netdump_link_named(const struct netdump *dump, const char *name);
const struct netdump_link *netdump_link_at(const struct netdump *dump, unsigned index);
/* The link of the default IPv4 route, else the first that is up, has a MAC and is no loopback; NULL if there is none.
 */
const struct netdump_link *netdump_main_link(const struct netdump *dump);
/* The default IPv4 route over this link, or NULL. */
const struct netdump_route *netdump_default_route(const struct netdump *dump, unsigned index);
/* The first address of the family on the link, or NULL. */
const struct netdump_address *netdump_address_on(const struct netdump *dump, unsigned index, int family);
bool netdump_is_own_address(const struct netdump *dump, const struct endpoint *address);
