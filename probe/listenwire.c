/* Listeners below the ports: one IP protocol on a raw socket (after the filters), or all frames of an interface (before
 * them). For a host under attack the first tells the truth, the second only what was on the wire.
 */
#include "craft.h"
#include "ether.h"
#include "listen.h"
#include "literal.h"
#include "sockets.h"

#include <errno.h>
#include <string.h>

enum { SHOWN = 64 };

static void write_packet(const struct dissected *packet, struct jsonline *line)
{
    char text[ENDPOINT_TEXT];

    if (packet->has_ip) {
        jsonline_text(line, "to", endpoint_text(&packet->destination, text));
        jsonline_number(line, "to_port", packet->destination.port);
        jsonline_number(line, "protocol", packet->protocol);
        jsonline_number(line, "fragment_offset", packet->fragment_offset);
        jsonline_number(line, "ip_options", (int64_t)packet->ip_options_size);
    }
    if (packet->has_icmp) {
        jsonline_number(line, "icmp_type", packet->icmp_type);
        jsonline_number(line, "icmp_code", packet->icmp_code);
    }
    if (packet->has_tcp) {
        jsonline_number(line, "tcp_flags", packet->tcp_flags);
        jsonline_number(line, "tcp_sequence", packet->tcp_sequence);
        jsonline_number(line, "tcp_acknowledgement", packet->tcp_acknowledgement);
    }
    jsonline_bytes(line, "data", packet->payload, packet->payload_size, SHOWN);
}

static void write_frame(const struct dissected *frame, struct jsonline *line)
{
    char mac[LITERAL_MAC_TEXT];
    char text[ENDPOINT_TEXT];

    jsonline_text(line, "source_mac", literal_mac_text(frame->source_mac, mac));
    jsonline_text(line, "destination_mac", literal_mac_text(frame->destination_mac, mac));
    jsonline_number(line, "ethertype", frame->type);
    jsonline_open_array(line, "vlans");
    for (size_t i = 0; i < frame->tag_count; i++) {
        jsonline_number(line, NULL, frame->tags[i]);
    }
    jsonline_close_array(line);
    if (frame->has_arp) {
        struct endpoint sender = endpoint_from_v4(frame->arp.sender_ip);
        struct endpoint target = endpoint_from_v4(frame->arp.target_ip);
        jsonline_number(line, "arp", frame->arp.operation);
        jsonline_text(line, "arp_sender", endpoint_text(&sender, text));
        jsonline_text(line, "arp_target", endpoint_text(&target, text));
    }
    write_packet(frame, line);
}

int listenwire_ip(struct hearing *hearing, struct outcome *outcome)
{
    const struct request *request = hearing->request;
    const char *interface = request_text(request, "--interface", NULL);
    struct endpoint address = {.family = AF_INET};
    uint8_t bytes[WIRE_FRAME];
    uint8_t protocol;
    uint64_t port;

    if (request_endpoint(request, "--address", &address, outcome) < 0 ||
        request_number(request, "--port", 0, UINT16_MAX, 0, &port, outcome) < 0 ||
        craft_protocol(request_text(request, "--protocol", "icmp"), address.family, &protocol, outcome) < 0) {
        return -1;
    }
    if (address.family != AF_INET) {
        return outcome_usage(outcome, "listen ip is for IPv4; listen ether hears IPv6");
    }
    int fd CLEANUP_FD = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0) {
        return outcome_fail(outcome, errno, "opening a raw socket: %s", strerror(errno));
    }
    if (interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        return outcome_fail(outcome, errno, "binding to interface %s: %s", interface, strerror(errno));
    }
    if (address.ip.v4.s_addr && sockets_bind(fd, &address, outcome) < 0) {
        return -1;
    }
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}};
    hearing_ready("ip", protocol);
    while (hearing_wait(hearing, fds, 2)) {
        struct dissected packet;
        struct jsonline *line;
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

        if (got < 0 || !dissect_ip(bytes, (size_t)got, &packet) || (port && packet.destination.port != port)) {
            continue;
        }
        (void)hearing_take(hearing, &packet.source, packet.payload, packet.payload_size, &line);
        if (line) {
            write_packet(&packet, line);
        }
        hearing_close(line);
    }
    return 0;
}

int listenwire_ether(struct hearing *hearing, struct outcome *outcome)
{
    const struct request *request = hearing->request;
    struct ether ether CLEANUP_ETHER = {.fd = -1};
    struct endpoint target = {0};
    uint64_t type;
    uint64_t port;

    if (request_number(request, "--ethertype", 0, UINT16_MAX, 0, &type, outcome) < 0 ||
        request_number(request, "--port", 0, UINT16_MAX, 0, &port, outcome) < 0 ||
        request_endpoint(request, "--to-ip", &target, outcome) < 0 ||
        ether_open(request_text(request, "--interface", NULL), &ether, outcome) < 0 ||
        ether_promiscuous(&ether, outcome) < 0) {
        return -1;
    }
    struct pollfd fds[2] = {{.fd = ether.fd, .events = POLLIN}};
    hearing_ready("ether", ether.index);
    while (hearing_wait(hearing, fds, 2)) {
        struct frame frame;
        struct dissected came;
        struct jsonline *line;

        if (ether_poll(&ether, &frame, &came) <= 0 || (type && came.type != type) ||
            (target.family && !(came.has_ip && endpoint_same_address(&came.destination, &target))) ||
            (port && came.destination.port != port)) {
            continue;
        }
        (void)hearing_take(hearing, came.has_ip ? &came.source : NULL, frame.data, frame.size, &line);
        if (line) {
            write_frame(&came, line);
        }
        hearing_close(line);
    }
    return 0;
}
