/* The answer of a run: a verdict, the errno behind it, the evidence, and the one line of JSON that carries them.
 * How a verdict is reached is the affair of each subcommand (and of sockerr.c and answer.c).
 */
#include "outcome.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void outcome_release(struct outcome *outcome)
{
    if (outcome) {
        jsonline_release(&outcome->evidence);
    }
}

void outcome_say(struct outcome *outcome, enum verdict verdict, int errno_value)
{
    outcome->verdict = verdict;
    outcome->errno_value = errno_value;
}

int outcome_fail(struct outcome *outcome, int errno_value, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(outcome->why, sizeof(outcome->why), format, arguments);
    va_end(arguments);
    outcome_say(outcome, VERDICT_ERROR, errno_value);
    return -1;
}

int outcome_usage(struct outcome *outcome, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(outcome->why, sizeof(outcome->why), format, arguments);
    va_end(arguments);
    outcome->usage = true;
    outcome_say(outcome, VERDICT_ERROR, EINVAL);
    return -1;
}

const char *outcome_verdict_name(enum verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_ERROR] = "error",     [VERDICT_REACHABLE] = "reachable",     [VERDICT_REFUSED] = "refused",
        [VERDICT_DROPPED] = "dropped", [VERDICT_UNREACHABLE] = "unreachable", [VERDICT_DONE] = "done",
    };

    return names[verdict];
}

const char *outcome_errno_name(int errno_value, char text[OUTCOME_ERRNO_TEXT])
{
    static const struct {
        int value;
        const char *name;
    } names[] = {
        {ECONNREFUSED, "ECONNREFUSED"},
        {ECONNRESET, "ECONNRESET"},
        {ETIMEDOUT, "ETIMEDOUT"},
        {EHOSTUNREACH, "EHOSTUNREACH"},
        {ENETUNREACH, "ENETUNREACH"},
        {EHOSTDOWN, "EHOSTDOWN"},
        {ENETDOWN, "ENETDOWN"},
        {EACCES, "EACCES"},
        {EPERM, "EPERM"},
        {ENOPROTOOPT, "ENOPROTOOPT"},
        {EPROTO, "EPROTO"},
        {EMSGSIZE, "EMSGSIZE"},
        {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
        {EADDRINUSE, "EADDRINUSE"},
        {EINVAL, "EINVAL"},
        {ENODEV, "ENODEV"},
        {ENXIO, "ENXIO"},
        {ENOENT, "ENOENT"},
        {ENOBUFS, "ENOBUFS"},
        {ENOMEM, "ENOMEM"},
        {EMFILE, "EMFILE"},
        {ENFILE, "ENFILE"},
        {EAGAIN, "EAGAIN"},
        {EPIPE, "EPIPE"},
        {EROFS, "EROFS"},
        {EAFNOSUPPORT, "EAFNOSUPPORT"},
        {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
        {EOPNOTSUPP, "EOPNOTSUPP"},
        {EIO, "EIO"},
        {EBADMSG, "EBADMSG"},
        {ENONET, "ENONET"},
        {EEXIST, "EEXIST"},
        {ECONNABORTED, "ECONNABORTED"},
        {EDESTADDRREQ, "EDESTADDRREQ"},
        {ENOTCONN, "ENOTCONN"},
        {ESRCH, "ESRCH"},
        {EOVERFLOW, "EOVERFLOW"},
        {EINTR, "EINTR"},
        {ECANCELED, "ECANCELED"},
        {ETIME, "ETIME"},
        {ENOSPC, "ENOSPC"},
        {ENOTDIR, "ENOTDIR"},
    };

    if (errno_value == 0) {
        return "";
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].value == errno_value) {
            return names[i].name;
        }
    }
    (void)snprintf(text, OUTCOME_ERRNO_TEXT, "E%d", errno_value);
    return text;
}

static void write_line(const struct outcome *outcome, const char *probe, int64_t microseconds, bool with_evidence,
                       struct jsonline *line)
{
    char name[OUTCOME_ERRNO_TEXT];

    jsonline_open_object(line, NULL);
    jsonline_text(line, "probe", probe);
    jsonline_text(line, "verdict", outcome_verdict_name(outcome->verdict));
    jsonline_number(line, "errno", outcome->errno_value);
    jsonline_text(line, "errno_name", outcome_errno_name(outcome->errno_value, name));
    jsonline_milliseconds(line, "ms", microseconds);
    if (outcome->verdict == VERDICT_ERROR) {
        jsonline_text(line, "why", outcome->why);
    }
    if (with_evidence) {
        jsonline_object_of(line, "evidence", &outcome->evidence);
    } else {
        jsonline_open_object(line, "evidence");
        jsonline_close_object(line);
    }
    jsonline_close_object(line);
}

void outcome_write(const struct outcome *outcome, const char *probe, int64_t microseconds, struct jsonline *line)
{
    write_line(outcome, probe, microseconds, true, line);
    if (line->overflow) {
        struct outcome overflowed = {.verdict = VERDICT_ERROR, .errno_value = EOVERFLOW};

        (void)snprintf(overflowed.why, sizeof(overflowed.why), "the evidence did not fit into %d bytes",
                       JSONLINE_CEILING);
        jsonline_release(line);
        write_line(&overflowed, probe, microseconds, false, line);
    }
}
