#pragma once

#include "endpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DHCPv4 messages (RFC 2131) as bytes. Addresses are four bytes in network order. */
enum { DHCPWIRE_MESSAGE = 576, DHCPWIRE_CLIENT_ID = 64, DHCPWIRE_TEXT = 128, DHCPWIRE_SERVERS = 4 };

enum dhcpwire_type {
    DHCPWIRE_DISCOVER = 1,
    DHCPWIRE_OFFER = 2,
    DHCPWIRE_REQUEST = 3,
    DHCPWIRE_DECLINE = 4,
    DHCPWIRE_ACK = 5,
    DHCPWIRE_NAK = 6,
    DHCPWIRE_RELEASE = 7,
    DHCPWIRE_INFORM = 8,
};

struct dhcpwire {
    bool reply; /* a server's message */
    uint8_t type;
    uint32_t transaction;
    bool broadcast;
    uint8_t mac[6];
    uint8_t client[4]; /* ciaddr */
    uint8_t yours[4];  /* yiaddr */
    bool has_requested;
    uint8_t requested[4];
    bool has_server;
    uint8_t server[4]; /* server identifier */
    bool has_router;
    uint8_t router[4];
    bool has_mask;
    uint8_t mask[4];
    uint8_t name_servers[DHCPWIRE_SERVERS][4];
    size_t name_server_count;
    uint32_t lease_seconds; /* 0: not given */
    uint8_t client_id[DHCPWIRE_CLIENT_ID];
    size_t client_id_size;
    char host_name[DHCPWIRE_TEXT];
    char domain[DHCPWIRE_TEXT];
};

/* Writes a message into `bytes` (DHCPWIRE_MESSAGE of them); returns its size. */
size_t dhcpwire_write(const struct dhcpwire *message, uint8_t *bytes);
/* False for what is no DHCP message; options that are malformed end the reading, what came before them stands. */
bool dhcpwire_read(const uint8_t *bytes, size_t size, struct dhcpwire *ret_message);
