#pragma once

#include "dissect.h"
#include "outcome.h"

/* What was sent, as far as an answer can be told by it. */
struct answer_expected {
    const void *token;
    size_t token_size;
    struct endpoint source; /* as the packet claimed; with the port */
    struct endpoint destination;
    uint8_t protocol;
};

enum answer_kind {
    ANSWER_NONE,       /* the packet has nothing to do with ours */
    ANSWER_REPLY,      /* somebody answered: our token came back, or a SYN-ACK to our ports */
    ANSWER_REFUSAL,    /* RST, or a port or protocol unreachable by the destination itself */
    ANSWER_UNREACHABLE /* any other ICMP error that quotes ours */
};

/* Judges a packet that was received. */
enum answer_kind answer_of(const struct answer_expected *expected, const struct dissected *received);
/* REPLY is reachable, REFUSAL refused, UNREACHABLE unreachable, NONE dropped. */
enum verdict answer_verdict(enum answer_kind kind);
/* True for the ICMP errors by which a destination says that the packet reached it (port and protocol unreachable). */
bool answer_is_refusal(int family, uint8_t icmp_type, uint8_t icmp_code);
