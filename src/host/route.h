#ifndef BOX_HOST_ROUTE_H
#define BOX_HOST_ROUTE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* IPv4 addresses, routes of every table, and policy rules. Addresses are in host byte order. */
struct route_address {
    int link;
    uint32_t address;
    unsigned prefix;
};

struct route_entry {
    uint32_t table; /* 254 main, 255 local */
    uint32_t destination;
    unsigned prefix;  /* 0 with destination 0: a default route */
    uint8_t type;     /* RTN_UNICAST, RTN_LOCAL, ... */
    int link;         /* output interface, 0: none */
    uint32_t gateway; /* 0: none */
};

struct route_rule {
    uint32_t table;
    uint32_t priority;
    uint32_t source, destination; /* with prefix 0: any */
    unsigned source_prefix, destination_prefix;
};

/* Each lists everything that the kernel has; a route of several next hops gives one entry for each. The caller frees.
 */
int route_addresses(struct route_address **ret_addresses, size_t *ret_count, struct error *err);
int route_entries(struct route_entry **ret_entries, size_t *ret_count, struct error *err);
int route_rules(struct route_rule **ret_rules, size_t *ret_count, struct error *err);

#endif
