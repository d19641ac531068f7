#ifndef BOX_INCUS_HTTPWATCH_H
#define BOX_INCUS_HTTPWATCH_H

#include "base/error.h"
#include "incus/http.h"

#include <stdbool.h>
#include <stdint.h>

/* The patience of one exchange: its budget, the silence that it bears, who is told how far it is, and Ctrl-C. */
struct httpwatch {
    const struct http_patience *patience;
    bool act; /* has no long body, and changes something: its answer is waited for even after a Ctrl-C, 10 s */
    int64_t start, last_byte, next_tick;
    int64_t grace; /* the end of those; 0: no Ctrl-C came */
    int64_t seen;  /* bytes that had moved by `last_byte` */
};

struct httpwatch httpwatch_make(const struct http_patience *patience, bool act);

/* What to poll for a Ctrl-C, or -1. */
int httpwatch_cancel_fd(const struct httpwatch *watch);

/* Milliseconds until httpwatch_look() has something to do; -1: never. */
int httpwatch_timeout(const struct httpwatch *watch);

/* What has moved: bytes of streams, and of them all; and bytes of an answer that is kept. */
struct httpwatch_motion {
    int64_t streamed, total, kept;
    bool answered; /* the daemon has ever said something */
    const char *socket_path;
};

/* After a step: ticks and tells, and fails with ERR_INTERRUPTED, with ERR_TIMEOUT or, with nothing ever answered,
 * ERR_NO_DAEMON where patience is at its end. */
int httpwatch_look(struct httpwatch *watch, const struct httpwatch_motion *motion, struct error *err);

#endif
