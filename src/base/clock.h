#ifndef BOX_BASE_CLOCK_H
#define BOX_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t clock_now(void);

/* The moment `budget` milliseconds from now; a negative budget means never (INT64_MAX). */
int64_t clock_deadline(int64_t budget);

/* Milliseconds left until `deadline`, at least 0; -1 for never. Fits poll() (capped at INT_MAX). */
int clock_left(int64_t deadline);

/* Seconds since the epoch of an RFC 3339 time as Incus writes it ("2026-11-30T22:15:30.123456789Z", offsets too).
 * Returns false on anything else; Go's zero time (year 1) is refused too. */
bool clock_parse(const char *text, int64_t *ret_seconds);

/* Now as RFC 3339 in UTC, whole seconds. `ret_text` has room for 21 bytes. */
void clock_format_now(char ret_text[21]);

/* A duration as people say it: "now", "42s", "3m", "5h", "2d", "3w". The caller frees. */
char *clock_describe(int64_t seconds);

#endif
