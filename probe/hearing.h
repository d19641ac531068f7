#pragma once

#include "request.h"

#include <poll.h>

/* What a listener has heard, counted and kept as far as it is worth showing, and when it has heard enough. */
enum { HEARING_SHOWN = 24 };

struct hearing {
    const struct request *request;
    struct jsonline events; /* owned */
    int64_t heard;
    int64_t matched;
    int64_t first_us; /* of the first match, after the start; -1 */
    int64_t started_us;
    size_t shown;
    uint64_t want; /* matches that end it; 0: only the budget does */
    bool any;      /* no token was given: everything matches */
    bool has_from;
    struct endpoint from; /* only what this address sends is heard */
    bool stopped;         /* a signal asked for the end */
    int signals;
};

/* Flags for every kind of listener. */
#define HEARING_FLAGS                                                                                                  \
    {"--count", "N", "matches that end it (1; with --echo, the budget ends it; 0: the budget)"},                       \
    {                                                                                                                  \
        "--from", "ADDRESS", "hear only what comes from this address"                                                  \
    }

int hearing_begin(const struct request *request, struct hearing *ret_hearing, struct outcome *outcome);
void hearing_end(struct hearing *hearing);
/* Tells whoever started us, on stderr, that from now on nothing is missed: "ready KIND PORT". */
void hearing_ready(const char *kind, unsigned port);
bool hearing_over(const struct hearing *hearing);
/* poll(2) within the budget, over `fds` and a place for the signals at their end (count counts it). False when it is
 * over. */
bool hearing_wait(struct hearing *hearing, struct pollfd *fds, nfds_t count);
/* One thing heard: is it from the right address, does it carry the token? Counts it; true when it matched. When it is
 * to be shown, *ret_line is an open object for the caller's fields, to be closed with hearing_close; else it is NULL.
 */
bool hearing_take(struct hearing *hearing, const struct endpoint *from, const void *data, size_t size,
                  struct jsonline **ret_line);
void hearing_close(struct jsonline *line);
/* Writes the counts and the events, and the verdict: reachable when something matched, else dropped. */
void hearing_report(struct hearing *hearing, struct outcome *outcome);
