/* Monotonic budgets, and the wall-clock times that Incus writes.
 * Not for: waiting; see base/cancel.h and the callers' own poll loops. */
#include "base/clock.h"

#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_deadline(int64_t budget)
{
    return budget < 0 ? INT64_MAX : clock_now() + budget;
}

int clock_left(int64_t deadline)
{
    if (deadline == INT64_MAX) {
        return -1;
    }
    int64_t left = deadline - clock_now();
    if (left < 0) {
        return 0;
    }
    return left > INT_MAX ? INT_MAX : (int)left;
}

bool clock_parse(const char *text, int64_t *ret_seconds)
{
    struct tm broken = {0};
    int consumed = 0;
    if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &broken.tm_year, &broken.tm_mon, &broken.tm_mday,
                        &broken.tm_hour, &broken.tm_min, &broken.tm_sec, &consumed) != 6) {
        return false;
    }
    /* Go writes the year 1 for "never". */
    if (broken.tm_year < 1970 || broken.tm_mon < 1 || broken.tm_mon > 12 || broken.tm_mday < 1 || broken.tm_mday > 31 ||
        broken.tm_hour > 23 || broken.tm_min > 59 || broken.tm_sec > 60) {
        return false;
    }
    const char *rest = text + consumed;
    if (*rest == '.') {
        do {
            rest++;
        } while (*rest >= '0' && *rest <= '9');
    }
    int64_t offset = 0;
    if (*rest == '+' || *rest == '-') {
        int hours, minutes;
        if (sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2) {
            return false;
        }
        offset = (*rest == '-' ? -1 : 1) * ((int64_t)hours * 3600 + (int64_t)minutes * 60);
    } else if (rest[0] != 'Z' || rest[1] != '\0') {
        return false;
    }
    broken.tm_year -= 1900;
    broken.tm_mon -= 1;
    *ret_seconds = (int64_t)timegm(&broken) - offset;
    return true;
}

void clock_format_now(char ret_text[21])
{
    time_t now = time(NULL);
    struct tm broken;
    gmtime_r(&now, &broken);
    strftime(ret_text, 21, "%Y-%m-%dT%H:%M:%SZ", &broken);
}

char *clock_describe(int64_t seconds)
{
    static const struct {
        int64_t below, unit;
        char letter;
    } steps[] = {
        {60, 1, 's'}, {3600, 60, 'm'}, {86400, 3600, 'h'}, {14 * 86400, 86400, 'd'}, {INT64_MAX, 7 * 86400, 'w'},
    };
    if (seconds < 1) {
        return xstrdup("now");
    }
    size_t i = 0;
    while (seconds >= steps[i].below) {
        i++;
    }
    return xasprintf("%lld%c", (long long)(seconds / steps[i].unit), steps[i].letter);
}
