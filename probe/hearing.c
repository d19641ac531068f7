/* The common half of all listeners: what counts as heard, what is kept of it, when it is enough.
 * Where the bytes come from is in listen.c and listenwire.c.
 */
#include "hearing.h"

#include "dissect.h"
#include "sockets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

int hearing_begin(const struct request *request, struct hearing *ret_hearing, struct outcome *outcome)
{
    struct hearing hearing = {.request = request, .first_us = -1, .started_us = deadline_now_us()};
    bool echo = request_has(request, "--echo");
    sigset_t set;

    hearing.any = !request_has(request, "--token");
    hearing.has_from = request_has(request, "--from");
    if (request_number(request, "--count", 0, 1000000000, echo ? 0 : 1, &hearing.want, outcome) < 0 ||
        request_endpoint(request, "--from", &hearing.from, outcome) < 0) {
        return -1;
    }
    /* Asked to stop, a listener still says what it heard. */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    hearing.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (hearing.signals < 0) {
        return outcome_fail(outcome, errno, "waiting for signals: %s", strerror(errno));
    }
    *ret_hearing = hearing;
    return 0;
}

void hearing_end(struct hearing *hearing)
{
    jsonline_release(&hearing->events);
    sockets_close(&hearing->signals);
}

void hearing_ready(const char *kind, unsigned port)
{
    (void)fprintf(stderr, "ready %s %u\n", kind, port);
}

bool hearing_over(const struct hearing *hearing)
{
    return hearing->stopped || (hearing->want && (uint64_t)hearing->matched >= hearing->want);
}

bool hearing_wait(struct hearing *hearing, struct pollfd *fds, nfds_t count)
{
    int left;

    fds[count - 1] = (struct pollfd){.fd = hearing->signals, .events = POLLIN};
    while (!hearing_over(hearing) && (left = deadline_left_ms(hearing->request->deadline)) > 0) {
        int ready = poll(fds, count, left);

        if (ready > 0) {
            hearing->stopped = fds[count - 1].revents != 0;
            return !hearing->stopped;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
    }
    return false;
}

bool hearing_take(struct hearing *hearing, const struct endpoint *from, const void *data, size_t size,
                  struct jsonline **ret_line)
{
    const struct request *request = hearing->request;
    char text[ENDPOINT_TEXT];

    *ret_line = NULL;
    if (hearing->has_from && !(from && endpoint_same_address(from, &hearing->from))) {
        return false;
    }
    bool matched = hearing->any || dissect_contains(data, size, request->token, request->token_size);
    hearing->heard++;
    hearing->matched += matched;
    int64_t after_us = deadline_now_us() - hearing->started_us;
    if (matched && hearing->first_us < 0) {
        hearing->first_us = after_us;
    }
    /* The matches are what counts: others get half of the room. */
    if (hearing->shown >= (size_t)(matched ? HEARING_SHOWN : HEARING_SHOWN / 2)) {
        return matched;
    }
    hearing->shown++;
    jsonline_open_object(&hearing->events, NULL);
    jsonline_bool(&hearing->events, "matched", matched);
    jsonline_milliseconds(&hearing->events, "after_ms", after_us);
    jsonline_number(&hearing->events, "size", (int64_t)size);
    if (from && from->family) {
        jsonline_text(&hearing->events, "from", endpoint_text(from, text));
        jsonline_number(&hearing->events, "port", from->port);
    }
    *ret_line = &hearing->events;
    return matched;
}

void hearing_close(struct jsonline *line)
{
    if (line) {
        jsonline_close_object(line);
    }
}

void hearing_report(struct hearing *hearing, struct outcome *outcome)
{
    jsonline_number(&outcome->evidence, "heard", hearing->heard);
    jsonline_number(&outcome->evidence, "matched", hearing->matched);
    if (hearing->first_us >= 0) {
        jsonline_milliseconds(&outcome->evidence, "first_ms", hearing->first_us);
    }
    jsonline_bool(&outcome->evidence, "stopped", hearing->stopped);
    jsonline_array_of(&outcome->evidence, "events", &hearing->events);
    outcome_say(outcome, hearing->matched ? VERDICT_REACHABLE : VERDICT_DROPPED, hearing->matched ? 0 : ETIMEDOUT);
}
