/* UDP: send the token, wait for it to come back. Only the echo, or with --any-reply some answer from the very address
 * and port, is "reachable"; a port unreachable from the destination is "refused".
 */
#include "subcommands.h"

#include "dissect.h"
#include "sockerr.h"
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { DATAGRAM = 65507, SHOWN = 400 };

static const struct flag flags[] = {
    {"--any-reply", NULL, "an answer without the token counts as well"},
    {"--payload", "TEXT", "send this before the token (escapes: \\r \\n \\xNN)"},
    {"--no-token", NULL, "send the payload alone; any answer counts"},
    {"--size", "N", "pad the payload to N bytes"},
    {"--count", "N", "datagrams to send (3), spread over the budget; all are answered or waited for with --all"},
    {"--interval-ms", "MS", "time between datagrams, instead of spreading them"},
    {"--all", NULL, "do not stop at the first answer: count them"},
    SOCKETS_FLAGS,
    {NULL, NULL, NULL},
};

struct exchange {
    const struct request *request;
    const struct endpoint *peer;
    int fd;
    bool any_reply;
    bool all;
    uint64_t count;
    uint64_t sent;
    uint64_t answered;
    uint64_t foreign; /* answers without the token, where it was wanted */
    uint8_t *payload;
    size_t size;
};

/* Reads what is there. 1 when the run is over, -1 with the failure said. */
static int take_answers(struct exchange *exchange, struct outcome *outcome)
{
    uint8_t bytes[2048];

    for (;;) {
        ssize_t got = recv(exchange->fd, bytes, sizeof(bytes), 0);
        if (got < 0 && errno == EAGAIN) {
            return 0;
        }
        if (got < 0) {
            return sockerr_judge(exchange->fd, errno, exchange->peer, outcome) < 0 ? -1 : 1;
        }
        bool echo = dissect_contains(bytes, (size_t)got, exchange->request->token, exchange->request->token_size);
        if (!echo && !exchange->any_reply) {
            exchange->foreign++;
            continue;
        }
        if (exchange->answered++ == 0) {
            jsonline_bool(&outcome->evidence, "echo", echo);
            jsonline_number(&outcome->evidence, "reply_size", got);
            jsonline_bytes(&outcome->evidence, "reply", bytes, (size_t)got, SHOWN);
        }
        if (!exchange->all || exchange->answered == exchange->count) {
            return 1;
        }
    }
}

/* Waits for answers until `step`; as take_answers. */
static int listen_until(struct exchange *exchange, struct deadline step, struct outcome *outcome)
{
    for (;;) {
        int ready = deadline_wait(step, exchange->fd, POLLIN);
        if (ready <= 0) {
            return ready < 0 ? outcome_fail(outcome, errno, "waiting for an answer") : 0;
        }
        int over = take_answers(exchange, outcome);
        if (over) {
            return over;
        }
        struct sockerr error;
        if (sockerr_take(exchange->fd, &error)) {
            return sockerr_say(exchange->fd, &error, exchange->peer, outcome) < 0 ? -1 : 1;
        }
    }
}

static int send_and_listen(struct exchange *exchange, uint64_t interval_ms, struct outcome *outcome)
{
    struct deadline whole = exchange->request->deadline;

    while (exchange->sent < exchange->count) {
        int left = deadline_left_ms(whole);
        int64_t pause = interval_ms ? (int64_t)interval_ms : left / (int64_t)(exchange->count - exchange->sent);
        struct deadline step = deadline_step_ms(whole, pause);

        if (send(exchange->fd, exchange->payload, exchange->size, 0) < 0) {
            return sockerr_judge(exchange->fd, errno, exchange->peer, outcome) < 0 ? -1 : 1;
        }
        exchange->sent++;
        int over = listen_until(exchange, step, outcome);
        if (over || left == 0) {
            return over;
        }
    }
    return listen_until(exchange, whole, outcome);
}

static int make_payload(const struct request *request, uint8_t *payload, size_t *ret_size, struct outcome *outcome)
{
    size_t size = 0;
    uint64_t padded;

    if (request_bytes(request, "--payload", payload, 2048, &size, outcome) < 0 ||
        request_number(request, "--size", 0, DATAGRAM, 0, &padded, outcome) < 0) {
        return -1;
    }
    if (!request_has(request, "--no-token")) {
        memcpy(payload + size, request->token, request->token_size);
        size += request->token_size;
    }
    if (size < padded) {
        memset(payload + size, '.', padded - size);
        size = padded;
    }
    *ret_size = size;
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    int fd CLEANUP_FD = -1;
    uint8_t payload[DATAGRAM];
    struct endpoint peer;
    struct exchange exchange = {.request = request, .peer = &peer, .payload = payload};
    uint64_t port;
    uint64_t interval;

    if (request_word_number(request, 1, 1, UINT16_MAX, &port, outcome) < 0 ||
        request_number(request, "--count", 1, 1000000, 3, &exchange.count, outcome) < 0 ||
        request_number(request, "--interval-ms", 1, 60000, 0, &interval, outcome) < 0 ||
        make_payload(request, payload, &exchange.size, outcome) < 0 ||
        sockets_target(request, request->words[0], &peer, outcome) < 0 ||
        sockets_open(request, peer.family, SOCK_DGRAM, 0, &fd, outcome) < 0) {
        return -1;
    }
    peer.port = (uint16_t)port;
    exchange.fd = fd;
    exchange.all = request_has(request, "--all");
    exchange.any_reply = request_has(request, "--any-reply") || request_has(request, "--no-token");
    if (sockets_connect(fd, &peer) < 0) {
        return sockerr_judge(fd, errno, &peer, outcome);
    }
    struct endpoint local = sockets_local(fd);
    sockets_write_endpoint(&outcome->evidence, "local", &local);

    outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
    int over = send_and_listen(&exchange, interval, outcome);
    if (over < 0) {
        return -1;
    }
    if (exchange.answered) {
        outcome_say(outcome, VERDICT_REACHABLE, 0);
    }
    jsonline_number(&outcome->evidence, "sent", (int64_t)exchange.sent);
    jsonline_number(&outcome->evidence, "answered", (int64_t)exchange.answered);
    jsonline_number(&outcome->evidence, "foreign", (int64_t)exchange.foreign);
    jsonline_number(&outcome->evidence, "path_mtu", sockets_path_mtu(fd, peer.family));
    return 0;
}

const struct subcommand subcommand_udp = {
    .name = "udp",
    .arguments = "ADDRESS|NAME PORT",
    .summary = "UDP: send the token and wait for it to come back",
    .flags = flags,
    .min_words = 2,
    .max_words = 2,
    .timeout_ms = 2000,
    .run = run,
};
