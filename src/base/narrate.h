#ifndef BOX_BASE_NARRATE_H
#define BOX_BASE_NARRATE_H

#include "base/cleanup.h"

#include <stddef.h>

/* How library code speaks: it narrates, and src/cli decides how that looks (a spinner, a line every 5 s in a log).
 * Every function takes a narrator that may be NULL: silence. */
enum narrate_kind {
    NARRATE_STEP,     /* a step begins: "starting the box"; one that is still open then did not end well */
    NARRATE_PROGRESS, /* the running step is alive: "42% (12 MB/s)"; may come often */
    NARRATE_DONE,     /* the running step ended well; the text says what came of it, or is "" */
    NARRATE_NOTE,     /* a fact worth a line */
    NARRATE_WARN,     /* a fact that the user must see */
};

struct narrator {
    void (*say)(struct narrator *narrator, enum narrate_kind kind, const char *text);
    /* Called about five times a second by whatever waits; draws a spinner or the 5 s line. May be NULL. */
    void (*tick)(struct narrator *narrator);
};

void narrate_step(struct narrator *narrator, const char *format, ...) PRINTF_LIKE(2, 3);
void narrate_progress(struct narrator *narrator, const char *format, ...) PRINTF_LIKE(2, 3);
void narrate_done(struct narrator *narrator, const char *format, ...) PRINTF_LIKE(2, 3);
void narrate_note(struct narrator *narrator, const char *format, ...) PRINTF_LIKE(2, 3);
void narrate_warn(struct narrator *narrator, const char *format, ...) PRINTF_LIKE(2, 3);
void narrate_tick(struct narrator *narrator);

/* Milliseconds between two ticks: the longest that a poll() may sleep while a narrator is alive. */
#define NARRATE_TICK_MS 200

#endif
