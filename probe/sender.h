#pragma once

#include "ether.h"
#include "request.h"

/* Carries forged IP packets out: through the stack's routing (a raw socket with its own header), or, with --to-mac, as
 * frames to a MAC of the caller's choice. */
#define SENDER_FLAGS                                                                                                   \
    {"--to-mac", "MAC", "send as a frame to this MAC, past the routing of this machine"},                              \
    {                                                                                                                  \
        "--interface", "NAME", "the interface (that of the default route)"                                             \
    }

struct sender {
    int fd; /* raw socket; -1 when frames are sent */
    struct ether ether;
    uint8_t to_mac[6];
};

#define CLEANUP_SENDER __attribute__((cleanup(sender_close)))
#define SENDER_CLOSED                                                                                                  \
    {                                                                                                                  \
        .fd = -1, .ether = {.fd = -1 }                                                                                 \
    }
void sender_close(struct sender *sender);
/* The packet socket is open in either case, to hear answers. */
int sender_open(const struct request *request, int family, struct sender *ret_sender, struct outcome *outcome);
/* Sends one IP packet, header included. */
int sender_send(const struct sender *sender, const struct frame *packet, const struct endpoint *destination,
                struct outcome *outcome);
