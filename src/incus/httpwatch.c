/* How long an exchange may take, and what is told meanwhile.
 * Not for: waiting itself; see http.c. */
#include "incus/httpwatch.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "incus/daemon.h"

#include <limits.h>
#include <stdio.h>

#define ANSWER_GRACE_MS 10000

struct httpwatch httpwatch_make(const struct http_patience *patience, bool act)
{
    int64_t now = clock_now();
    return (struct httpwatch){
        .patience = patience, .act = act, .start = now, .last_byte = now, .next_tick = now + NARRATE_TICK_MS};
}

int httpwatch_cancel_fd(const struct httpwatch *watch)
{
    return watch->patience->deaf || watch->grace > 0 ? -1 : cancel_fd();
}

static int shorter(int a, int64_t b)
{
    int other = b < 0 ? 0 : b > INT_MAX ? INT_MAX : (int)b;
    return a >= 0 && a < other ? a : other;
}

int httpwatch_timeout(const struct httpwatch *watch)
{
    const struct http_patience *patience = watch->patience;
    int64_t now = clock_now();
    int timeout = patience->narrator ? shorter(-1, watch->next_tick - now) : -1;
    if (patience->budget > 0) {
        timeout = shorter(timeout, watch->start + patience->budget - now);
    }
    if (patience->idle > 0) {
        timeout = shorter(timeout, watch->last_byte + patience->idle - now);
    }
    if (watch->grace > 0) {
        timeout = shorter(timeout, watch->grace - now);
    }
    return timeout;
}

static void describe_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < ARRAY_LENGTH(units); unit++) {
        bytes /= 1000;
    }
    snprintf(text, size, "%.*f %s", unit && bytes < 10 ? 1 : 0, bytes, units[unit]);
}

static void tell_progress(struct narrator *narrator, const struct httpwatch_motion *motion, int64_t elapsed)
{
    double bytes = (double)motion->streamed;
    if (motion->streamed <= 0 || elapsed <= 0) {
        return;
    }
    char moved[32], rate[32];
    describe_bytes(moved, sizeof(moved), bytes);
    describe_bytes(rate, sizeof(rate), bytes * 1000 / (double)elapsed);
    if (motion->total > 0) {
        narrate_progress(narrator, "%d%%, %s (%s/s)", (int)(100.0 * bytes / (double)motion->total), moved, rate);
    } else {
        narrate_progress(narrator, "%s (%s/s)", moved, rate);
    }
}

static int out_of_time(const struct httpwatch_motion *motion, int64_t waited, const char *why, struct error *err)
{
    if (!motion->answered) {
        return daemon_silent(motion->socket_path, waited, err);
    }
    error_set(err, ERR_TIMEOUT, "%s %lld s", why, (long long)((waited + 500) / 1000));
    return error_remedy(err, "see what the daemon is busy with: incus operation list");
}

/* The answer to an act is worth the moment after a Ctrl-C: who turns away from it does not learn what the daemon has
 * begun, and cannot undo it. */
static int give_up(struct httpwatch *watch, int64_t now, struct error *err)
{
    if (watch->patience->deaf || !cancel_requested()) {
        return 0;
    }
    if (watch->act && watch->grace == 0) {
        watch->grace = now + ANSWER_GRACE_MS;
    }
    return now < watch->grace ? 0 : cancel_check(err);
}

int httpwatch_look(struct httpwatch *watch, const struct httpwatch_motion *motion, struct error *err)
{
    const struct http_patience *patience = watch->patience;
    int64_t now = clock_now();
    if (give_up(watch, now, err) < 0) {
        return -1;
    }
    if (motion->streamed + motion->kept != watch->seen) {
        watch->seen = motion->streamed + motion->kept;
        watch->last_byte = now;
    }
    if (patience->narrator && now >= watch->next_tick) {
        narrate_tick(patience->narrator);
        tell_progress(patience->narrator, motion, now - watch->start);
        watch->next_tick = now + NARRATE_TICK_MS;
    }
    if (patience->budget > 0 && now - watch->start >= patience->budget) {
        return out_of_time(motion, now - watch->start, "no answer of Incus within the budget of", err);
    }
    if (patience->idle > 0 && now - watch->last_byte >= patience->idle) {
        return out_of_time(motion, now - watch->last_byte, "Incus has been silent for", err);
    }
    return 0;
}
