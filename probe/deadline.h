#pragma once

#include <stdint.h>

/* A point on the monotonic clock by which something must be over. */
struct deadline {
    int64_t at_us;
};

/* Microseconds on the monotonic clock. */
int64_t deadline_now_us(void);
struct deadline deadline_in_ms(int64_t milliseconds);
/* The earlier of `whole` and `milliseconds` from now: a step inside a budget. */
struct deadline deadline_step_ms(struct deadline whole, int64_t milliseconds);
/* Milliseconds that are left, rounded up, never negative. */
int deadline_left_ms(struct deadline deadline);
/* Waits for `events` (poll's) on `fd`: 1 when one came (an error on the descriptor counts), 0 when the deadline
 * passed, -1 with errno. An fd of -1 only waits. */
int deadline_wait(struct deadline deadline, int fd, short events);
