/* Decides whether a packet that came in answers the one that went out, and what it says.
 * It reads packets only; errors that the kernel reports on a socket are in sockerr.c.
 */
#include "answer.h"

#include <string.h>

bool answer_is_refusal(int family, uint8_t icmp_type, uint8_t icmp_code)
{
    if (family == AF_INET6) {
        /* Port unreachable; "unrecognized next header" is how IPv6 says protocol unreachable. */
        return (icmp_type == 1 && icmp_code == 4) || (icmp_type == 4 && icmp_code == 1);
    }
    return icmp_type == 3 && (icmp_code == 2 || icmp_code == 3);
}

/* A quote may be cut after eight bytes of the segment: where the token is not in it, addresses and ports must do. */
static bool quotes_ours(const struct answer_expected *expected, const struct dissected *quoted)
{
    if (dissect_contains(quoted->payload, quoted->payload_size, expected->token, expected->token_size)) {
        return true;
    }
    return expected->source.port != 0 && quoted->protocol == expected->protocol &&
           endpoint_same_address(&quoted->destination, &expected->destination) &&
           endpoint_same_address(&quoted->source, &expected->source) && quoted->source.port == expected->source.port &&
           quoted->destination.port == expected->destination.port;
}

static enum answer_kind tcp_answer(const struct answer_expected *expected, const struct dissected *received)
{
    enum { FLAG_RST = 4, FLAG_ACK = 16 };

    if (!endpoint_same_address(&received->source, &expected->destination) ||
        received->source.port != expected->destination.port || received->destination.port != expected->source.port) {
        return ANSWER_NONE;
    }
    if (received->tcp_flags & FLAG_RST) {
        return ANSWER_REFUSAL;
    }
    bool answered = received->tcp_flags & FLAG_ACK;
    return answered ? ANSWER_REPLY : ANSWER_NONE;
}

enum answer_kind answer_of(const struct answer_expected *expected, const struct dissected *received)
{
    struct dissected quoted;

    /* Our own packet, reflected by a bridge, carries our token as well. Talking to ourselves is another matter. */
    if (received->has_ip && !endpoint_same_address(&expected->source, &expected->destination) &&
        endpoint_same_address(&received->source, &expected->source) &&
        endpoint_same_address(&received->destination, &expected->destination)) {
        return ANSWER_NONE;
    }
    if (dissect_quoted(received, &quoted)) {
        if (!quotes_ours(expected, &quoted)) {
            return ANSWER_NONE;
        }
        bool by_destination = endpoint_same_address(&received->source, &expected->destination);
        return by_destination && answer_is_refusal(received->source.family, received->icmp_type, received->icmp_code)
                   ? ANSWER_REFUSAL
                   : ANSWER_UNREACHABLE;
    }
    if (received->has_tcp && expected->protocol == IPPROTO_TCP) {
        return tcp_answer(expected, received);
    }
    if (dissect_contains(received->payload, received->payload_size, expected->token, expected->token_size)) {
        return ANSWER_REPLY;
    }
    return ANSWER_NONE;
}

enum verdict answer_verdict(enum answer_kind kind)
{
    switch (kind) {
    case ANSWER_REPLY:
        return VERDICT_REACHABLE;
    case ANSWER_REFUSAL:
        return VERDICT_REFUSED;
    case ANSWER_UNREACHABLE:
        return VERDICT_UNREACHABLE;
    case ANSWER_NONE:
        break;
    }
    return VERDICT_DROPPED;
}
