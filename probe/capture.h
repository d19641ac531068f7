#pragma once

#include "dissect.h"
#include "outcome.h"

/* Counts IP packets that were meant for an address that is not ours: what an attack on the switch has won. */
enum { CAPTURE_SHOWN = 6 };

struct capture {
    struct endpoint address;
    int64_t packets;
    int64_t icmp;
    int64_t udp;
    int64_t tcp;
    struct {
        struct endpoint source;
        struct endpoint destination;
        uint8_t protocol;
    } shown[CAPTURE_SHOWN];
    size_t shown_count;
};

void capture_take(struct capture *capture, const struct dissected *packet);
/* Writes the object "captured". */
void capture_write(const struct capture *capture, struct jsonline *line);
