/* Neighbour discovery by hand (RFC 4861): rogue router advertisements, solicitations of routers and neighbours.
 * Switching the guest's own IPv6 on is in ipv6.c.
 */
#include "ndp.h"

#include "literal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROUTER_SOLICIT = 133, ROUTER_ADVERTISE = 134, NEIGHBOUR_SOLICIT = 135, NEIGHBOUR_ADVERTISE = 136 };

struct endpoint ndp_link_local(const uint8_t mac[6])
{
    uint8_t address[16] = {0xfe, 0x80};

    address[8] = mac[0] ^ 2;
    address[9] = mac[1];
    address[10] = mac[2];
    address[11] = 0xff;
    address[12] = 0xfe;
    memcpy(address + 13, mac + 3, 3);
    return endpoint_from_v6(address);
}

/* A message of neighbour discovery, hop limit 255, to a multicast group by its MAC. */
static int send_message(const struct ether *ether, const struct endpoint *destination, uint8_t type, uint32_t rest,
                        const void *body, size_t size, struct outcome *outcome)
{
    struct wire_ip ip = {
        .source = ndp_link_local(ether->mac), .destination = *destination, .protocol = IPPROTO_ICMPV6, .ttl = 255};
    struct wire_ether header = {.destination = {0x33, 0x33}, .type = 0x86dd};
    struct frame message = {.size = 0};
    struct frame frame = {.size = 0};

    memcpy(header.destination + 2, (const uint8_t *)&destination->ip.v6 + 12, 4);
    memcpy(header.source, ether->mac, 6);
    wire_put_icmp(&message, &ip, type, 0, rest, body, size);
    wire_put_ether(&frame, &header);
    wire_put_ip(&frame, &ip, message.size);
    wire_put(&frame, message.data, message.size);
    return ether_send(ether, &frame, outcome);
}

static struct endpoint group(const char *text)
{
    struct endpoint endpoint = {0};

    (void)endpoint_parse(text, &endpoint);
    return endpoint;
}

int ndp_advertise(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    struct endpoint all_nodes = group("ff02::1");
    struct endpoint prefix = group("fd88:bad:bad:bad::");
    uint8_t body[8 + 32 + 8] = {0};
    uint64_t lifetime;
    uint64_t count;

    if (request_endpoint(request, "--prefix", &prefix, outcome) < 0 ||
        request_number(request, "--lifetime", 0, 65535, 60, &lifetime, outcome) < 0 ||
        request_number(request, "--count", 1, 10000, 1, &count, outcome) < 0) {
        return -1;
    }
    if (prefix.family != AF_INET6) {
        return outcome_usage(outcome, "--prefix is an IPv6 prefix of 64 bits, without the length");
    }
    /* After reachable time and retransmit time: prefix information, /64, on link and autonomous; our link address. */
    uint32_t seconds = htonl((uint32_t)lifetime);
    body[8] = 3;
    body[9] = 4;
    body[10] = 64;
    body[11] = 0xc0;
    memcpy(body + 12, &seconds, 4);
    memcpy(body + 16, &seconds, 4);
    memcpy(body + 24, &prefix.ip.v6, 8);
    body[40] = 1;
    body[41] = 1;
    memcpy(body + 42, ether->mac, 6);
    for (uint64_t i = 0; i < count; i++) {
        if (send_message(ether, &all_nodes, ROUTER_ADVERTISE, 64u << 24 | (uint32_t)lifetime, body, sizeof(body),
                         outcome) < 0) {
            return -1;
        }
    }
    jsonline_number(&outcome->evidence, "sent", (int64_t)count);
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

/* Waits for a message of this type from anyone else; 1 and it is in *ret_came. */
static int await_type(const struct ether *ether, struct deadline deadline, uint8_t type, struct frame *frame,
                      struct dissected *ret_came)
{
    int ready;

    while ((ready = ether_receive(ether, deadline, frame, ret_came)) > 0) {
        if (ret_came->has_icmp && ret_came->source.family == AF_INET6 && ret_came->icmp_type == type &&
            memcmp(ret_came->source_mac, ether->mac, 6) != 0) {
            return 1;
        }
    }
    return ready;
}

static void write_sender(const struct dissected *came, const char *key, struct jsonline *line)
{
    char text[ENDPOINT_TEXT];
    char mac[LITERAL_MAC_TEXT];

    jsonline_open_object(line, key);
    jsonline_text(line, "address", endpoint_text(&came->source, text));
    jsonline_text(line, "mac", literal_mac_text(came->source_mac, mac));
    jsonline_close_object(line);
}

int ndp_solicit(const struct request *request, const struct ether *ether, struct outcome *outcome)
{
    struct endpoint all_routers = group("ff02::2");
    uint8_t body[8] = {1, 1};
    struct frame frame = {.size = 0};
    struct dissected came;
    int ready = 0;

    memcpy(body + 2, ether->mac, 6);
    for (int attempt = 0; attempt < 3 && ready == 0; attempt++) {
        struct deadline step = deadline_step_ms(request->deadline, request->timeout_ms / 3);
        if (send_message(ether, &all_routers, ROUTER_SOLICIT, 0, body, sizeof(body), outcome) < 0) {
            return -1;
        }
        ready = await_type(ether, step, ROUTER_ADVERTISE, &frame, &came);
    }
    if (ready < 0) {
        return outcome_fail(outcome, errno, "receiving frames: %s", strerror(errno));
    }
    if (ready > 0) {
        write_sender(&came, "router", &outcome->evidence);
        jsonline_number(&outcome->evidence, "lifetime", came.icmp_rest & 0xffff);
    }
    outcome_say(outcome, ready ? VERDICT_REACHABLE : VERDICT_DROPPED, ready ? 0 : ETIMEDOUT);
    return 0;
}

int ndp_ask(const struct request *request, const struct ether *ether, const struct endpoint *target,
            struct outcome *outcome)
{
    struct endpoint solicited = group("ff02::1:ff00:0");
    uint8_t body[24] = {0};
    struct frame frame = {.size = 0};
    struct dissected came;
    int ready = 0;

    memcpy((uint8_t *)&solicited.ip.v6 + 13, (const uint8_t *)&target->ip.v6 + 13, 3);
    memcpy(body, &target->ip.v6, 16);
    body[16] = 1;
    body[17] = 1;
    memcpy(body + 18, ether->mac, 6);
    for (int attempt = 0; attempt < 3 && ready == 0; attempt++) {
        struct deadline step = deadline_step_ms(request->deadline, request->timeout_ms / 3);
        if (send_message(ether, &solicited, NEIGHBOUR_SOLICIT, 0, body, sizeof(body), outcome) < 0) {
            return -1;
        }
        while ((ready = await_type(ether, step, NEIGHBOUR_ADVERTISE, &frame, &came)) > 0) {
            if (came.payload_size >= 16 && memcmp(came.payload, &target->ip.v6, 16) == 0) {
                break;
            }
        }
    }
    if (ready < 0) {
        return outcome_fail(outcome, errno, "receiving frames: %s", strerror(errno));
    }
    if (ready > 0) {
        write_sender(&came, "neighbour", &outcome->evidence);
    }
    outcome_say(outcome, ready ? VERDICT_REACHABLE : VERDICT_DROPPED, ready ? 0 : ETIMEDOUT);
    return 0;
}
