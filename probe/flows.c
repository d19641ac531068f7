/* Many flows at once, each from its own port: how many are answered, and at which the other end stops answering.
 * This is for limits on tracked connections; it measures no throughput.
 */
#include "subcommands.h"

#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

static const struct flag flags[] = {
    {"--count", "N", "flows to open (1000)"},
    {"--proto", "P", "udp or tcp (udp)"},
    {"--query", NULL, "UDP: send a DNS query for the root instead of the token"},
    {"--per-second", "N", "open them at this pace (as fast as it goes)"},
    {NULL, NULL, NULL},
};

enum { MOST_FLOWS = 200000, SPARE_DESCRIPTORS = 32 };

struct flows {
    const struct request *request;
    struct endpoint peer;
    bool tcp;
    int epoll;
    int *fds; /* -1 where it failed */
    int64_t opened;
    int64_t answered;
    int64_t refused;
    int64_t failed; /* could not be opened or sent */
    int last_errno;
    int64_t first_unanswered; /* index, -1: all were answered */
    bool *was_answered;
};

/* The root's name servers, recursion not desired: any DNS server answers something. */
static const uint8_t root_query[] = {0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1};

/* As many descriptors as the hard limit gives. */
static uint64_t descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return 256;
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > SPARE_DESCRIPTORS ? limit.rlim_cur - SPARE_DESCRIPTORS : 1;
}

static int open_flow(struct flows *flows, int64_t index)
{
    int fd CLEANUP_FD =
        socket(flows->peer.family, (flows->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool query = request_has(flows->request, "--query");
    struct epoll_event event = {.events = flows->tcp ? EPOLLOUT : EPOLLIN, .data.u64 = (uint64_t)index};

    if (fd < 0 || (sockets_connect(fd, &flows->peer) < 0 && errno != EINPROGRESS)) {
        return -1;
    }
    const void *data = query ? (const void *)root_query : flows->request->token;
    size_t size = query ? sizeof(root_query) : flows->request->token_size;
    if (!flows->tcp && send(fd, data, size, 0) < 0) {
        return -1;
    }
    if (epoll_ctl(flows->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        return -1;
    }
    int kept = fd;
    fd = -1;
    return kept;
}

static void settle(struct flows *flows, int64_t index)
{
    int *fd = &flows->fds[index];
    int error = 0;
    socklen_t size = sizeof(error);
    uint8_t bytes[512];

    (void)getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (!flows->tcp && !error && recv(*fd, bytes, sizeof(bytes), 0) < 0) {
        error = errno;
    }
    if (error) {
        flows->refused += error == ECONNREFUSED;
        flows->last_errno = error;
    }
    if (!error || error == ECONNREFUSED) {
        flows->was_answered[index] = true;
        flows->answered++;
    }
    /* It stays open, for the flow's sake, but is heard no more. */
    (void)epoll_ctl(flows->epoll, EPOLL_CTL_DEL, *fd, NULL);
}

static void hear(struct flows *flows, int wait_ms)
{
    struct epoll_event events[64];
    int count = epoll_wait(flows->epoll, events, 64, wait_ms);

    for (int i = 0; i < count; i++) {
        settle(flows, (int64_t)events[i].data.u64);
    }
}

static void open_all(struct flows *flows, uint64_t count, uint64_t per_second)
{
    int64_t started = deadline_now_us();

    for (uint64_t index = 0; index < count && deadline_left_ms(flows->request->deadline) > 0; index++) {
        flows->fds[index] = open_flow(flows, (int64_t)index);
        if (flows->fds[index] < 0) {
            flows->failed++;
            flows->last_errno = errno;
        }
        flows->opened++;
        if (index % 32 == 0) {
            hear(flows, 0);
        }
        if (per_second) {
            struct deadline due = {.at_us = started + (int64_t)((index + 1) * 1000000 / per_second)};
            while (deadline_left_ms(due) > 0 && deadline_left_ms(flows->request->deadline) > 0) {
                hear(flows, deadline_left_ms(due));
            }
        }
    }
}

static void write_flows(struct flows *flows, int64_t opening_us, struct outcome *outcome)
{
    char text[OUTCOME_ERRNO_TEXT];

    flows->first_unanswered = -1;
    for (int64_t i = 0; i < flows->opened && flows->first_unanswered < 0; i++) {
        if (!flows->was_answered[i]) {
            flows->first_unanswered = i;
        }
    }
    jsonline_number(&outcome->evidence, "opened", flows->opened - flows->failed);
    jsonline_number(&outcome->evidence, "failed", flows->failed);
    jsonline_number(&outcome->evidence, "answered", flows->answered);
    jsonline_number(&outcome->evidence, "refused", flows->refused);
    jsonline_number(&outcome->evidence, "first_unanswered", flows->first_unanswered);
    jsonline_milliseconds(&outcome->evidence, "opening_ms", opening_us);
    jsonline_text(&outcome->evidence, "last_errno", outcome_errno_name(flows->last_errno, text));
    if (flows->answered == 0) {
        outcome_say(outcome, flows->failed == flows->opened ? VERDICT_UNREACHABLE : VERDICT_DROPPED,
                    flows->last_errno ? flows->last_errno : ETIMEDOUT);
        return;
    }
    outcome_say(outcome, flows->refused == flows->answered ? VERDICT_REFUSED : VERDICT_REACHABLE, 0);
}

static int run_flows(struct flows *flows, uint64_t count, uint64_t per_second, struct outcome *outcome)
{
    flows->fds = calloc(count, sizeof(*flows->fds));
    flows->was_answered = calloc(count, sizeof(*flows->was_answered));
    flows->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!flows->fds || !flows->was_answered || flows->epoll < 0) {
        return outcome_fail(outcome, errno, "no room for %llu flows", (unsigned long long)count);
    }
    int64_t started = deadline_now_us();
    open_all(flows, count, per_second);
    int64_t opening_us = deadline_now_us() - started;
    while (flows->answered < flows->opened - flows->failed && deadline_left_ms(flows->request->deadline) > 0) {
        hear(flows, deadline_left_ms(flows->request->deadline));
    }
    write_flows(flows, opening_us, outcome);
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct flows flows = {.request = request, .epoll = -1};
    const char *protocol = request_text(request, "--proto", "udp");
    uint64_t port;
    uint64_t count;
    uint64_t per_second;
    uint64_t most = descriptors();

    flows.tcp = strcmp(protocol, "tcp") == 0;
    if (!flows.tcp && strcmp(protocol, "udp") != 0) {
        return outcome_usage(outcome, "--proto is udp or tcp");
    }
    if (request_word_endpoint(request, 0, &flows.peer, outcome) < 0 ||
        request_word_number(request, 1, 1, UINT16_MAX, &port, outcome) < 0 ||
        request_number(request, "--count", 1, MOST_FLOWS, 1000, &count, outcome) < 0 ||
        request_number(request, "--per-second", 1, 1000000, 0, &per_second, outcome) < 0) {
        return -1;
    }
    if (count > most) {
        jsonline_number(&outcome->evidence, "cut_to_descriptors", (int64_t)most);
        count = most;
    }
    flows.peer.port = (uint16_t)port;
    int failed = run_flows(&flows, count, per_second, outcome);
    /* The kernel closes what is left faster than a loop would. */
    free(flows.fds);
    free(flows.was_answered);
    sockets_close(&flows.epoll);
    return failed;
}

const struct subcommand subcommand_flows = {
    .name = "flows",
    .arguments = "ADDRESS PORT",
    .summary = "many UDP or TCP flows, each from its own port; how many are answered",
    .flags = flags,
    .min_words = 2,
    .max_words = 2,
    .timeout_ms = 5000,
    .run = run,
};
