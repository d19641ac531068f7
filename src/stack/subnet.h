#ifndef BOX_STACK_SUBNET_H
#define BOX_STACK_SUBNET_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* IPv4 subnets, and the choice of the one that boxnet gets. Addresses are in host byte order. */
struct subnet {
    uint32_t base; /* host bits are zero */
    unsigned prefix;
};

/* A range that something on this host already uses, and what that is, for the message. */
struct subnet_claim {
    struct subnet subnet;
    char owner[64]; /* "address 10.88.0.1 on eth0" */
};

/* "10.88.0.0/24", strictly: four numbers, a prefix of 0 to 32, no host bits. False, leaving *ret_subnet alone, else. */
bool subnet_parse(const char *text, struct subnet *ret_subnet);
/* "10.88.0.1". */
bool subnet_parse_address(const char *text, uint32_t *ret_address);

/* The subnet around an address. */
struct subnet subnet_around(uint32_t address, unsigned prefix);
bool subnet_equal(struct subnet a, struct subnet b);
bool subnet_overlap(struct subnet a, struct subnet b);
bool subnet_contains(struct subnet subnet, uint32_t address);
/* False for every address of IANA's special-purpose ranges: private, link-local, shared, reserved ones. */
bool subnet_is_public(uint32_t address);
uint32_t subnet_gateway(struct subnet subnet);   /* the first host address */
uint32_t subnet_broadcast(struct subnet subnet); /* the last address */

/* Room for "255.255.255.255/32" and for a bare address. */
#define SUBNET_TEXT 20
void subnet_format(struct subnet subnet, char ret_text[SUBNET_TEXT]);
void subnet_format_address(uint32_t address, char ret_text[SUBNET_TEXT]);

/* The first of 10.88.0.0/24 to 10.127.0.0/24 (second number counted up) that no claim overlaps; ERR_STATE when all are
 * taken. */
int subnet_pick(const struct subnet_claim *claims, size_t count, struct subnet *ret_subnet, struct error *err);

/* Whether a pinned subnet (BOX_SUBNET) may be used: a private /16 to /28 that no claim overlaps. ERR_USAGE, naming what
 * is wrong with it or who holds it. */
int subnet_check_pin(const char *text, const struct subnet_claim *claims, size_t count, struct subnet *ret_subnet,
                     struct error *err);

/* Every range in use on this host: addresses, routes of every table but defaults, policy rules. What belongs to the
 * interface named `except` (may be NULL) does not count. The caller frees. */
int subnet_claims(const char *except, struct subnet_claim **ret_claims, size_t *ret_count, struct error *err);

#endif
