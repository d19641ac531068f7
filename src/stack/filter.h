#ifndef BOX_STACK_FILTER_H
#define BOX_STACK_FILTER_H

#include "base/json.h"
#include "host/nft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The filters that Incus lays for a NIC with security.mac_filtering and security.ipv4_filtering, as the kernel has them
 * (table bridge incus). They are the first to know a port's MAC and address: they stand before the port joins the
 * bridge. */
struct filter {
    char interface[16];
    bool has_mac, has_address;
    uint8_t mac[6];
    uint32_t address;
    bool mac_live;     /* frames with another source MAC are dropped on the way in and across */
    bool address_live; /* and so are packets and ARP with another source address */
};

/* Reads them all; a missing table is no filters. The caller frees the array. */
int filter_read(struct nft *nft, struct filter **ret_filters, size_t *ret_count, struct error *err);

/* The pure part: from the array that nft_query() gives. */
void filter_parse(const json_t *listing, struct filter **ret_filters, size_t *ret_count);

const struct filter *filter_find(const struct filter *filters, size_t count, const char *interface);

#endif
