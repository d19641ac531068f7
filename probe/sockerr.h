#pragma once

#include "endpoint.h"
#include "outcome.h"

#include <stdbool.h>
#include <stdint.h>

/* An error that a stack reported on a socket: this machine's own, or one on the way, by ICMP. */
struct sockerr {
    int errno_value;
    bool by_icmp; /* else the own stack made it, without any packet */
    uint8_t type;
    uint8_t code;
    uint32_t info;               /* the MTU, for "too big" */
    struct endpoint from;        /* who sent the ICMP error; family 0: unknown */
    struct endpoint destination; /* of the packet that it is about; family 0: unknown */
};

/* Asks the kernel to keep such errors with their sender. */
void sockerr_enable(int fd, int family);
/* Takes the oldest one; false when there is none. */
bool sockerr_take(int fd, struct sockerr *ret_error);
/* Says the verdict for a socket call that failed with `errno_value`: takes what the kernel kept about it, writes it
 * into the evidence, and tells a refusal by the destination from an error by anyone else. 0, or -1 for an errno that
 * says nothing about the network. */
int sockerr_judge(int fd, int errno_value, const struct endpoint *destination, struct outcome *outcome);
/* The same for an error that was taken already. */
int sockerr_say(int fd, const struct sockerr *error, const struct endpoint *destination, struct outcome *outcome);
