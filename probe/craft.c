/* Makes IP packets after the flags of the command line: forged sources, fragments, options, source routes.
 * Who carries them (a raw socket, a frame) is decided in sender.c and raw.c.
 */
#include "craft.h"

#include "literal.h"
#include "sockets.h"

#include <string.h>

enum { OPTION_LOOSE_ROUTE = 131, OPTION_STRICT_ROUTE = 137 };

int craft_protocol(const char *text, int family, uint8_t *ret_protocol, struct outcome *outcome)
{
    uint64_t number;

    if (strcmp(text, "udp") == 0) {
        *ret_protocol = IPPROTO_UDP;
    } else if (strcmp(text, "tcp") == 0) {
        *ret_protocol = IPPROTO_TCP;
    } else if (strcmp(text, "icmp") == 0) {
        *ret_protocol = family == AF_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    } else if (literal_number(text, 0, 255, &number)) {
        *ret_protocol = (uint8_t)number;
    } else {
        return outcome_usage(outcome, "\"%s\" is no protocol: udp, tcp, icmp or a number", text);
    }
    return 0;
}

int craft_payload(const struct request *request, uint8_t *bytes, size_t *ret_size, struct outcome *outcome)
{
    size_t size = 0;
    uint64_t padded;

    if (request_bytes(request, "--payload", bytes, CRAFT_PAYLOAD - sizeof(request->token), &size, outcome) < 0 ||
        request_number(request, "--size", 0, CRAFT_PAYLOAD, 0, &padded, outcome) < 0) {
        return -1;
    }
    if (!request_has(request, "--no-token")) {
        memcpy(bytes + size, request->token, request->token_size);
        size += request->token_size;
    }
    if (size < padded) {
        memset(bytes + size, '.', padded - size);
        size = padded;
    }
    *ret_size = size;
    return 0;
}

static int read_tcp(const struct request *request, struct wire_tcp *tcp, struct outcome *outcome)
{
    static const char letters[] = "FSRPA"; /* in the order of their bits */
    uint64_t sequence;
    uint64_t acknowledge;

    if (request_number(request, "--sequence", 0, UINT32_MAX, token_random(0), &sequence, outcome) < 0 ||
        request_number(request, "--acknowledge", 0, UINT32_MAX, 0, &acknowledge, outcome) < 0) {
        return -1;
    }
    for (const char *at = request_text(request, "--tcp-flags", "S"); *at; at++) {
        const char *found = strchr(letters, *at);
        if (!found) {
            return outcome_usage(outcome, "--tcp-flags takes letters of S A R F P");
        }
        tcp->flags |= (uint8_t)(1 << (found - letters));
    }
    tcp->sequence = (uint32_t)sequence;
    tcp->acknowledgement = (uint32_t)acknowledge;
    tcp->window = 65535;
    return 0;
}

/* RFC 791: the option lists the hops after the first, the header's destination is the first. */
static int read_source_route(const struct request *request, struct wire_ip *ip, struct outcome *outcome)
{
    const char *text = request_text(request, "--source-route", NULL);
    uint8_t *options = ip->options;
    size_t size = 3;

    if (!text) {
        return 0;
    }
    for (;;) {
        size_t length = strcspn(text, ",");
        char hop[ENDPOINT_TEXT];
        struct endpoint address;

        if (length >= sizeof(hop) || size + 4 > WIRE_OPTIONS) {
            return outcome_usage(outcome, "--source-route takes at most nine IPv4 addresses");
        }
        memcpy(hop, text, length);
        hop[length] = '\0';
        if (!endpoint_parse(hop, &address) || address.family != AF_INET) {
            return outcome_usage(outcome, "--source-route: \"%s\" is no IPv4 address", hop);
        }
        memcpy(options + size, &address.ip.v4, 4);
        size += 4;
        if (text[length] == '\0') {
            break;
        }
        text += length + 1;
    }
    options[0] = request_has(request, "--strict") ? OPTION_STRICT_ROUTE : OPTION_LOOSE_ROUTE;
    options[1] = (uint8_t)size;
    options[2] = 4;
    ip->options_size = size;
    return 0;
}

static int read_ip(const struct request *request, struct craft *craft, struct outcome *outcome)
{
    const char *options = request_text(request, "--ip-options", NULL);
    uint64_t ttl;
    uint64_t fragment;

    if (request_endpoint(request, "--source", &craft->ip.source, outcome) < 0 ||
        request_number(request, "--ttl", 1, 255, 64, &ttl, outcome) < 0 ||
        request_number(request, "--fragment", 8, 65528, 0, &fragment, outcome) < 0 ||
        read_source_route(request, &craft->ip, outcome) < 0) {
        return -1;
    }
    if (options && !literal_hex(options, craft->ip.options, WIRE_OPTIONS, &craft->ip.options_size)) {
        return outcome_usage(outcome, "--ip-options takes at most %d bytes in hexadecimal", WIRE_OPTIONS);
    }
    if (craft->ip.source.family != craft->ip.destination.family) {
        return outcome_usage(outcome, "a source address of the destination's family is needed: --source");
    }
    if (fragment % 8 || (fragment && craft->ip.destination.family != AF_INET)) {
        return outcome_usage(outcome, "--fragment takes a multiple of 8, for IPv4");
    }
    craft->ip.ttl = (uint8_t)ttl;
    craft->ip.id = (uint16_t)token_random(65536);
    craft->fragment_size = fragment;
    return 0;
}

int craft_read(const struct request *request, const struct endpoint *destination, uint8_t protocol,
               uint16_t destination_port, struct craft *ret_craft, struct outcome *outcome)
{
    struct craft craft = {
        .ip = {.source = sockets_source_for(destination), .destination = *destination, .protocol = protocol},
        .destination_port = destination_port,
    };
    /* The ephemeral range of IANA: no service listens there. */
    uint64_t fresh = 49152 + token_random(16384);
    uint64_t port;
    uint64_t type;
    uint64_t code;
    uint64_t echo = destination->family == AF_INET6 ? 128 : 8;

    if (read_ip(request, &craft, outcome) < 0 || read_tcp(request, &craft.tcp, outcome) < 0 ||
        request_number(request, "--source-port", 0, UINT16_MAX, fresh, &port, outcome) < 0 ||
        request_number(request, "--icmp-type", 0, 255, echo, &type, outcome) < 0 ||
        request_number(request, "--icmp-code", 0, 255, 0, &code, outcome) < 0 ||
        craft_payload(request, craft.payload, &craft.payload_size, outcome) < 0) {
        return -1;
    }
    craft.source_port = (uint16_t)port;
    craft.tcp.source_port = (uint16_t)port;
    craft.tcp.destination_port = destination_port;
    craft.icmp_type = (uint8_t)type;
    craft.icmp_code = (uint8_t)code;
    *ret_craft = craft;
    return 0;
}

static void put_segment(const struct craft *craft, struct frame *segment)
{
    /* A SYN with data is dropped by some stacks; the ports are its token. */
    bool bare = craft->ip.protocol == IPPROTO_TCP && craft->tcp.flags != (8 | 16);

    switch (craft->ip.protocol) {
    case IPPROTO_UDP:
        wire_put_udp(segment, &craft->ip, craft->source_port, craft->destination_port, craft->payload,
                     craft->payload_size);
        break;
    case IPPROTO_TCP:
        wire_put_tcp(segment, &craft->ip, &craft->tcp, craft->payload, bare ? 0 : craft->payload_size);
        break;
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
        wire_put_icmp(segment, &craft->ip, craft->icmp_type, craft->icmp_code, (uint32_t)craft->source_port << 16 | 1,
                      craft->payload, craft->payload_size);
        break;
    default:
        wire_put(segment, craft->payload, craft->payload_size);
    }
}

bool craft_put(const struct craft *craft, size_t piece, struct frame *frame)
{
    enum { MORE_FRAGMENTS = 0x2000 };
    struct frame segment = {.size = 0};
    struct wire_ip ip = craft->ip;

    put_segment(craft, &segment);
    size_t step = craft->fragment_size ? craft->fragment_size : segment.size;
    size_t at = piece * step;
    if (piece > 0 && at >= segment.size) {
        return false;
    }
    size_t size = segment.size - at < step ? segment.size - at : step;
    ip.fragment = (uint16_t)(at / 8 | (at + size < segment.size ? MORE_FRAGMENTS : 0));
    wire_put_ip(frame, &ip, size);
    wire_put(frame, segment.data + at, size);
    frame->overflow = frame->overflow || segment.overflow;
    return true;
}

struct answer_expected craft_expected(const struct craft *craft, const struct request *request)
{
    struct answer_expected expected = {
        .token = request->token,
        .token_size = request->token_size,
        .source = craft->ip.source,
        .destination = craft->ip.destination,
        .protocol = craft->ip.protocol,
    };
    bool ports = craft->ip.protocol == IPPROTO_UDP || craft->ip.protocol == IPPROTO_TCP;

    expected.source.port = ports ? craft->source_port : 0;
    expected.destination.port = ports ? craft->destination_port : 0;
    return expected;
}
