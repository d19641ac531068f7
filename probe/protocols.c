/* Every IP protocol number at one address: which of them arrive. A protocol unreachable from the destination says that
 * one did; silence proves nothing unless it does not come for any.
 */
#include "subcommands.h"

#include "answer.h"
#include "sockets.h"

#include <errno.h>
#include <poll.h>

static const struct flag flags[] = {
    {"--from", "N", "first protocol number (0)"},
    {"--to", "N", "last protocol number (255)"},
    {"--without", "N", "leave this number out (6, TCP, has verdicts of its own)"},
    {NULL, NULL, NULL},
};

struct sweep {
    const struct request *request;
    struct endpoint peer;
    int icmp_fd;
    bool refused[256];
    int64_t sent;
    int64_t failed;
    int64_t refused_count;
    int64_t unreachable_count;
};

static void send_one(struct sweep *sweep, int protocol)
{
    int fd CLEANUP_FD = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, protocol ? protocol : IPPROTO_RAW);
    struct sockaddr_storage address;
    socklen_t size = endpoint_to_sockaddr(&sweep->peer, &address);
    const void *data = sweep->request->token;
    size_t length = sweep->request->token_size;
    struct frame packet = {.size = 0};

    if (fd >= 0 && (protocol == 0 || protocol == IPPROTO_RAW)) {
        /* Number 0 has no socket, and 255 wants the header with it. */
        int on = 1;
        struct wire_ip ip = {
            .source = sockets_source_for(&sweep->peer), .destination = sweep->peer, .protocol = (uint8_t)protocol};
        (void)setsockopt(fd, IPPROTO_IP, IP_HDRINCL, &on, sizeof(on));
        wire_put_ip(&packet, &ip, length);
        wire_put(&packet, data, length);
        data = packet.data;
        length = packet.size;
    }
    if (fd < 0 || sendto(fd, data, length, 0, (struct sockaddr *)&address, size) < 0) {
        sweep->failed++;
        return;
    }
    sweep->sent++;
}

/* Reads the ICMP errors that have come by `step`. */
static void collect(struct sweep *sweep, struct deadline step)
{
    uint8_t bytes[2048];
    struct dissected packet;
    struct dissected quoted;

    while (deadline_wait(step, sweep->icmp_fd, POLLIN) > 0) {
        ssize_t got = recv(sweep->icmp_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got < 0 || !dissect_ip(bytes, (size_t)got, &packet)) {
            continue;
        }
        if (!dissect_quoted(&packet, &quoted)) {
            continue;
        }
        bool ours = endpoint_same_address(&quoted.destination, &sweep->peer) &&
                    dissect_contains(bytes, (size_t)got, sweep->request->token, sweep->request->token_size);
        if (!ours || sweep->refused[quoted.protocol]) {
            continue;
        }
        if (answer_is_refusal(AF_INET, packet.icmp_type, packet.icmp_code) &&
            endpoint_same_address(&packet.source, &sweep->peer)) {
            sweep->refused[quoted.protocol] = true;
            sweep->refused_count++;
        } else {
            sweep->unreachable_count++;
        }
    }
}

static int run(const struct request *request, struct outcome *outcome)
{
    int icmp CLEANUP_FD = -1;
    struct sweep sweep = {.request = request};
    uint64_t from;
    uint64_t to;
    uint64_t without;

    if (request_word_endpoint(request, 0, &sweep.peer, outcome) < 0 ||
        request_number(request, "--from", 0, 255, 0, &from, outcome) < 0 ||
        request_number(request, "--to", 0, 255, 255, &to, outcome) < 0 ||
        request_number(request, "--without", 0, 255, IPPROTO_TCP, &without, outcome) < 0 ||
        sockets_open(request, AF_INET, SOCK_RAW, IPPROTO_ICMP, &icmp, outcome) < 0) {
        return -1;
    }
    if (sweep.peer.family != AF_INET) {
        return outcome_usage(outcome, "protocols is for IPv4");
    }
    sweep.icmp_fd = icmp;
    for (uint64_t protocol = from; protocol <= to; protocol++) {
        if (protocol != without) {
            send_one(&sweep, (int)protocol);
            /* Linux limits the errors that it sends (icmp_ratelimit): some pace, spread over half of the budget. */
            collect(&sweep, deadline_step_ms(request->deadline, request->timeout_ms / 2 / (int64_t)(to - from + 1)));
        }
    }
    collect(&sweep, request->deadline);

    jsonline_number(&outcome->evidence, "sent", sweep.sent);
    jsonline_number(&outcome->evidence, "not_sent", sweep.failed);
    jsonline_number(&outcome->evidence, "refused", sweep.refused_count);
    jsonline_number(&outcome->evidence, "unreachable", sweep.unreachable_count);
    jsonline_open_array(&outcome->evidence, "refused_protocols");
    for (int i = 0; i < 256; i++) {
        if (sweep.refused[i]) {
            jsonline_number(&outcome->evidence, NULL, i);
        }
    }
    jsonline_close_array(&outcome->evidence);
    outcome_say(outcome,
                sweep.refused_count       ? VERDICT_REFUSED
                : sweep.unreachable_count ? VERDICT_UNREACHABLE
                                          : VERDICT_DROPPED,
                sweep.refused_count ? ENOPROTOOPT : ETIMEDOUT);
    return 0;
}

const struct subcommand subcommand_protocols = {
    .name = "protocols",
    .arguments = "ADDRESS",
    .summary = "a packet of every IP protocol, and which are refused (so: arrived)",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 3000,
    .run = run,
};
