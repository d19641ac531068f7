#ifndef BOX_DRILL_VERDICT_H
#define BOX_DRILL_VERDICT_H

#include "drill/reply.h"

#include <stdbool.h>

/* What is known about a claim. Only HOLDS is a pass. */
enum verdict {
    VERDICT_NOT_JUDGED = 0, /* nothing can be said: the control failed, the baseline is broken, this host lacks something */
    VERDICT_HOLDS,
    VERDICT_BROKEN,
    VERDICT_SKIPPED, /* the caller asked for other claims */
};

/* "HOLDS", "BROKEN", "NOT JUDGED", "SKIPPED". */
const char *verdict_name(enum verdict verdict);

/* The verdict of that name, or VERDICT_NOT_JUDGED for any other text: what cannot be read is no pass. */
enum verdict verdict_from_name(const char *name);

/* What a claim says about its attack. */
enum expectation {
    EXPECT_SILENCE,   /* no packet of it arrives: neither an answer, nor a refusal, nor a listener that saw it */
    EXPECT_REACHABLE, /* it gets an answer */
    EXPECT_NAMELESS,  /* a name has no address: a server that says so (refused) is what is wanted */
};

/* One side of a trial, the attack or its control, as far as it was observed. */
struct observation {
    bool made;               /* the probe ran and said something that can be read */
    enum reply_verdict said; /* what it said */
    bool listened;           /* somebody listened at the far end, and told what came */
    bool arrived;            /* with `listened`: its token came */
    const char *why;         /* where not made: why; borrowed, may be NULL */
};

/* True where the observation proves that a packet arrived. A refusal is one that arrived. */
bool verdict_arrived(const struct observation *seen);

/* Judges a claim. `control` is NULL where the claim has none: a claim of silence without a control is never judged.
 * `ret_reason` receives one sentence, always; the caller frees it. */
enum verdict verdict_judge(enum expectation expectation, const struct observation *attack,
                           const struct observation *control, char **ret_reason);

/* 0 where every claim that was judged holds and at least one was; 1 otherwise. `counts` is indexed by verdict. A claim
 * that was not judged is no pass, but no failure either: `strict` makes it one. */
int verdict_exit_status(const unsigned counts[4], bool strict);

#endif
