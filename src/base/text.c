/* Small questions about text, independent of the locale.
 * Not for: parsing of formats; each format has its own file. */
#include "base/text.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <string.h>

bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool text_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

bool text_is_empty(const char *text)
{
    return !text || !*text;
}

bool text_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *ret_value)
{
    if (text_is_empty(text) || (text[0] == '0' && text[1])) {
        return false;
    }
    uint64_t value = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - (uint64_t)(*text - '0')) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*text - '0');
    }
    if (value < minimum || value > maximum) {
        return false;
    }
    *ret_value = value;
    return true;
}

unsigned text_distance(const char *a, const char *b)
{
    enum { LIMIT = 64 };
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > LIMIT || length_b > LIMIT) {
        return LIMIT;
    }
    unsigned rows[3][LIMIT + 1]; /* the running one, and the two before it */
    for (unsigned j = 0; j <= length_b; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= length_a; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3], *swapped = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= length_b; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && swapped[j - 2] + 1 < best) {
                best = swapped[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[length_a % 3][length_b];
}

/* Decodes one code point. Returns its length in bytes, or 0 where the bytes are not well-formed (RFC 3629). */
static size_t decode(const unsigned char *data, size_t length, uint32_t *ret_point)
{
    if (length == 0) {
        return 0;
    }
    if (data[0] < 0x80) {
        *ret_point = data[0];
        return 1;
    }
    size_t size = data[0] >= 0xf0 ? 4 : data[0] >= 0xe0 ? 3 : 2;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (data[0] < 0xc2 || data[0] > 0xf4 || size > length) {
        return 0;
    }
    uint32_t point = data[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((data[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (data[i] & 0x3fu);
    }
    if (point < smallest[size] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_point = point;
    return size;
}

bool text_is_utf8(const char *data, size_t length)
{
    uint32_t point;
    for (size_t i = 0; i < length;) {
        size_t size = decode((const unsigned char *)data + i, length - i, &point);
        if (!size) {
            return false;
        }
        i += size;
    }
    return true;
}

char *text_escape(const char *text)
{
    struct buffer escaped = {0};
    buffer_append_text(&escaped, "");
    for (size_t length = strlen(text); length;) {
        uint32_t point = 0;
        size_t size = decode((const unsigned char *)text, length, &point);
        if (size && point >= 0x20 && (point < 0x7f || point > 0x9f)) {
            buffer_append(&escaped, text, size);
        } else {
            size = 1;
            buffer_append_format(&escaped, "\\x%02x", (unsigned char)*text);
        }
        text += size;
        length -= size;
    }
    return buffer_steal(&escaped);
}

/* Length of the escape sequence at data[0] == ESC (ECMA-48): CSI, a string (OSC, DCS, SOS, PM, APC), or two bytes. */
static size_t escape_length(const char *data, size_t length)
{
    if (length < 2) {
        return length;
    }
    size_t i = 2;
    if (data[1] == '[') {
        while (i < length && (unsigned char)data[i] >= 0x20 && (unsigned char)data[i] < 0x40) {
            i++;
        }
        return i < length && (unsigned char)data[i] >= 0x40 && (unsigned char)data[i] < 0x7f ? i + 1 : i;
    }
    if (strchr("]PX^_", data[1])) {
        /* Ends with BEL or ESC \; a line end is taken as a lost terminator, so that one OSC cannot eat a whole log. */
        while (i < length && data[i] != '\a' && data[i] != '\033' && data[i] != '\n') {
            i++;
        }
        if (i < length && data[i] == '\a') {
            return i + 1;
        }
        return i + 1 < length && data[i] == '\033' && data[i + 1] == '\\' ? i + 2 : i;
    }
    /* Intermediate bytes and a final one, as in ESC ( B. */
    i = 1;
    while (i < length && (unsigned char)data[i] >= 0x20 && (unsigned char)data[i] < 0x30) {
        i++;
    }
    return i < length && (unsigned char)data[i] >= 0x30 && (unsigned char)data[i] < 0x7f ? i + 1 : i;
}

char *text_sanitise(const char *data, size_t length)
{
    struct buffer clean = {0};
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t size = decode((const unsigned char *)data + i, length - i, &point);
        if (!size) {
            buffer_append_text(&clean, "\xef\xbf\xbd");
            i++;
        } else if (point == 0x1b) {
            i += escape_length(data + i, length - i);
        } else {
            bool control = (point < 0x20 && point != '\n' && point != '\t') || (point >= 0x7f && point < 0xa0);
            /* Bidirectional overrides and isolates can make a line read as something that it is not. */
            bool direction = (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
            if (!control && !direction) {
                buffer_append(&clean, data + i, size);
            }
            i += size;
        }
    }
    return buffer_steal(&clean);
}

struct range {
    uint32_t first, last;
};

static bool within(const struct range *ranges, size_t count, uint32_t point)
{
    for (size_t i = 0; i < count; i++) {
        if (point >= ranges[i].first && point <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* The blocks that matter in names and descriptions: Unicode's East Asian Width W and F, and its combining marks. The
 * C library's wcwidth() would need a locale that a server often lacks. */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};
static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},
};

size_t text_columns(const char *text)
{
    size_t length = strlen(text), columns = 0;
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t size = decode((const unsigned char *)text + i, length - i, &point);
        i += size ? size : 1;
        if (size && (point < 0x20 || within(combining, ARRAY_LENGTH(combining), point))) {
            continue;
        }
        columns += size && within(wide, ARRAY_LENGTH(wide), point) ? 2 : 1;
    }
    return columns;
}

char *text_url_encode(const char *text)
{
    struct buffer encoded = {0};
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool unreserved = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || strchr("-._~", byte);
        if (unreserved) {
            buffer_append(&encoded, text, 1);
        } else {
            buffer_append_format(&encoded, "%%%02X", byte);
        }
    }
    return buffer_steal(&encoded);
}
