#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DNS messages (RFC 1035) as bytes. Names in text have no final dot (the root is "."); a byte of a label that is not
 * printable, a dot or a backslash is written \DDD. */
enum {
    DNSWIRE_NAME = 1024, /* 255 bytes, each of them escaped */
    DNSWIRE_DATA = 1100,
    DNSWIRE_RECORDS = 24,
    DNSWIRE_QUERY = 300,
    DNSWIRE_MESSAGE = 65535,
};

struct dnswire_record {
    char name[DNSWIRE_NAME];
    uint16_t type;
    uint16_t class;
    uint32_t ttl;
    char data[DNSWIRE_DATA]; /* as text, by type; hexadecimal for types that are not known here */
    char section;            /* 'a'nswer, a'u'thority, a'd'ditional */
};

struct dnswire_reply {
    uint16_t id;
    bool response;
    bool authoritative;
    bool truncated;
    bool recursion_available;
    uint8_t rcode;
    uint16_t question_count;
    char question[DNSWIRE_NAME];
    uint16_t question_type;
    uint16_t question_class;
    uint16_t answer_count; /* as the header claims */
    struct dnswire_record records[DNSWIRE_RECORDS];
    size_t record_count; /* kept here; answers first */
    bool records_left_out;
};

struct dnswire_query {
    uint16_t id;
    const char *name;
    uint16_t type;
    uint16_t class;
    bool no_recursion;
    bool edns;
};

/* Writes a query into `bytes` (DNSWIRE_QUERY of them); false for a name that is none. */
bool dnswire_write_query(const struct dnswire_query *query, uint8_t *bytes, size_t *ret_size);
/* Reads a reply. NULL on success; else what is wrong with it, as a static text, and nothing is written. */
const char *dnswire_read_reply(const uint8_t *bytes, size_t size, struct dnswire_reply *ret_reply);
/* True when the reply answers this query: id, the QR bit, and the question, letter case aside. */
bool dnswire_answers(const struct dnswire_query *query, const struct dnswire_reply *reply);

/* "AAAA" or "TYPE28" to 28; "CH" or "CLASS3" to 3. */
bool dnswire_type_of(const char *text, uint16_t *ret_type);
bool dnswire_class_of(const char *text, uint16_t *ret_class);
/* Static names, or `text` (16 bytes) filled with TYPEn, CLASSn, RCODEn. */
const char *dnswire_type_name(uint16_t type, char text[16]);
const char *dnswire_class_name(uint16_t class, char text[16]);
const char *dnswire_rcode_name(uint8_t rcode, char text[16]);
