#pragma once

#include "jsonline.h"

#include <stdbool.h>
#include <stdint.h>

/* What a run found out. A refusal means that the packet ARRIVED; only silence is DROPPED; UNREACHABLE is an error that
 * a stack on the way made (the evidence says whose). DONE is no statement about the network: something was sent one
 * way, or facts were read. */
enum verdict {
    VERDICT_ERROR,
    VERDICT_REACHABLE,
    VERDICT_REFUSED,
    VERDICT_DROPPED,
    VERDICT_UNREACHABLE,
    VERDICT_DONE,
};

struct outcome {
    enum verdict verdict;
    int errno_value;
    bool usage;
    char why[256];            /* set with VERDICT_ERROR */
    struct jsonline evidence; /* members only, without the outer braces */
};

#define CLEANUP_OUTCOME __attribute__((cleanup(outcome_release)))
void outcome_release(struct outcome *outcome);

/* States the verdict; `errno_value` is 0 or the errno that told it. */
void outcome_say(struct outcome *outcome, enum verdict verdict, int errno_value);
/* States that no verdict could be had, and why. Always -1, so that it can be returned. */
int outcome_fail(struct outcome *outcome, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a wrong invocation. */
int outcome_usage(struct outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *outcome_verdict_name(enum verdict verdict);
/* "ECONNREFUSED"; "" for 0; "E123" for one without a name here. Lives until the next call with the same buffer. */
enum { OUTCOME_ERRNO_TEXT = 24 };
const char *outcome_errno_name(int errno_value, char text[OUTCOME_ERRNO_TEXT]);
/* Writes the one line, without the newline, into `line`. */
void outcome_write(const struct outcome *outcome, const char *probe, int64_t microseconds, struct jsonline *line);
