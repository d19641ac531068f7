#ifndef BOX_DOCTOR_FINDING_H
#define BOX_DOCTOR_FINDING_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* What a look found. */
enum finding_kind {
    FINDING_OK,
    FINDING_BROKEN,     /* with the one command that repairs it */
    FINDING_NOT_SET_UP, /* nothing is wrong with a host that was never set up */
    FINDING_UNSEEN,     /* could not be seen: needs root, or the daemon */
};

struct finding {
    enum finding_kind kind;
    char *check; /* a short stable name: "network boxnet" */
    char *text;  /* what was seen */
    char *fix;   /* a command, or NULL */
};

struct findings {
    struct finding *items;
    size_t count;
};

/* Appends one. `fix` (may be NULL) is copied. */
void finding_add(struct findings *findings, enum finding_kind kind, const char *check, const char *fix,
                 const char *format, ...) PRINTF_LIKE(5, 6);

/* "ok", "broken", "not set up", "not seen". */
const char *finding_word(enum finding_kind kind);

/* How many are of that kind. */
size_t finding_count(const struct findings *findings, enum finding_kind kind);

/* True where nothing is broken and nothing is missing. What could not be seen is counted by the caller. */
bool finding_healthy(const struct findings *findings);

void finding_reset(struct findings *findings);

#endif
