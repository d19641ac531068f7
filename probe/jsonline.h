#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A writer of one line of JSON. Every string is treated as hostile: whatever is not printable ASCII leaves as \u00XX,
 * so a line can be shown on a terminal as it stands. A line that would pass JSONLINE_CEILING is marked as overflowed
 * instead of growing; the caller then says something shorter. Keys must be plain ASCII without quotes; inside an array
 * the key is NULL. */
enum { JSONLINE_CEILING = 256 * 1024 };

struct jsonline {
    char *data; /* owned; NUL-terminated once anything was written */
    size_t size;
    size_t capacity;
    bool comma;
    bool overflow;
};

/* Cleanup: frees the buffer; NULL and an empty writer are fine. */
void jsonline_release(struct jsonline *line);
#define CLEANUP_JSONLINE __attribute__((cleanup(jsonline_release)))

void jsonline_open_object(struct jsonline *line, const char *key);
void jsonline_close_object(struct jsonline *line);
void jsonline_open_array(struct jsonline *line, const char *key);
void jsonline_close_array(struct jsonline *line);

/* A string; NULL is written as null. */
void jsonline_text(struct jsonline *line, const char *key, const char *text);
/* Bytes of any content; at most `limit` of them are shown, the rest is dropped in silence. */
void jsonline_bytes(struct jsonline *line, const char *key, const void *data, size_t size, size_t limit);
/* Bytes as lower-case hexadecimal, at most `limit` of them. */
void jsonline_hex(struct jsonline *line, const char *key, const void *data, size_t size, size_t limit);
void jsonline_number(struct jsonline *line, const char *key, int64_t number);
void jsonline_bool(struct jsonline *line, const char *key, bool value);
/* Microseconds, written as milliseconds with three decimals. */
void jsonline_milliseconds(struct jsonline *line, const char *key, int64_t microseconds);
/* Copies the elements that another writer collected, as an array. */
void jsonline_array_of(struct jsonline *line, const char *key, const struct jsonline *elements);
/* Copies the members that another writer collected, as an object. */
void jsonline_object_of(struct jsonline *line, const char *key, const struct jsonline *members);
