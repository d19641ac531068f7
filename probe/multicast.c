/* Multicast and broadcast: the token, or a query for a name by mDNS or LLMNR, to a group; everyone who answers is told.
 * A receiver for the other end is listen.c with --group.
 */
#include "subcommands.h"

#include "dissect.h"
#include "dnswire.h"
#include "sockerr.h"
#include "sockets.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>

static const struct flag flags[] = {
    {"--name", "NAME", "ask for this name instead of sending the token (mDNS, LLMNR: 5353, 5355)"},
    {"--type", "TYPE", "of the question (A)"},
    {"--hops", "N", "multicast time to live (1)"},
    {"--count", "N", "datagrams (3)"},
    SOCKETS_FLAGS,
    {NULL, NULL, NULL},
};

enum { RESPONDERS = 16 };

struct gathering {
    struct endpoint found[RESPONDERS];
    size_t count;
    int64_t answers;
};

static int set_options(const struct request *request, int fd, const struct endpoint *group, struct outcome *outcome)
{
    const char *name = request_text(request, "--interface", NULL);
    int on = 1;
    int off = 0;
    uint64_t hops;

    if (request_number(request, "--hops", 1, 255, 1, &hops, outcome) < 0) {
        return -1;
    }
    int value = (int)hops;
    if (group->family == AF_INET6) {
        int index = name ? (int)if_nametoindex(name) : (int)group->scope;
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &value, sizeof(value));
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof(off));
    } else {
        struct ip_mreqn by_index = {.imr_ifindex = name ? (int)if_nametoindex(name) : 0};
        (void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by_index, sizeof(by_index));
        (void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &value, sizeof(value));
        (void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof(off));
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
    return 0;
}

static int make_payload(const struct request *request, uint8_t *payload, size_t *ret_size, uint16_t *ret_id,
                        struct outcome *outcome)
{
    struct dnswire_query query = {
        .id = (uint16_t)token_random(65536), .name = request_text(request, "--name", NULL), .class = 1};
    const char *type = request_text(request, "--type", "A");

    *ret_id = query.id;
    if (!query.name) {
        memcpy(payload, request->token, request->token_size);
        *ret_size = request->token_size;
        return 0;
    }
    if (!dnswire_type_of(type, &query.type)) {
        return outcome_usage(outcome, "no DNS type \"%s\"", type);
    }
    if (!dnswire_write_query(&query, payload, ret_size)) {
        return outcome_usage(outcome, "\"%s\" is no name", query.name);
    }
    return 0;
}

static bool is_answer(const struct request *request, uint16_t id, const uint8_t *bytes, size_t size)
{
    struct dnswire_reply reply;

    if (!request_has(request, "--name")) {
        return dissect_contains(bytes, size, request->token, request->token_size);
    }
    /* mDNS answers to a legacy querier keep the id, multicast ones have 0. */
    return dnswire_read_reply(bytes, size, &reply) == NULL && reply.response && (reply.id == id || reply.id == 0);
}

static void gather(const struct request *request, int fd, uint16_t id, struct deadline step,
                   struct gathering *gathering)
{
    while (deadline_wait(step, fd, POLLIN) > 0) {
        uint8_t bytes[2048];
        struct sockaddr_storage name = {0};
        socklen_t size = sizeof(name);
        ssize_t got = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&name, &size);
        size_t known = 0;

        if (got < 0) {
            struct sockerr error;
            (void)sockerr_take(fd, &error);
            continue;
        }
        if (!is_answer(request, id, bytes, (size_t)got)) {
            continue;
        }
        struct endpoint from = endpoint_from_sockaddr((struct sockaddr *)&name);
        gathering->answers++;
        while (known < gathering->count && !endpoint_same_address(&gathering->found[known], &from)) {
            known++;
        }
        if (known == gathering->count && known < RESPONDERS) {
            gathering->found[gathering->count++] = from;
        }
    }
}

static int run(const struct request *request, struct outcome *outcome)
{
    int fd CLEANUP_FD = -1;
    struct gathering gathering = {.count = 0};
    struct endpoint group;
    struct sockaddr_storage address;
    uint8_t payload[DNSWIRE_QUERY];
    size_t size;
    uint16_t id;
    uint64_t port;
    uint64_t count;

    if (request_word_endpoint(request, 0, &group, outcome) < 0 ||
        request_word_number(request, 1, 1, UINT16_MAX, &port, outcome) < 0 ||
        request_number(request, "--count", 1, 1000, 3, &count, outcome) < 0 ||
        make_payload(request, payload, &size, &id, outcome) < 0 ||
        sockets_open(request, group.family, SOCK_DGRAM, 0, &fd, outcome) < 0 ||
        set_options(request, fd, &group, outcome) < 0) {
        return -1;
    }
    group.port = (uint16_t)port;
    socklen_t address_size = endpoint_to_sockaddr(&group, &address);
    for (uint64_t i = 0; i < count; i++) {
        if (sendto(fd, payload, size, 0, (struct sockaddr *)&address, address_size) < 0) {
            return sockerr_judge(fd, errno, &group, outcome);
        }
        gather(request, fd, id, deadline_step_ms(request->deadline, request->timeout_ms / (int64_t)count), &gathering);
    }
    jsonline_number(&outcome->evidence, "sent", (int64_t)count);
    jsonline_number(&outcome->evidence, "answers", gathering.answers);
    jsonline_open_array(&outcome->evidence, "responders");
    for (size_t i = 0; i < gathering.count; i++) {
        sockets_write_endpoint(&outcome->evidence, NULL, &gathering.found[i]);
    }
    jsonline_close_array(&outcome->evidence);
    outcome_say(outcome, gathering.count ? VERDICT_REACHABLE : VERDICT_DROPPED, gathering.count ? 0 : ETIMEDOUT);
    return 0;
}

const struct subcommand subcommand_multicast = {
    .name = "multicast",
    .arguments = "GROUP|BROADCAST PORT",
    .summary = "UDP to a multicast group or a broadcast address; who answers",
    .flags = flags,
    .min_words = 2,
    .max_words = 2,
    .timeout_ms = 2000,
    .run = run,
};
