/* Every wait of the instrument goes through a deadline, so that none can outlive the budget.
 * The last resort, the alarm that ends a run whatever it is doing, is in boxprobe.c.
 */
#include "deadline.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

int64_t deadline_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct deadline deadline_in_ms(int64_t milliseconds)
{
    return (struct deadline){.at_us = deadline_now_us() + milliseconds * 1000};
}

struct deadline deadline_step_ms(struct deadline whole, int64_t milliseconds)
{
    struct deadline step = deadline_in_ms(milliseconds);

    return step.at_us < whole.at_us ? step : whole;
}

int deadline_left_ms(struct deadline deadline)
{
    int64_t left = deadline.at_us - deadline_now_us();

    return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

int deadline_wait(struct deadline deadline, int fd, short events)
{
    int left;

    /* A deadline that has passed ends it even where something is ready: under a flood something always is. */
    while ((left = deadline_left_ms(deadline)) > 0) {
        struct pollfd waited = {.fd = fd, .events = events};
        int ready = poll(&waited, 1, left);

        if (ready < 0 && errno != EINTR) {
            return -1;
        }
        if (ready > 0) {
            return 1;
        }
    }
    return 0;
}
