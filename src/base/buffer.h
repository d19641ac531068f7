#ifndef BOX_BASE_BUFFER_H
#define BOX_BASE_BUFFER_H

#include "base/cleanup.h"

#include <stddef.h>

/* A growing byte buffer. `data` is NULL while empty, else always followed by a NUL that `length` does not count.
 * Start with `CLEANUP(buffer_reset) struct buffer text = {0};`. Growth aborts on exhausted memory: whoever appends
 * what a peer sends checks a ceiling first. */
struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

void buffer_append(struct buffer *buffer, const void *data, size_t length);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_format(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);

/* Makes room for `length` more bytes and returns where they go; add to `length` what was really written. */
char *buffer_reserve(struct buffer *buffer, size_t length);

/* Drops the first `length` bytes. */
void buffer_consume(struct buffer *buffer, size_t length);

/* Moves the text out; never NULL (an empty buffer yields ""). The caller frees it. */
char *buffer_steal(struct buffer *buffer);

/* Releases and clears; usable as cleanup handler. */
void buffer_reset(struct buffer *buffer);

#endif
