/* TCP: does a handshake complete, is it refused, unreachable, or met with silence; and what flows over it then.
 * One connection a run: many at once are in flows.c, forged ones in spoof.c.
 */
#include "subcommands.h"

#include "dissect.h"
#include "sockerr.h"
#include "sockets.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 400, QUIET_MS = 100 };

static const struct flag flags[] = {
    {"--send", "TEXT", "send this once connected (escapes: \\r \\n \\xNN) and show what comes back"},
    {"--read", NULL, "send nothing, show what the peer says first"},
    {"--echo", NULL, "send the token and say whether it came back"},
    {"--beats", "N", "stay connected and exchange N more tokens with an echo server"},
    {"--beat-ms", "MS", "time between beats (100)"},
    SOCKETS_FLAGS,
    {NULL, NULL, NULL},
};

/* 1 connected, 0 the verdict is said, -1 failed. */
static int establish(const struct request *request, int fd, const struct endpoint *peer, struct outcome *outcome)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (sockets_connect(fd, peer) < 0 && errno != EINPROGRESS) {
        return sockerr_judge(fd, errno, peer, outcome);
    }
    /* Only writability ends the wait: an ICMP error that TCP survives raises POLLERR and is no end. */
    int ready = deadline_wait(request->deadline, fd, POLLOUT);
    if (ready < 0) {
        return outcome_fail(outcome, errno, "waiting for the handshake");
    }
    if (ready == 0) {
        outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
        return 0;
    }
    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        return sockerr_judge(fd, error, peer, outcome);
    }
    return 1;
}

static void write_connection(int fd, const struct endpoint *peer, struct outcome *outcome)
{
    struct endpoint local = sockets_local(fd);
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);

    sockets_write_endpoint(&outcome->evidence, "local", &local);
    sockets_write_endpoint(&outcome->evidence, "peer", peer);
    jsonline_number(&outcome->evidence, "path_mtu", sockets_path_mtu(fd, peer->family));
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
        jsonline_number(&outcome->evidence, "mss", info.tcpi_snd_mss);
        jsonline_milliseconds(&outcome->evidence, "rtt_ms", info.tcpi_rtt);
    }
}

/* Reads until the end, the buffer, the deadline, or a pause after the first bytes. The bytes read; *ret_end is how it
 * ended: 0 end of stream, -1 time, else an errno. */
static size_t read_some(int fd, struct deadline deadline, uint8_t *bytes, size_t capacity, int *ret_end)
{
    size_t at = 0;

    *ret_end = -1;
    while (at < capacity) {
        if (deadline_wait(at ? deadline_step_ms(deadline, QUIET_MS) : deadline, fd, POLLIN) <= 0) {
            break;
        }
        ssize_t got = recv(fd, bytes + at, capacity - at, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            *ret_end = got == 0 ? 0 : errno;
            break;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    return at;
}

static void write_end(struct outcome *outcome, int end)
{
    char name[OUTCOME_ERRNO_TEXT];

    jsonline_text(&outcome->evidence, "stream", end == 0 ? "ended" : end < 0 ? "open" : outcome_errno_name(end, name));
}

static int converse(const struct request *request, int fd, struct outcome *outcome)
{
    uint8_t text[4096];
    uint8_t reply[SHOWN];
    size_t size = 0;
    bool echo = request_has(request, "--echo");
    int end;

    if (request_bytes(request, "--send", text, sizeof(text) - sizeof(request->token), &size, outcome) < 0) {
        return -1;
    }
    if (echo) {
        memcpy(text + size, request->token, request->token_size);
        size += request->token_size;
    }
    if (size > 0 && send(fd, text, size, MSG_NOSIGNAL) < 0) {
        jsonline_text(&outcome->evidence, "send_error", strerror(errno));
    }
    size = read_some(fd, request->deadline, reply, sizeof(reply), &end);
    jsonline_number(&outcome->evidence, "reply_size", (int64_t)size);
    jsonline_bytes(&outcome->evidence, "reply", reply, size, SHOWN);
    if (echo) {
        jsonline_bool(&outcome->evidence, "echo", dissect_contains(reply, size, request->token, request->token_size));
    }
    write_end(outcome, end);
    return 0;
}

/* Waits for one beat's echo; 1 it came, 0 it did not, -1 the stream is over (errno, 0 for its end). */
static int await_echo(int fd, struct deadline step, const char *beat, size_t size)
{
    char window[512];
    size_t at = 0;

    while (deadline_wait(step, fd, POLLIN) > 0) {
        if (at == sizeof(window)) {
            /* An older beat's late echo: keep the tail that may hold the beginning of ours. */
            memmove(window, window + at - size, size);
            at = size;
        }
        ssize_t got = recv(fd, window + at, sizeof(window) - at, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            errno = got == 0 ? 0 : errno;
            return -1;
        }
        at += got > 0 ? (size_t)got : 0;
        if (dissect_contains(window, at, beat, size)) {
            return 1;
        }
    }
    return 0;
}

static void keep_beating(const struct request *request, int fd, uint64_t beats, int64_t beat_ms,
                         struct outcome *outcome)
{
    int64_t sent = 0;
    int64_t answered = 0;
    int64_t gap_us = 0;
    int64_t last_us = deadline_now_us();
    int end = -1;

    while ((uint64_t)sent < beats && deadline_left_ms(request->deadline) > 0) {
        char beat[sizeof(request->token) + 24];
        struct deadline step = deadline_step_ms(request->deadline, beat_ms);
        int length = snprintf(beat, sizeof(beat), "%s#%lld.", request->token, (long long)sent);

        if (send(fd, beat, (size_t)length, MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
            end = errno;
            break;
        }
        sent++;
        int came = await_echo(fd, step, beat, (size_t)length);
        if (came < 0) {
            end = errno;
            break;
        }
        if (came > 0) {
            int64_t now_us = deadline_now_us();
            gap_us = now_us - last_us > gap_us ? now_us - last_us : gap_us;
            last_us = now_us;
            answered++;
        }
        (void)deadline_wait(step, -1, 0);
    }
    if (deadline_now_us() - last_us > gap_us) {
        gap_us = deadline_now_us() - last_us;
    }
    jsonline_number(&outcome->evidence, "beats_sent", sent);
    jsonline_number(&outcome->evidence, "beats_answered", answered);
    jsonline_milliseconds(&outcome->evidence, "longest_gap_ms", gap_us);
    jsonline_number(&outcome->evidence, "path_mtu_at_end", sockets_path_mtu(fd, sockets_local(fd).family));
    write_end(outcome, end);
}

static int run(const struct request *request, struct outcome *outcome)
{
    int fd CLEANUP_FD = -1;
    struct endpoint peer;
    uint64_t port;
    uint64_t beats;
    uint64_t beat_ms;

    if (request_word_number(request, 1, 1, UINT16_MAX, &port, outcome) < 0 ||
        request_number(request, "--beats", 1, 1000000, 0, &beats, outcome) < 0 ||
        request_number(request, "--beat-ms", 1, 60000, 100, &beat_ms, outcome) < 0 ||
        sockets_target(request, request->words[0], &peer, outcome) < 0 ||
        sockets_open(request, peer.family, SOCK_STREAM, 0, &fd, outcome) < 0) {
        return -1;
    }
    peer.port = (uint16_t)port;

    int connected = establish(request, fd, &peer, outcome);
    if (connected <= 0) {
        return connected;
    }
    outcome_say(outcome, VERDICT_REACHABLE, 0);
    write_connection(fd, &peer, outcome);
    bool talks = request_has(request, "--send") || request_has(request, "--read") || request_has(request, "--echo");
    if (talks && converse(request, fd, outcome) < 0) {
        return -1;
    }
    if (beats) {
        keep_beating(request, fd, beats, (int64_t)beat_ms, outcome);
    }
    return 0;
}

const struct subcommand subcommand_connect = {
    .name = "connect",
    .arguments = "ADDRESS|NAME PORT",
    .summary = "TCP: complete a handshake, and talk over it if asked",
    .flags = flags,
    .min_words = 2,
    .max_words = 2,
    .timeout_ms = 3000,
    .run = run,
};
