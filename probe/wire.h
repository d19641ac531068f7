#pragma once

#include "endpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames as bytes: built header by header from the outside in, and taken apart again. Nothing here touches a socket. */
enum { WIRE_FRAME = 9216, WIRE_TAGS = 4, WIRE_OPTIONS = 40 };

struct frame {
    uint8_t data[WIRE_FRAME];
    size_t size;
    bool overflow; /* something did not fit; such a frame must not be sent */
};

struct wire_ether {
    uint8_t destination[6];
    uint8_t source[6];
    uint16_t tags[WIRE_TAGS];      /* VLAN identifiers, outermost first */
    uint16_t tag_types[WIRE_TAGS]; /* 0 means 0x8100 */
    size_t tag_count;
    uint16_t type; /* ethertype; below 0x600 it is a length (802.3) */
};

struct wire_ip {
    struct endpoint source;
    struct endpoint destination; /* the family of this one decides */
    uint8_t protocol;
    uint8_t ttl; /* 0 means 64 */
    uint8_t tos;
    uint16_t id;
    uint16_t fragment; /* IPv4's field as it is: flags in the top three bits, offset in units of 8 bytes */
    uint8_t options[WIRE_OPTIONS];
    size_t options_size; /* padded to a multiple of four */
};

struct wire_tcp {
    uint16_t source_port;
    uint16_t destination_port;
    uint32_t sequence;
    uint32_t acknowledgement;
    uint8_t flags; /* FIN 1, SYN 2, RST 4, PSH 8, ACK 16 */
    uint16_t window;
};

struct wire_arp {
    uint16_t operation; /* 1 request, 2 reply */
    uint8_t sender_mac[6];
    uint8_t sender_ip[4];
    uint8_t target_mac[6];
    uint8_t target_ip[4];
};

void wire_put(struct frame *frame, const void *data, size_t size);
void wire_put16(struct frame *frame, uint16_t number);
void wire_put_ether(struct frame *frame, const struct wire_ether *ether);
void wire_put_arp(struct frame *frame, const struct wire_arp *arp);
/* The IP header for `payload_size` bytes that follow. */
void wire_put_ip(struct frame *frame, const struct wire_ip *ip, size_t payload_size);

/* Segments: each is appended whole, with its checksum over the pseudo header of `ip`. */
void wire_put_udp(struct frame *frame, const struct wire_ip *ip, uint16_t source_port, uint16_t destination_port,
                  const void *payload, size_t size);
void wire_put_tcp(struct frame *frame, const struct wire_ip *ip, const struct wire_tcp *tcp, const void *payload,
                  size_t size);
/* ICMP or ICMPv6, by the family of `ip`; `rest` is the second word of the header. */
void wire_put_icmp(struct frame *frame, const struct wire_ip *ip, uint8_t type, uint8_t code, uint32_t rest,
                   const void *payload, size_t size);

/* RFC 1071, over `size` bytes, continuing from `sum` (0 to begin); in host order, already complemented. */
uint16_t wire_checksum(const void *data, size_t size, uint32_t sum);
/* The sum (not complemented) of the pseudo header. */
uint32_t wire_pseudo_sum(const struct wire_ip *ip, uint8_t protocol, size_t size);
