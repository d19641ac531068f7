/* ICMP and ICMPv6 echo: the token goes out and has to come back. With many in a row it measures loss.
 * Errors that are forged are in icmperror.c.
 */
#include "subcommands.h"

#include "answer.h"
#include "sockerr.h"
#include "sockets.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 9000 };

static const struct flag flags[] = {
    {"--count", "N", "echo requests to send (3); with more than one answer wanted, see --all"},
    {"--interval-ms", "MS", "time between them, instead of spreading them over the budget"},
    {"--all", NULL, "do not stop at the first answer: count them"},
    {"--size", "N", "bytes of payload"},
    SOCKETS_FLAGS,
    {NULL, NULL, NULL},
};

struct ping {
    const struct request *request;
    struct endpoint peer;
    int fd;
    uint16_t id;
    bool all;
    uint64_t count;
    uint64_t sent;
    uint64_t answered;
    uint64_t interval_ms;
    uint8_t payload[LARGEST];
    size_t size;
    struct answer_expected expected;
};

static int open_ping(struct ping *ping, struct outcome *outcome)
{
    bool v6 = ping->peer.family == AF_INET6;

    if (sockets_open(ping->request, ping->peer.family, SOCK_RAW, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, &ping->fd,
                     outcome) < 0) {
        return -1;
    }
    if (v6) {
        /* Only what may answer: echo replies and the four kinds of error. */
        struct icmp6_filter filter;
        ICMP6_FILTER_SETBLOCKALL(&filter);
        for (int type = 1; type <= 4; type++) {
            ICMP6_FILTER_SETPASS(type, &filter);
        }
        ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
        (void)setsockopt(ping->fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter));
    }
    return 0;
}

static int send_echo(struct ping *ping)
{
    struct frame frame = {.size = 0};
    struct sockaddr_storage address;
    struct wire_ip ip = {.source = ping->expected.source, .destination = ping->peer};
    uint32_t rest = (uint32_t)ping->id << 16 | (uint16_t)ping->sent;
    uint8_t type = ping->peer.family == AF_INET6 ? 128 : 8;
    socklen_t size = endpoint_to_sockaddr(&ping->peer, &address);

    wire_put_icmp(&frame, &ip, type, 0, rest, ping->payload, ping->size);
    return sendto(ping->fd, frame.data, frame.size, 0, (struct sockaddr *)&address, size) < 0 ? -1 : 0;
}

/* Receives one packet as the IP packet it was. IPv6 raw sockets leave the header away: it is put back. */
static bool receive(struct ping *ping, struct frame *frame, struct dissected *ret_packet)
{
    struct sockaddr_storage name = {0};
    socklen_t name_size = sizeof(name);
    size_t offset = ping->peer.family == AF_INET6 ? 40 : 0;
    ssize_t got = recvfrom(ping->fd, frame->data + offset, sizeof(frame->data) - offset, MSG_DONTWAIT,
                           (struct sockaddr *)&name, &name_size);

    if (got < 0) {
        return false;
    }
    if (offset) {
        struct wire_ip ip = {
            .source = endpoint_from_sockaddr((struct sockaddr *)&name),
            .destination = ping->expected.source,
            .protocol = IPPROTO_ICMPV6,
        };
        ip.destination.family = AF_INET6;
        frame->size = 0;
        wire_put_ip(frame, &ip, (size_t)got);
    }
    frame->size = offset + (size_t)got;
    return dissect_ip(frame->data, frame->size, ret_packet);
}

static void write_answer(const struct ping *ping, const struct dissected *packet, enum answer_kind kind,
                         struct outcome *outcome)
{
    char text[ENDPOINT_TEXT];

    jsonline_open_object(&outcome->evidence, "icmp");
    jsonline_text(&outcome->evidence, "from", endpoint_text(&packet->source, text));
    jsonline_bool(&outcome->evidence, "from_target", endpoint_same_address(&packet->source, &ping->peer));
    jsonline_bool(&outcome->evidence, "from_own_stack",
                  kind == ANSWER_UNREACHABLE && endpoint_same_address(&packet->source, &ping->expected.source));
    jsonline_number(&outcome->evidence, "type", packet->icmp_type);
    jsonline_number(&outcome->evidence, "code", packet->icmp_code);
    bool too_big =
        packet->source.family == AF_INET6 ? packet->icmp_type == 2 : packet->icmp_type == 3 && packet->icmp_code == 4;
    if (too_big) {
        jsonline_number(&outcome->evidence, "mtu", packet->icmp_rest & 0xffff);
    }
    jsonline_close_object(&outcome->evidence);
}

/* What a packet means for this run; NONE for requests (our own come back from a loopback) and strangers. */
static enum answer_kind judge(const struct ping *ping, const struct dissected *packet)
{
    uint8_t reply = ping->peer.family == AF_INET6 ? 129 : 0;
    enum answer_kind kind = packet->has_icmp ? answer_of(&ping->expected, packet) : ANSWER_NONE;

    if (kind == ANSWER_REPLY && (packet->icmp_type != reply || packet->icmp_rest >> 16 != ping->id)) {
        return ANSWER_NONE;
    }
    return kind;
}

/* Reads what comes until `step`: 1 when the run is over. */
static int listen_until(struct ping *ping, struct deadline step, struct outcome *outcome)
{
    struct frame frame;
    struct dissected packet;

    while (deadline_wait(step, ping->fd, POLLIN) > 0) {
        struct sockerr error;
        /* The same errors come as packets; only what the own stack said without one is news. */
        if (sockerr_take(ping->fd, &error) && !error.by_icmp) {
            return sockerr_say(ping->fd, &error, &ping->peer, outcome) < 0 ? -1 : 1;
        }
        if (!receive(ping, &frame, &packet)) {
            continue;
        }
        enum answer_kind kind = judge(ping, &packet);
        if (kind == ANSWER_NONE) {
            continue;
        }
        if (kind != ANSWER_REPLY) {
            if (outcome->verdict == VERDICT_DROPPED) {
                write_answer(ping, &packet, kind, outcome);
                outcome_say(outcome, answer_verdict(kind), EHOSTUNREACH);
            }
            if (!ping->all) {
                return 1;
            }
            continue;
        }
        if (ping->answered++ == 0) {
            write_answer(ping, &packet, kind, outcome);
        }
        outcome_say(outcome, VERDICT_REACHABLE, 0);
        if (!ping->all || ping->answered == ping->count) {
            return 1;
        }
    }
    return 0;
}

static int send_and_listen(struct ping *ping, struct outcome *outcome)
{
    struct deadline whole = ping->request->deadline;

    while (ping->sent < ping->count) {
        int left = deadline_left_ms(whole);
        int64_t pause = ping->interval_ms ? (int64_t)ping->interval_ms : left / (int64_t)(ping->count - ping->sent);
        struct deadline step = deadline_step_ms(whole, pause);

        if (send_echo(ping) < 0) {
            int saved = errno;
            if (ping->all && ping->sent > 0) {
                (void)deadline_wait(step, -1, 0);
                ping->sent++;
                continue;
            }
            return sockerr_judge(ping->fd, saved, &ping->peer, outcome) < 0 ? -1 : 1;
        }
        ping->sent++;
        int over = listen_until(ping, step, outcome);
        if (over || left == 0) {
            return over;
        }
    }
    return listen_until(ping, whole, outcome);
}

static int prepare(const struct request *request, struct ping *ping, struct outcome *outcome)
{
    uint64_t size;

    if (request_number(request, "--count", 1, 100000, 3, &ping->count, outcome) < 0 ||
        request_number(request, "--interval-ms", 1, 60000, 0, &ping->interval_ms, outcome) < 0 ||
        request_number(request, "--size", request->token_size, LARGEST, 56, &size, outcome) < 0 ||
        sockets_target(request, request->words[0], &ping->peer, outcome) < 0 || open_ping(ping, outcome) < 0) {
        return -1;
    }
    ping->size = size < request->token_size ? request->token_size : size;
    memset(ping->payload, '.', ping->size);
    memcpy(ping->payload, request->token, request->token_size);
    ping->id = (uint16_t)token_random(65536);
    ping->all = request_has(request, "--all");
    ping->expected = (struct answer_expected){
        .token = request->token,
        .token_size = request->token_size,
        .source = sockets_source_for(&ping->peer),
        .destination = ping->peer,
        .protocol = ping->peer.family == AF_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
    };
    if (request_endpoint(request, "--source", &ping->expected.source, outcome) < 0) {
        return -1;
    }
    ping->expected.source.port = 0;
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct ping ping = {.request = request, .fd = -1};
    int over = -1;

    if (prepare(request, &ping, outcome) == 0) {
        outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
        over = send_and_listen(&ping, outcome);
    }
    sockets_close(&ping.fd);
    if (over < 0) {
        return -1;
    }
    jsonline_number(&outcome->evidence, "sent", (int64_t)ping.sent);
    jsonline_number(&outcome->evidence, "answered", (int64_t)ping.answered);
    return 0;
}

const struct subcommand subcommand_icmp = {
    .name = "icmp",
    .arguments = "ADDRESS|NAME",
    .summary = "ICMP echo, IPv4 or IPv6",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 2000,
    .run = run,
};
