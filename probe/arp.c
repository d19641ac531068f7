/* ARP: who has an address, and taking one that is another's, with a count of what that wins.
 * Any other frame is raw.c's.
 */
#include "subcommands.h"

#include "capture.h"
#include "ether.h"
#include "literal.h"

#include <errno.h>
#include <string.h>

static const struct flag flags[] = {
    {"--interface", "NAME", "the interface (that of the default route)"},
    {"--sender-ip", "ADDRESS", "who-has: the address that asks"},
    {"--sender-mac", "MAC", "the sender MAC inside the message (the interface's own)"},
    {"--ether-source", "MAC", "the frame's source MAC (the interface's own)"},
    {"--to", "MAC", "the frame's destination (broadcast)"},
    {"--target-ip", "ADDRESS", "claim: whom to tell it (the claimed address itself: gratuitous)"},
    {"--as", "KIND", "claim: request, reply or both (both)"},
    {"--vlan", "N[,N...]", "VLAN tags, outermost first"},
    {"--count", "N", "messages (who-has 3, claim: until the budget ends)"},
    {"--interval-ms", "MS", "time between them (who-has 300, claim 50)"},
    {"--quiet", NULL, "claim: do not answer those who ask for the address"},
    {NULL, NULL, NULL},
};

struct talk {
    const struct request *request;
    struct ether ether;
    struct wire_ether header;
    struct wire_arp message;
    struct endpoint address; /* asked for or claimed */
    struct capture capture;
    uint64_t count;
    uint64_t interval_ms;
    int64_t sent;
    int64_t asked;   /* questions for the claimed address that reached us */
    int64_t opposed; /* answers of its owner that reached us */
};

static int read_flags(struct talk *talk, bool claim, struct outcome *outcome)
{
    const struct request *request = talk->request;
    const char *tags = request_text(request, "--vlan", NULL);
    struct endpoint sender = claim ? talk->address : talk->ether.address;
    struct endpoint target = talk->address;

    talk->header = (struct wire_ether){.destination = {255, 255, 255, 255, 255, 255}, .type = 0x0806};
    memcpy(talk->header.source, talk->ether.mac, 6);
    memcpy(talk->message.sender_mac, talk->ether.mac, 6);
    if (request_endpoint(request, "--sender-ip", &sender, outcome) < 0 ||
        request_endpoint(request, "--target-ip", &target, outcome) < 0 ||
        request_mac(request, "--sender-mac", talk->message.sender_mac, outcome) < 0 ||
        request_mac(request, "--ether-source", talk->header.source, outcome) < 0 ||
        request_mac(request, "--to", talk->header.destination, outcome) < 0 ||
        request_number(request, "--count", 1, 1000000, claim ? 1000000 : 3, &talk->count, outcome) < 0 ||
        request_number(request, "--interval-ms", 1, 60000, claim ? 50 : 300, &talk->interval_ms, outcome) < 0) {
        return -1;
    }
    if (sender.family == AF_INET6 || target.family != AF_INET) {
        return outcome_usage(outcome, "ARP is about IPv4 addresses");
    }
    if (tags && !literal_list16(tags, talk->header.tags, WIRE_TAGS, &talk->header.tag_count)) {
        return outcome_usage(outcome, "--vlan takes at most %d numbers, separated by commas", WIRE_TAGS);
    }
    memcpy(talk->message.sender_ip, &sender.ip.v4, 4);
    memcpy(talk->message.target_ip, &target.ip.v4, 4);
    return 0;
}

static int send_message(struct talk *talk, const struct wire_ether *header, const struct wire_arp *message,
                        struct outcome *outcome)
{
    struct frame frame = {.size = 0};

    wire_put_ether(&frame, header);
    wire_put_arp(&frame, message);
    talk->sent++;
    return ether_send(&talk->ether, &frame, outcome);
}

/* Every MAC that answers is told: two of them are a finding. */
static int who_has(struct talk *talk, struct outcome *outcome)
{
    enum { MACS = 8 };
    uint8_t macs[MACS][6];
    size_t mac_count = 0;
    char text[LITERAL_MAC_TEXT];
    struct frame frame;
    struct dissected came;

    talk->message.operation = 1;
    for (uint64_t i = 0; i < talk->count && deadline_left_ms(talk->request->deadline) > 0 && mac_count == 0; i++) {
        struct deadline step = deadline_step_ms(talk->request->deadline, (int64_t)talk->interval_ms);
        if (send_message(talk, &talk->header, &talk->message, outcome) < 0) {
            return -1;
        }
        while (ether_receive(&talk->ether, step, &frame, &came) > 0) {
            size_t known = 0;
            if (!came.has_arp || came.arp.operation != 2 || memcmp(came.arp.sender_ip, &talk->address.ip.v4, 4) != 0) {
                continue;
            }
            while (known < mac_count && memcmp(macs[known], came.arp.sender_mac, 6) != 0) {
                known++;
            }
            if (known == mac_count && mac_count < MACS) {
                memcpy(macs[mac_count++], came.arp.sender_mac, 6);
            }
        }
    }
    jsonline_number(&outcome->evidence, "sent", talk->sent);
    jsonline_open_array(&outcome->evidence, "macs");
    for (size_t i = 0; i < mac_count; i++) {
        jsonline_text(&outcome->evidence, NULL, literal_mac_text(macs[i], text));
    }
    jsonline_close_array(&outcome->evidence);
    outcome_say(outcome, mac_count ? VERDICT_REACHABLE : VERDICT_DROPPED, mac_count ? 0 : ETIMEDOUT);
    return 0;
}

/* Tells the one who asks, as a real thief would. */
static int answer_question(struct talk *talk, const struct dissected *question, struct outcome *outcome)
{
    struct wire_ether header = talk->header;
    struct wire_arp message = talk->message;

    message.operation = 2;
    memcpy(message.target_mac, question->arp.sender_mac, 6);
    memcpy(message.target_ip, question->arp.sender_ip, 4);
    memcpy(header.destination, question->source_mac, 6);
    return send_message(talk, &header, &message, outcome);
}

static int hold_claim(struct talk *talk, struct deadline step, struct outcome *outcome)
{
    struct frame frame;
    struct dissected came;

    while (ether_receive(&talk->ether, step, &frame, &came) > 0) {
        capture_take(&talk->capture, &came);
        if (!came.has_arp || memcmp(came.source_mac, talk->header.source, 6) == 0) {
            continue;
        }
        if (came.arp.operation == 1 && memcmp(came.arp.target_ip, &talk->address.ip.v4, 4) == 0) {
            talk->asked++;
            if (!request_has(talk->request, "--quiet") && answer_question(talk, &came, outcome) < 0) {
                return -1;
            }
        }
        talk->opposed += came.arp.operation == 2 && memcmp(came.arp.sender_ip, &talk->address.ip.v4, 4) == 0;
    }
    return 0;
}

static int claim(struct talk *talk, struct outcome *outcome)
{
    const char *kind = request_text(talk->request, "--as", "both");
    bool both = strcmp(kind, "both") == 0;
    bool reply = both || strcmp(kind, "reply") == 0;
    bool ask = both || strcmp(kind, "request") == 0;

    if (!reply && !ask) {
        return outcome_usage(outcome, "--as is request, reply or both");
    }
    talk->capture.address = talk->address;
    for (uint64_t i = 0; i < talk->count && deadline_left_ms(talk->request->deadline) > 0; i++) {
        struct deadline step = deadline_step_ms(talk->request->deadline, (int64_t)talk->interval_ms);
        for (uint16_t operation = 1; operation <= 2; operation++) {
            talk->message.operation = operation;
            if ((operation == 1 ? ask : reply) && send_message(talk, &talk->header, &talk->message, outcome) < 0) {
                return -1;
            }
        }
        if (hold_claim(talk, step, outcome) < 0) {
            return -1;
        }
    }
    if (hold_claim(talk, talk->request->deadline, outcome) < 0) {
        return -1;
    }
    jsonline_number(&outcome->evidence, "sent", talk->sent);
    jsonline_number(&outcome->evidence, "asked", talk->asked);
    jsonline_number(&outcome->evidence, "opposed", talk->opposed);
    capture_write(&talk->capture, &outcome->evidence);
    outcome_say(outcome, talk->capture.packets ? VERDICT_REACHABLE : VERDICT_DROPPED, 0);
    return 0;
}

static int run(const struct request *request, struct outcome *outcome)
{
    struct talk talk = {.request = request, .ether = {.fd = -1}};
    bool claims = strcmp(request->words[0], "claim") == 0;
    int result = -1;

    if (!claims && strcmp(request->words[0], "who-has") != 0) {
        return outcome_usage(outcome, "arp who-has ADDRESS, or arp claim ADDRESS");
    }
    if (request_word_endpoint(request, 1, &talk.address, outcome) == 0 &&
        ether_open(request_text(request, "--interface", NULL), &talk.ether, outcome) == 0 &&
        read_flags(&talk, claims, outcome) == 0) {
        result = claims ? claim(&talk, outcome) : who_has(&talk, outcome);
    }
    ether_close(&talk.ether);
    return result;
}

const struct subcommand subcommand_arp = {
    .name = "arp",
    .arguments = "who-has|claim ADDRESS",
    .summary = "ask who has an address; or take it, and count what comes",
    .flags = flags,
    .min_words = 2,
    .max_words = 2,
    .timeout_ms = 2000,
    .run = run,
};
