/* Forged ICMP errors about a flow that is somebody else's: unreachable (resets it), fragmentation needed (shrinks its
 * path MTU), redirect. They quote the flow's packet; only sending is done here, the victim is watched by the caller.
 */
#include "subcommands.h"

#include "craft.h"
#include "sender.h"
#include "sockets.h"

#include <string.h>

static const struct flag flags[] = {
    {"--kind", "K", "port, host, net, protocol, admin, frag, ttl or redirect (port)"},
    {"--quote", "P", "the flow's protocol: udp or tcp (udp)"},
    {"--quote-source", "ADDRESS:PORT", "who sent the quoted packet: normally the victim"},
    {"--quote-destination", "ADDRESS:PORT", "and to whom"},
    {"--quote-sequence", "N", "TCP sequence number in the quote (0)"},
    {"--mtu", "N", "for frag: the MTU to claim (576)"},
    {"--gateway", "ADDRESS", "for redirect: the gateway to claim (this machine)"},
    {"--source", "ADDRESS", "the router that the error claims to be from (this machine)"},
    {"--count", "N", "packets to send (1)"},
    SENDER_FLAGS,
    {NULL, NULL, NULL},
};

struct kind {
    const char *name;
    uint8_t type4;
    uint8_t code4;
    uint8_t type6;
    uint8_t code6;
};

static const struct kind kinds[] = {
    {"port", 3, 3, 1, 4},   {"host", 3, 1, 1, 3}, {"net", 3, 0, 1, 0},  {"protocol", 3, 2, 4, 1},
    {"admin", 3, 13, 1, 1}, {"frag", 3, 4, 2, 0}, {"ttl", 11, 0, 3, 0}, {"redirect", 5, 1, 5, 1},
};

static const struct kind *kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static int read_port_flag(const struct request *request, const char *flag, struct endpoint *ret_endpoint,
                          struct outcome *outcome)
{
    const char *text = request_text(request, flag, "");

    if (!endpoint_parse_with_port(text, ret_endpoint)) {
        return outcome_usage(outcome, "%s ADDRESS:PORT is needed", flag);
    }
    return 0;
}

/* The packet that the error is said to be about. */
static int make_quote(const struct request *request, int family, struct frame *quote, struct outcome *outcome)
{
    struct wire_ip ip = {.id = (uint16_t)token_random(65536), .fragment = 0x4000};
    struct frame segment = {.size = 0};
    uint64_t sequence;

    if (read_port_flag(request, "--quote-source", &ip.source, outcome) < 0 ||
        read_port_flag(request, "--quote-destination", &ip.destination, outcome) < 0 ||
        craft_protocol(request_text(request, "--quote", "udp"), family, &ip.protocol, outcome) < 0 ||
        request_number(request, "--quote-sequence", 0, UINT32_MAX, 0, &sequence, outcome) < 0) {
        return -1;
    }
    if (ip.source.family != family || ip.destination.family != family) {
        return outcome_usage(outcome, "the quoted flow is of another family than the target");
    }
    if (ip.protocol == IPPROTO_TCP) {
        struct wire_tcp tcp = {
            .source_port = ip.source.port,
            .destination_port = ip.destination.port,
            .sequence = (uint32_t)sequence,
            .flags = 16,
            .window = 501,
        };
        wire_put_tcp(&segment, &ip, &tcp, request->token, request->token_size);
    } else {
        wire_put_udp(&segment, &ip, ip.source.port, ip.destination.port, request->token, request->token_size);
    }
    wire_put_ip(quote, &ip, segment.size);
    wire_put(quote, segment.data, segment.size);
    return 0;
}

/* The second word of the header: an MTU, a gateway, or nothing. */
static int read_rest(const struct request *request, const struct kind *kind, const struct wire_ip *ip,
                     uint32_t *ret_rest, struct outcome *outcome)
{
    struct endpoint gateway = ip->source;
    uint64_t mtu;

    if (request_number(request, "--mtu", 0, UINT16_MAX, 576, &mtu, outcome) < 0 ||
        request_endpoint(request, "--gateway", &gateway, outcome) < 0) {
        return -1;
    }
    *ret_rest = 0;
    if (strcmp(kind->name, "frag") == 0) {
        *ret_rest = (uint32_t)mtu;
    } else if (strcmp(kind->name, "redirect") == 0) {
        if (gateway.family != AF_INET) {
            return outcome_usage(outcome, "a redirect is made for IPv4 alone");
        }
        *ret_rest = ntohl(gateway.ip.v4.s_addr);
    }
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct sender sender CLEANUP_SENDER = SENDER_CLOSED;
    const struct kind *kind = kind_named(request_text(request, "--kind", "port"));
    struct wire_ip ip = {.protocol = IPPROTO_ICMP};
    struct frame quote = {.size = 0};
    struct frame message = {.size = 0};
    struct frame packet = {.size = 0};
    uint64_t count;
    uint32_t rest;

    if (!kind) {
        return outcome_usage(outcome, "--kind is port, host, net, protocol, admin, frag, ttl or redirect");
    }
    if (request_word_endpoint(request, 0, &ip.destination, outcome) < 0) {
        return -1;
    }
    bool v6 = ip.destination.family == AF_INET6;
    ip.source = sockets_source_for(&ip.destination);
    ip.protocol = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    if (request_endpoint(request, "--source", &ip.source, outcome) < 0 ||
        request_number(request, "--count", 1, 100000, 1, &count, outcome) < 0 ||
        make_quote(request, ip.destination.family, &quote, outcome) < 0 ||
        read_rest(request, kind, &ip, &rest, outcome) < 0 ||
        sender_open(request, ip.destination.family, &sender, outcome) < 0) {
        return -1;
    }
    wire_put_icmp(&message, &ip, v6 ? kind->type6 : kind->type4, v6 ? kind->code6 : kind->code4, rest, quote.data,
                  quote.size);
    wire_put_ip(&packet, &ip, message.size);
    wire_put(&packet, message.data, message.size);
    for (uint64_t i = 0; i < count; i++) {
        if (sender_send(&sender, &packet, &ip.destination, outcome) < 0) {
            return -1;
        }
    }
    jsonline_text(&outcome->evidence, "kind", kind->name);
    jsonline_number(&outcome->evidence, "sent", (int64_t)count);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

const struct subcommand subcommand_icmp_error = {
    .name = "icmp-error",
    .arguments = "ADDRESS --quote-source A:P --quote-destination A:P",
    .summary = "forged ICMP errors that quote somebody's flow",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 2000,
    .run = run,
};
