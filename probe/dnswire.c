/* Encodes DNS queries and decodes replies, hostile ones included: no pointer is followed forward or twice.
 * Sockets are in dnsquery.c, the words of types and classes in dnsnames.c.
 */
#include "dnswire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TYPE_A = 1, TYPE_NS = 2, TYPE_CNAME = 5, TYPE_SOA = 6, TYPE_PTR = 12, TYPE_MX = 15, TYPE_TXT = 16 };
enum { TYPE_AAAA = 28, TYPE_SRV = 33, TYPE_OPT = 41 };

static uint16_t get16(const uint8_t *data)
{
    return (uint16_t)(data[0] << 8 | data[1]);
}

static uint32_t get32(const uint8_t *data)
{
    return (uint32_t)get16(data) << 16 | get16(data + 2);
}

static void put16(uint8_t *bytes, size_t *at, uint16_t number)
{
    bytes[(*at)++] = (uint8_t)(number >> 8);
    bytes[(*at)++] = (uint8_t)number;
}

/* One character of a name in text, with its \DDD escape undone; the characters it took, 0 when it is malformed. */
static size_t unescape(const char *text, uint8_t *ret_byte)
{
    if (text[0] != '\\') {
        *ret_byte = (uint8_t)text[0];
        return 1;
    }
    int value = 0;
    for (int i = 1; i <= 3; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        value = value * 10 + (text[i] - '0');
    }
    if (value > 255) {
        return 0;
    }
    *ret_byte = (uint8_t)value;
    return 4;
}

static bool write_name(const char *name, uint8_t *bytes, size_t *at)
{
    size_t label = *at; /* where this label's length goes */
    size_t total = 1;

    if (strcmp(name, ".") == 0) {
        bytes[(*at)++] = 0;
        return true;
    }
    (*at)++;
    for (;;) {
        if (*name == '.' || *name == '\0') {
            size_t length = *at - label - 1;
            if (length == 0 || length > 63) {
                return false;
            }
            bytes[label] = (uint8_t)length;
            if (*name == '\0' || name[1] == '\0') {
                bytes[(*at)++] = 0;
                return true;
            }
            name++;
            label = (*at)++;
            if (++total > 254) {
                return false;
            }
            continue;
        }
        uint8_t byte;
        size_t taken = unescape(name, &byte);
        if (taken == 0 || ++total > 254) {
            return false;
        }
        bytes[(*at)++] = byte;
        name += taken;
    }
}

bool dnswire_write_query(const struct dnswire_query *query, uint8_t *bytes, size_t *ret_size)
{
    size_t at = 0;

    put16(bytes, &at, query->id);
    put16(bytes, &at, query->no_recursion ? 0 : 0x0100);
    put16(bytes, &at, 1);
    put16(bytes, &at, 0);
    put16(bytes, &at, 0);
    put16(bytes, &at, query->edns ? 1 : 0);
    if (!write_name(query->name, bytes, &at)) {
        return false;
    }
    put16(bytes, &at, query->type);
    put16(bytes, &at, query->class);
    if (query->edns) {
        bytes[at++] = 0;
        put16(bytes, &at, TYPE_OPT);
        put16(bytes, &at, 1232); /* the size that passes every path without fragments */
        put16(bytes, &at, 0);
        put16(bytes, &at, 0);
        put16(bytes, &at, 0);
    }
    *ret_size = at;
    return true;
}

/* Reads the name at *at into `text` (DNSWIRE_NAME bytes) and moves *at behind it. A pointer must lead to before the
 * piece it ends, so that every jump goes back and none can loop. */
static const char *read_name(const uint8_t *bytes, size_t size, size_t *at, char *text)
{
    size_t here = *at;
    size_t piece = *at;
    size_t length = 0;
    size_t wire_length = 1;
    bool jumped = false;

    for (;;) {
        if (here >= size) {
            return "a name runs past the end";
        }
        uint8_t label = bytes[here];
        if ((label & 0xc0) == 0xc0) {
            if (size - here < 2) {
                return "a name's pointer is cut short";
            }
            size_t target = (size_t)(label & 0x3f) << 8 | bytes[here + 1];
            if (target >= piece) {
                return "a name's pointer does not lead back";
            }
            if (!jumped) {
                *at = here + 2;
                jumped = true;
            }
            here = piece = target;
            continue;
        }
        if (label & 0xc0) {
            return "a label of an unknown kind";
        }
        here++;
        if (label == 0) {
            break;
        }
        wire_length += (size_t)label + 1;
        if (wire_length > 255 || size - here < label) {
            return "a name is too long";
        }
        if (length) {
            text[length++] = '.';
        }
        for (size_t i = 0; i < label; i++) {
            uint8_t byte = bytes[here + i];
            if (byte <= 0x20 || byte > 0x7e || byte == '.' || byte == '\\') {
                length += (size_t)snprintf(text + length, 5, "\\%03u", byte);
            } else {
                text[length++] = (char)byte;
            }
        }
        here += label;
    }
    if (!jumped) {
        *at = here;
    }
    if (length == 0) {
        text[length++] = '.';
    }
    text[length] = '\0';
    return NULL;
}

static void data_as_hex(const uint8_t *data, size_t size, char *text)
{
    size_t shown = size < 256 ? size : 256;

    text[0] = '\0';
    for (size_t i = 0; i < shown; i++) {
        (void)snprintf(text + i * 2, 3, "%02x", data[i]);
    }
}

/* TXT: each string in turn; what is not printable is the JSON writer's to escape, except NUL. */
static bool data_as_strings(const uint8_t *data, size_t size, char *text)
{
    size_t length = 0;

    for (size_t at = 0; at < size;) {
        size_t string = data[at++];
        if (size - at < string) {
            return false;
        }
        for (size_t i = 0; i < string && length < DNSWIRE_DATA - 2; i++) {
            text[length++] = data[at + i] ? (char)data[at + i] : '?';
        }
        at += string;
        if (at < size && length < DNSWIRE_DATA - 2) {
            text[length++] = ' ';
        }
    }
    text[length] = '\0';
    return true;
}

/* The types whose data ends in a name, after `prefix` bytes of 16-bit numbers; `size` is where the data ends. */
static const char *data_as_name(const uint8_t *bytes, size_t size, size_t at, size_t prefix, char *text)
{
    char name[DNSWIRE_NAME];
    int length = 0;

    if (size - at < prefix) {
        return "a record is cut short";
    }
    for (size_t i = 0; i < prefix; i += 2) {
        length += snprintf(text + length, 8, "%u ", get16(bytes + at + i));
    }
    at += prefix;
    const char *wrong = read_name(bytes, size, &at, name);
    if (!wrong) {
        (void)snprintf(text + length, (size_t)(DNSWIRE_DATA - length), "%s", name);
    }
    return wrong;
}

/* Fills record->data from the `size` bytes at `at`; pointers in it may lead anywhere before. */
static const char *read_data(const uint8_t *bytes, size_t at, size_t size, struct dnswire_record *record)
{
    const uint8_t *data = bytes + at;
    size_t end = at + size;

    switch (record->type) {
    case TYPE_A:
    case TYPE_AAAA:
        if (size != (record->type == TYPE_A ? 4 : 16)) {
            return "an address record of the wrong size";
        }
        (void)inet_ntop(record->type == TYPE_A ? AF_INET : AF_INET6, data, record->data, DNSWIRE_DATA);
        return NULL;
    case TYPE_NS:
    case TYPE_CNAME:
    case TYPE_PTR:
    case TYPE_SOA: /* the primary server is the telling part */
        return data_as_name(bytes, end, at, 0, record->data);
    case TYPE_MX:
        return data_as_name(bytes, end, at, 2, record->data);
    case TYPE_SRV:
        return data_as_name(bytes, end, at, 6, record->data);
    case TYPE_TXT:
        return data_as_strings(data, size, record->data) ? NULL : "a text record is cut short";
    default:
        data_as_hex(data, size, record->data);
        return NULL;
    }
}

static const char *read_record(const uint8_t *bytes, size_t size, size_t *at, struct dnswire_record *record)
{
    const char *wrong = read_name(bytes, size, at, record->name);

    if (wrong) {
        return wrong;
    }
    if (size - *at < 10) {
        return "a record is cut short";
    }
    record->type = get16(bytes + *at);
    record->class = get16(bytes + *at + 2);
    record->ttl = get32(bytes + *at + 4);
    size_t length = get16(bytes + *at + 8);
    *at += 10;
    if (size - *at < length) {
        return "a record runs past the end";
    }
    wrong = read_data(bytes, *at, length, record);
    *at += length;
    return wrong;
}

static const char *read_records(const uint8_t *bytes, size_t size, size_t at, struct dnswire_reply *reply)
{
    static const char sections[] = {'a', 'u', 'd'};

    for (int section = 0; section < 3; section++) {
        unsigned count = get16(bytes + 6 + section * 2);
        for (unsigned i = 0; i < count; i++) {
            if (reply->record_count == DNSWIRE_RECORDS) {
                reply->records_left_out = true;
                return NULL;
            }
            struct dnswire_record *record = &reply->records[reply->record_count];
            const char *wrong = read_record(bytes, size, &at, record);
            if (wrong) {
                /* A truncated reply may well end in the middle of a record; what came before it stands. */
                return reply->truncated ? NULL : wrong;
            }
            record->section = sections[section];
            reply->record_count++;
        }
    }
    return NULL;
}

const char *dnswire_read_reply(const uint8_t *bytes, size_t size, struct dnswire_reply *ret_reply)
{
    struct dnswire_reply reply = {0};
    size_t at = 12;

    if (size < 12) {
        return "shorter than a header";
    }
    reply.id = get16(bytes);
    reply.response = bytes[2] & 0x80;
    reply.authoritative = bytes[2] & 0x04;
    reply.truncated = bytes[2] & 0x02;
    reply.recursion_available = bytes[3] & 0x80;
    reply.rcode = bytes[3] & 0x0f;
    reply.question_count = get16(bytes + 4);
    reply.answer_count = get16(bytes + 6);
    if (reply.question_count > 1) {
        return "more than one question";
    }
    if (reply.question_count == 1) {
        const char *wrong = read_name(bytes, size, &at, reply.question);
        if (wrong) {
            return wrong;
        }
        if (size - at < 4) {
            return "the question is cut short";
        }
        reply.question_type = get16(bytes + at);
        reply.question_class = get16(bytes + at + 2);
        at += 4;
    }
    const char *wrong = read_records(bytes, size, at, &reply);
    if (wrong) {
        return wrong;
    }
    *ret_reply = reply;
    return NULL;
}

bool dnswire_answers(const struct dnswire_query *query, const struct dnswire_reply *reply)
{
    size_t length = strlen(query->name);
    size_t compared = length > 1 && query->name[length - 1] == '.' ? length - 1 : length;

    if (reply->id != query->id || !reply->response) {
        return false;
    }
    /* Servers that refuse (FORMERR, NOTIMP) may leave the question out. */
    if (reply->question_count == 0) {
        return reply->rcode != 0;
    }
    return reply->question_type == query->type && reply->question_class == query->class &&
           strlen(reply->question) == compared && strncasecmp(reply->question, query->name, compared) == 0;
}
