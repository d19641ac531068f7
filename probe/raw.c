/* Frames of any kind to any MAC: reserved addresses, VLAN tags, odd ethertypes, BPDUs, floods of source MACs.
 * Alone it only sends ("done"); --wait judges an answer, --capture counts what the switch then sends to us.
 */
#include "subcommands.h"

#include "await.h"
#include "capture.h"
#include "craft.h"
#include "literal.h"

#include <errno.h>
#include <string.h>

static const struct flag flags[] = {
    {"--interface", "NAME", "the interface (that of the default route)"},
    {"--source-mac", "MAC", "source MAC (the interface's own)"},
    {"--vlan", "N[,N...]", "VLAN tags, outermost first (0 and 4095 included)"},
    {"--outer-type", "N", "ethertype of the outermost tag (0x8100; QinQ has 0x88a8)"},
    {"--ethertype", "N", "ethertype of the content (0x88b5, for experiments)"},
    {"--snap", NULL, "802.3 length and LLC/SNAP before the content"},
    {"--ip", "ADDRESS", "an IP packet to this address, IPv4 or IPv6"},
    {"--proto", "P", "its protocol: udp, tcp, icmp or a number (udp)"},
    {"--port", "N", "its destination port"},
    {"--arp", "ADDRESS", "an ARP request for this address"},
    {"--bpdu", NULL, "a spanning tree BPDU that claims to be the root"},
    {"--lldp", NULL, "an LLDP advertisement"},
    {"--hex", "BYTES", "the content, in hexadecimal"},
    CRAFT_FLAGS,
    {"--count", "N", "frames to send (1)"},
    {"--flood-macs", NULL, "give each frame the next of a range of random source MACs"},
    {"--send-ms", "MS", "keep sending for MS milliseconds instead of a count"},
    {"--wait", NULL, "wait for an answer and judge it"},
    {"--capture", "ADDRESS", "until the budget ends count packets that are for this address"},
    {NULL, NULL, NULL},
};

enum { CONTENT = 1500 };

struct shot {
    const struct request *request;
    struct ether ether;
    struct wire_ether header;
    bool has_ip;
    bool has_arp;
    struct craft craft;
    struct wire_arp arp;
    uint8_t content[CRAFT_PAYLOAD];
    size_t content_size;
    struct capture capture;
};

/* IEEE 802.1D configuration BPDU with priority 0, behind its LLC header. */
static size_t write_bpdu(uint8_t *content, const uint8_t mac[6])
{
    static const uint8_t start[] = {0x42, 0x42, 0x03, 0, 0, 0, 0, 0};
    static const uint8_t timers[] = {0x80, 0x01, 0, 0, 20, 0, 2, 0, 15, 0};
    size_t at = sizeof(start);

    memcpy(content, start, at);
    memset(content + at, 0, 22);
    memcpy(content + at + 2, mac, 6);  /* root: priority 0, our MAC */
    memcpy(content + at + 14, mac, 6); /* after four bytes of cost: the bridge, the same */
    at += 20;
    memcpy(content + at, timers, sizeof(timers));
    return at + sizeof(timers);
}

/* Chassis (MAC), port (the token), time to live, end. */
static size_t write_lldp(uint8_t *content, const uint8_t mac[6], const struct request *request)
{
    size_t at = 0;

    content[at++] = 1 << 1;
    content[at++] = 7;
    content[at++] = 4;
    memcpy(content + at, mac, 6);
    at += 6;
    content[at++] = 2 << 1;
    content[at++] = (uint8_t)(request->token_size + 1);
    content[at++] = 7;
    memcpy(content + at, request->token, request->token_size);
    at += request->token_size;
    memcpy(content + at, "\x06\x02\x00\x78\x00\x00", 6);
    return at + 6;
}

static int read_tags(const struct request *request, struct wire_ether *header, struct outcome *outcome)
{
    const char *tags = request_text(request, "--vlan", NULL);
    uint64_t outer;

    if (tags && !literal_list16(tags, header->tags, WIRE_TAGS, &header->tag_count)) {
        return outcome_usage(outcome, "--vlan takes at most %d numbers, separated by commas", WIRE_TAGS);
    }
    if (request_number(request, "--outer-type", 0x600, UINT16_MAX, 0x8100, &outer, outcome) < 0) {
        return -1;
    }
    header->tag_types[0] = (uint16_t)outer;
    return 0;
}

static int read_ip_content(const struct request *request, struct shot *shot, struct outcome *outcome)
{
    struct endpoint destination = {0};
    uint8_t protocol;
    uint64_t port;

    if (request_endpoint(request, "--ip", &destination, outcome) < 0 ||
        craft_protocol(request_text(request, "--proto", "udp"), destination.family, &protocol, outcome) < 0 ||
        request_number(request, "--port", 0, UINT16_MAX, 9, &port, outcome) < 0 ||
        craft_read(request, &destination, protocol, (uint16_t)port, &shot->craft, outcome) < 0) {
        return -1;
    }
    shot->has_ip = true;
    shot->header.type = destination.family == AF_INET6 ? 0x86dd : 0x0800;
    return 0;
}

static int read_arp_content(const struct request *request, struct shot *shot, struct outcome *outcome)
{
    struct endpoint target = {0};
    struct endpoint sender = shot->ether.address;

    if (request_endpoint(request, "--arp", &target, outcome) < 0 ||
        request_endpoint(request, "--source", &sender, outcome) < 0) {
        return -1;
    }
    shot->arp.operation = 1;
    memcpy(shot->arp.sender_mac, shot->header.source, 6);
    memcpy(shot->arp.sender_ip, &sender.ip.v4, 4);
    memcpy(shot->arp.target_ip, &target.ip.v4, 4);
    shot->has_arp = true;
    shot->header.type = 0x0806;
    return 0;
}

static int read_content(const struct request *request, struct shot *shot, struct outcome *outcome)
{
    const char *hex = request_text(request, "--hex", NULL);

    if (request_has(request, "--ip")) {
        return read_ip_content(request, shot, outcome);
    }
    if (request_has(request, "--arp")) {
        return read_arp_content(request, shot, outcome);
    }
    if (request_has(request, "--bpdu")) {
        shot->content_size = write_bpdu(shot->content, shot->header.source);
        shot->header.type = (uint16_t)shot->content_size; /* 802.3: a length */
    } else if (request_has(request, "--lldp")) {
        shot->content_size = write_lldp(shot->content, shot->header.source, request);
        shot->header.type = 0x88cc;
    } else if (hex) {
        if (!literal_hex(hex, shot->content, CONTENT, &shot->content_size)) {
            return outcome_usage(outcome, "--hex takes at most %d bytes", CONTENT);
        }
    } else {
        return craft_payload(request, shot->content, &shot->content_size, outcome);
    }
    return 0;
}

static int read_header(const struct request *request, struct shot *shot, struct outcome *outcome)
{
    const char *word = request->words[0];
    uint64_t type;

    if (strcmp(word, "broadcast") == 0) {
        memset(shot->header.destination, 255, 6);
    } else if (strcmp(word, "gateway") == 0) {
        struct deadline step = deadline_step_ms(request->deadline, 1000);
        if (shot->ether.gateway.family != AF_INET ||
            ether_ask(&shot->ether, &shot->ether.gateway, step, shot->header.destination) < 0) {
            return outcome_fail(outcome, EHOSTUNREACH, "the gateway's MAC is not known: no answer to ARP");
        }
    } else if (!literal_mac(word, shot->header.destination)) {
        return outcome_usage(outcome, "\"%s\" is no MAC address, nor \"broadcast\" or \"gateway\"", word);
    }
    memcpy(shot->header.source, shot->ether.mac, 6);
    if (request_mac(request, "--source-mac", shot->header.source, outcome) < 0 ||
        request_number(request, "--ethertype", 0, UINT16_MAX, 0x88b5, &type, outcome) < 0 ||
        read_tags(request, &shot->header, outcome) < 0) {
        return -1;
    }
    shot->header.type = (uint16_t)type;
    return 0;
}

/* Piece number `piece` of the content; false when there is none. */
static bool put_content(const struct shot *shot, size_t piece, struct frame *frame)
{
    if (shot->has_ip) {
        return craft_put(&shot->craft, piece, frame);
    }
    if (piece > 0) {
        return false;
    }
    if (shot->has_arp) {
        wire_put_arp(frame, &shot->arp);
    } else {
        wire_put(frame, shot->content, shot->content_size);
    }
    return true;
}

static bool build_frame(const struct shot *shot, size_t piece, struct frame *frame)
{
    static const uint8_t snap[] = {0xaa, 0xaa, 0x03, 0, 0, 0};
    struct frame content = {.size = 0};
    struct wire_ether header = shot->header;

    if (!put_content(shot, piece, &content)) {
        return false;
    }
    if (request_has(shot->request, "--snap")) {
        header.type = (uint16_t)(content.size + sizeof(snap) + 2);
    }
    wire_put_ether(frame, &header);
    if (request_has(shot->request, "--snap")) {
        wire_put(frame, snap, sizeof(snap));
        wire_put16(frame, shot->header.type);
    }
    wire_put(frame, content.data, content.size);
    frame->overflow = frame->overflow || content.overflow;
    return true;
}

/* The next source MAC of a flood: locally administered, unicast. */
static void next_mac(uint8_t mac[6], uint64_t number)
{
    if (number == 0) {
        uint32_t random = token_random(0);
        mac[0] = 0x02;
        memcpy(mac + 1, &random, 2);
    }
    mac[3] = (uint8_t)(number >> 16);
    mac[4] = (uint8_t)(number >> 8);
    mac[5] = (uint8_t)number;
}

/* Takes what has arrived meanwhile, so that the socket's buffer is not full of our own flood's echo. */
static void drain(struct shot *shot)
{
    struct frame frame;
    struct dissected came;

    for (int i = 0; i < 4096 && ether_poll(&shot->ether, &frame, &came) > 0; i++) {
        capture_take(&shot->capture, &came);
    }
}

static int send_all(struct shot *shot, uint64_t count, uint64_t for_ms, struct outcome *outcome)
{
    struct deadline end = deadline_step_ms(shot->request->deadline, (int64_t)for_ms);
    bool flood = request_has(shot->request, "--flood-macs");
    bool captures = shot->capture.address.family;
    int64_t started = deadline_now_us();
    uint64_t number;

    for (number = 0; for_ms ? deadline_left_ms(end) > 0 : number < count; number++) {
        if (flood) {
            next_mac(shot->header.source, number);
        }
        for (size_t piece = 0;; piece++) {
            struct frame frame = {.size = 0};
            if (!build_frame(shot, piece, &frame)) {
                break;
            }
            if (ether_send(&shot->ether, &frame, outcome) < 0) {
                return -1;
            }
        }
        if (captures && number % 64 == 0) {
            drain(shot);
        }
        if (deadline_left_ms(shot->request->deadline) == 0) {
            break;
        }
    }
    jsonline_number(&outcome->evidence, "sent", (int64_t)number);
    jsonline_milliseconds(&outcome->evidence, "sending_ms", deadline_now_us() - started);
    return 0;
}

static int capture_until_end(struct shot *shot, struct outcome *outcome)
{
    struct frame frame;
    struct dissected came;

    while (ether_receive(&shot->ether, shot->request->deadline, &frame, &came) > 0) {
        capture_take(&shot->capture, &came);
    }
    capture_write(&shot->capture, &outcome->evidence);
    outcome_say(outcome, shot->capture.packets ? VERDICT_REACHABLE : VERDICT_DROPPED, 0);
    return 0;
}

static int fire(struct shot *shot, struct outcome *outcome)
{
    const struct request *request = shot->request;
    char mac[LITERAL_MAC_TEXT];
    uint64_t count;
    uint64_t for_ms;

    if (ether_open(request_text(request, "--interface", NULL), &shot->ether, outcome) < 0 ||
        read_header(request, shot, outcome) < 0 || read_content(request, shot, outcome) < 0 ||
        request_number(request, "--count", 1, 10000000, 1, &count, outcome) < 0 ||
        request_number(request, "--send-ms", 1, 600000, 0, &for_ms, outcome) < 0 ||
        request_endpoint(request, "--capture", &shot->capture.address, outcome) < 0) {
        return -1;
    }
    bool listens = request_has(request, "--wait") || request_has(request, "--capture");
    if (listens && ether_promiscuous(&shot->ether, outcome) < 0) {
        return -1;
    }
    jsonline_text(&outcome->evidence, "to_mac", literal_mac_text(shot->header.destination, mac));
    jsonline_text(&outcome->evidence, "source_mac", literal_mac_text(shot->header.source, mac));
    if (send_all(shot, count, for_ms, outcome) < 0) {
        return -1;
    }
    if (request_has(request, "--capture")) {
        return capture_until_end(shot, outcome);
    }
    if (request_has(request, "--wait")) {
        struct answer_expected expected = {.token = request->token, .token_size = request->token_size};
        if (shot->has_ip) {
            expected = craft_expected(&shot->craft, request);
        }
        return await_answer(&shot->ether, &expected, shot->has_arp ? shot->arp.target_ip : NULL, request->deadline,
                            outcome);
    }
    outcome_say(outcome, VERDICT_DONE, 0);
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct shot shot = {.request = request, .ether = {.fd = -1}};
    int failed = fire(&shot, outcome);

    ether_close(&shot.ether);
    return failed;
}

const struct subcommand subcommand_raw = {
    .name = "raw",
    .arguments = "MAC|broadcast|gateway",
    .summary = "raw frames: any MAC, VLAN, ethertype, flood",
    .flags = flags,
    .min_words = 1,
    .max_words = 1,
    .timeout_ms = 2000,
    .run = run,
};
