#pragma once

#include "wire.h"

/* A frame taken apart. Pointers reach into the bytes that were given. */
struct dissected {
    uint8_t destination_mac[6];
    uint8_t source_mac[6];
    uint16_t tags[WIRE_TAGS];
    size_t tag_count;
    uint16_t type; /* after the tags */

    bool has_ip;
    struct endpoint source; /* with ports, where the protocol has them */
    struct endpoint destination;
    uint8_t protocol;
    uint16_t fragment_offset; /* bytes; the ports are only there when it is 0 */
    size_t ip_options_size;

    bool has_icmp;
    uint8_t icmp_type;
    uint8_t icmp_code;
    uint32_t icmp_rest;

    bool has_tcp;
    uint8_t tcp_flags;
    uint32_t tcp_sequence;
    uint32_t tcp_acknowledgement;

    bool has_arp;
    struct wire_arp arp;

    const uint8_t *payload; /* of the innermost header that was understood */
    size_t payload_size;
};

/* False when not even the Ethernet header is there; a header that is cut short leaves its has_* false. */
bool dissect_frame(const uint8_t *data, size_t size, struct dissected *ret_dissected);
/* The same from the IP header on. */
bool dissect_ip(const uint8_t *data, size_t size, struct dissected *ret_dissected);
/* The packet that an ICMP error quotes; false when `dissected` is no ICMP error or quotes too little. */
bool dissect_quoted(const struct dissected *dissected, struct dissected *ret_quoted);
/* True when the `size` bytes of `needle` occur in the `length` bytes of `data`. */
bool dissect_contains(const void *data, size_t length, const void *needle, size_t size);
