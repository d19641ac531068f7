/* Writes one line of JSON from strings that nobody vouches for.
 * It is no JSON library: it cannot read, and it does not check that objects and arrays are closed in order.
 */
#include "jsonline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jsonline_release(struct jsonline *line)
{
    if (!line) {
        return;
    }
    free(line->data);
    *line = (struct jsonline){0};
}

static void put(struct jsonline *line, const char *text, size_t size)
{
    if (line->overflow || size > JSONLINE_CEILING - line->size - 1) {
        line->overflow = true;
        return;
    }
    if (line->size + size + 1 > line->capacity) {
        size_t capacity = line->capacity ? line->capacity : 512;
        while (capacity < line->size + size + 1) {
            capacity *= 2;
        }
        char *data = realloc(line->data, capacity);
        if (!data) {
            abort();
        }
        line->data = data;
        line->capacity = capacity;
    }
    memcpy(line->data + line->size, text, size);
    line->size += size;
    line->data[line->size] = '\0';
}

static void put_quoted(struct jsonline *line, const uint8_t *data, size_t size)
{
    put(line, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        char escaped[8];
        int length = 0;

        switch (data[i]) {
        case '"':
        case '\\':
            length = snprintf(escaped, sizeof(escaped), "\\%c", data[i]);
            break;
        case '\n':
            length = snprintf(escaped, sizeof(escaped), "\\n");
            break;
        case '\r':
            length = snprintf(escaped, sizeof(escaped), "\\r");
            break;
        case '\t':
            length = snprintf(escaped, sizeof(escaped), "\\t");
            break;
        default:
            if (data[i] < 0x20 || data[i] > 0x7e) {
                length = snprintf(escaped, sizeof(escaped), "\\u%04x", data[i]);
            } else {
                length = snprintf(escaped, sizeof(escaped), "%c", data[i]);
            }
        }
        put(line, escaped, (size_t)length);
    }
    put(line, "\"", 1);
}

static void lead_in(struct jsonline *line, const char *key)
{
    if (line->comma) {
        put(line, ",", 1);
    }
    if (key) {
        put_quoted(line, (const uint8_t *)key, strlen(key));
        put(line, ":", 1);
    }
    line->comma = true;
}

static void open_with(struct jsonline *line, const char *key, const char *bracket)
{
    lead_in(line, key);
    put(line, bracket, 1);
    line->comma = false;
}

static void close_with(struct jsonline *line, const char *bracket)
{
    put(line, bracket, 1);
    line->comma = true;
}

void jsonline_open_object(struct jsonline *line, const char *key)
{
    open_with(line, key, "{");
}

void jsonline_close_object(struct jsonline *line)
{
    close_with(line, "}");
}

void jsonline_open_array(struct jsonline *line, const char *key)
{
    open_with(line, key, "[");
}

void jsonline_close_array(struct jsonline *line)
{
    close_with(line, "]");
}

void jsonline_bytes(struct jsonline *line, const char *key, const void *data, size_t size, size_t limit)
{
    lead_in(line, key);
    put_quoted(line, data, size < limit ? size : limit);
}

void jsonline_text(struct jsonline *line, const char *key, const char *text)
{
    lead_in(line, key);
    if (text) {
        put_quoted(line, (const uint8_t *)text, strlen(text));
    } else {
        put(line, "null", 4);
    }
}

void jsonline_hex(struct jsonline *line, const char *key, const void *data, size_t size, size_t limit)
{
    const uint8_t *bytes = data;

    lead_in(line, key);
    put(line, "\"", 1);
    for (size_t i = 0; i < size && i < limit; i++) {
        char pair[3];
        (void)snprintf(pair, sizeof(pair), "%02x", bytes[i]);
        put(line, pair, 2);
    }
    put(line, "\"", 1);
}

void jsonline_number(struct jsonline *line, const char *key, int64_t number)
{
    char text[24];

    lead_in(line, key);
    put(line, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
}

void jsonline_bool(struct jsonline *line, const char *key, bool value)
{
    lead_in(line, key);
    put(line, value ? "true" : "false", value ? 4 : 5);
}

void jsonline_milliseconds(struct jsonline *line, const char *key, int64_t microseconds)
{
    char text[32];

    /* By integers: printf's floating point costs a static binary more than this whole file. */
    lead_in(line, key);
    if (microseconds < 0) {
        microseconds = 0;
    }
    put(line, text,
        (size_t)snprintf(text, sizeof(text), "%" PRId64 ".%03d", microseconds / 1000, (int)(microseconds % 1000)));
}

static void put_collected(struct jsonline *line, const char *key, const struct jsonline *collected,
                          const char *brackets)
{
    lead_in(line, key);
    put(line, brackets, 1);
    put(line, collected->data ? collected->data : "", collected->size);
    put(line, brackets + 1, 1);
    line->overflow = line->overflow || collected->overflow;
}

void jsonline_array_of(struct jsonline *line, const char *key, const struct jsonline *elements)
{
    put_collected(line, key, elements, "[]");
}

void jsonline_object_of(struct jsonline *line, const char *key, const struct jsonline *members)
{
    put_collected(line, key, members, "{}");
}
