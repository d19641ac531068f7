#ifndef BOX_DRILL_POOL_H
#define BOX_DRILL_POOL_H

#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"

#include <stddef.h>
#include <stdint.h>

/* A piece of work that is done in a process of its own, and answers with one JSON value. */
struct pool_job {
    json_t *(*work)(void *context); /* in the child; the value is written to the parent */
    void *context;
    int64_t budget; /* milliseconds; on expiry the child and all that it started are killed */
    bool alone;     /* nothing else runs meanwhile */
};

/* Runs the jobs, at most `slots` at once, in order. `done` is told of each as it ends, in this process: `answer` is
 * NULL where the child gave none (killed on its budget, died), and then `why` says so; borrowed.
 * Ctrl-C kills what runs and is ERR_INTERRUPTED. */
int pool_run(const struct pool_job *jobs, size_t count, unsigned slots, struct narrator *narrator,
             void (*done)(void *context, size_t index, const json_t *answer, const char *why, int64_t ms),
             void *context, struct error *err);

#endif
