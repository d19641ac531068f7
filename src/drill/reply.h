#ifndef BOX_DRILL_REPLY_H
#define BOX_DRILL_REPLY_H

#include "base/error.h"
#include "base/json.h"

#include <stddef.h>

/* What the instrument says: one line of JSON. A guest may have written it, so it is read under ceilings and nothing of
 * it is believed but its shape. */
enum reply_verdict {
    REPLY_ERROR = 0, /* the instrument could not do what it was asked */
    REPLY_REACHABLE, /* somebody answered */
    REPLY_REFUSED,   /* the far end said no: the packet arrived */
    REPLY_DROPPED,   /* silence */
    REPLY_UNREACHABLE, /* a stack on the way, or the sender's own, said that there is no way */
    REPLY_DONE,      /* sent one way, or facts were read: no statement about the network */
};

/* Most bytes of one reply that are looked at. */
#define REPLY_CEILING (256 * 1024 + 1)

struct reply {
    enum reply_verdict verdict;
    int errnum;
    double ms;
    char *probe;      /* the subcommand that answered */
    char *why;        /* with REPLY_ERROR; NULL otherwise */
    json_t *evidence; /* an object, never NULL */
};

/* Reads the last line of what a run of the instrument wrote. ERR_PROTOCOL for anything that is not exactly such a
 * line: an unknown verdict word, a missing key, another type, too long, more than one object. */
int reply_parse(const char *data, size_t length, struct reply *ret_reply, struct error *err);

const char *reply_verdict_name(enum reply_verdict verdict);

/* The whole of it as JSON, for the report. The caller owns the value. */
json_t *reply_to_json(const struct reply *reply);

void reply_reset(struct reply *reply);

#endif
