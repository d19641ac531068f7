#pragma once

#include "answer.h"
#include "request.h"
#include "wire.h"

/* An IP packet as the flags of `raw` and `spoof` describe it, every field of which may be a lie. */
#define CRAFT_FLAGS                                                                                                    \
    {"--source", "ADDRESS", "source address (this machine's own, for the destination)"},                               \
        {"--source-port", "PORT", "source port (a fresh one)"}, {"--tcp-flags", "LETTERS", "of S A R F P (S)"},        \
        {"--sequence", "N", "TCP sequence number (random)"}, {"--acknowledge", "N", "TCP acknowledgement number (0)"}, \
        {"--icmp-type", "N", "ICMP type (echo request)"}, {"--icmp-code", "N", "ICMP code (0)"},                       \
        {"--ttl", "N", "time to live (64)"}, {"--fragment", "BYTES", "send in fragments of BYTES, a multiple of 8"},   \
        {"--ip-options", "HEX", "IPv4 options as bytes"},                                                              \
        {"--source-route", "A[,B]", "IPv4 loose source route over these addresses"},                                   \
        {"--strict", NULL, "make it a strict one"},                                                                    \
        {"--payload", "TEXT", "before the token (escapes: \\r \\n \\xNN)"},                                            \
        {"--size", "N", "pad the payload to N bytes"},                                                                 \
    {                                                                                                                  \
        "--no-token", NULL, "leave the token out of the payload"                                                       \
    }

enum { CRAFT_PAYLOAD = 8192 };

struct craft {
    struct wire_ip ip;
    struct wire_tcp tcp;
    uint8_t icmp_type;
    uint8_t icmp_code;
    uint16_t source_port;
    uint16_t destination_port;
    uint8_t payload[CRAFT_PAYLOAD];
    size_t payload_size;
    size_t fragment_size; /* 0: whole */
};

/* "udp", "tcp", "icmp" or a protocol number. */
int craft_protocol(const char *text, int family, uint8_t *ret_protocol, struct outcome *outcome);
/* Reads the flags for a packet to `destination`. */
int craft_read(const struct request *request, const struct endpoint *destination, uint8_t protocol,
               uint16_t destination_port, struct craft *ret_craft, struct outcome *outcome);
/* The payload alone, from the same flags. */
int craft_payload(const struct request *request, uint8_t *bytes, size_t *ret_size, struct outcome *outcome);
/* Appends the packet (its piece number `piece`, where it is fragmented) to `frame`. False when there is no such piece.
 */
bool craft_put(const struct craft *craft, size_t piece, struct frame *frame);
/* What an answer to it would look like; `request` must outlive it. */
struct answer_expected craft_expected(const struct craft *craft, const struct request *request);
