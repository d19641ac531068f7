/* Listens on the wire for the answer to a packet that no socket of the stack would hear an answer to.
 * The judgement itself is answer.c's.
 */
#include "await.h"

#include "literal.h"

#include <errno.h>
#include <string.h>

static void write_answer(const struct dissected *came, struct outcome *outcome)
{
    char text[ENDPOINT_TEXT];
    char mac[LITERAL_MAC_TEXT];

    jsonline_open_object(&outcome->evidence, "answer");
    jsonline_text(&outcome->evidence, "from_mac", literal_mac_text(came->source_mac, mac));
    jsonline_number(&outcome->evidence, "ethertype", came->type);
    if (came->has_ip) {
        jsonline_text(&outcome->evidence, "from", endpoint_text(&came->source, text));
        jsonline_number(&outcome->evidence, "protocol", came->protocol);
    }
    if (came->has_icmp) {
        jsonline_number(&outcome->evidence, "icmp_type", came->icmp_type);
        jsonline_number(&outcome->evidence, "icmp_code", came->icmp_code);
    }
    if (came->has_tcp) {
        jsonline_number(&outcome->evidence, "tcp_flags", came->tcp_flags);
    }
    jsonline_close_object(&outcome->evidence);
}

int await_answer(const struct ether *ether, const struct answer_expected *expected, const uint8_t *target_ip,
                 struct deadline deadline, struct outcome *outcome)
{
    struct frame frame;
    struct dissected came;
    int64_t seen = 0;
    int ready;

    outcome_say(outcome, VERDICT_DROPPED, ETIMEDOUT);
    while ((ready = ether_receive(ether, deadline, &frame, &came)) > 0) {
        seen++;
        if (memcmp(came.source_mac, ether->mac, 6) == 0) {
            continue;
        }
        enum answer_kind kind = answer_of(expected, &came);
        if (target_ip && came.has_arp && came.arp.operation == 2 && memcmp(came.arp.sender_ip, target_ip, 4) == 0) {
            kind = ANSWER_REPLY;
        }
        if (kind != ANSWER_NONE) {
            write_answer(&came, outcome);
            outcome_say(outcome, answer_verdict(kind),
                        kind == ANSWER_REFUSAL       ? ECONNREFUSED
                        : kind == ANSWER_UNREACHABLE ? EHOSTUNREACH
                                                     : 0);
            break;
        }
    }
    jsonline_number(&outcome->evidence, "frames_seen", seen);
    if (ready < 0) {
        return outcome_fail(outcome, errno, "receiving frames: %s", strerror(errno));
    }
    return 0;
}
