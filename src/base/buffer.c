/* A growing byte buffer, always NUL-terminated.
 * Not for: bytes of a peer without a ceiling. */
#include "base/buffer.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

char *buffer_reserve(struct buffer *buffer, size_t length)
{
    if (length >= SIZE_MAX / 2 - buffer->length) {
        abort();
    }
    size_t needed = buffer->length + length + 1;
    if (needed > buffer->capacity) {
        size_t capacity = buffer->capacity * 2 > needed ? buffer->capacity * 2 : needed + 64;
        buffer->data = xreallocarray(buffer->data, capacity, 1);
        buffer->capacity = capacity;
    }
    buffer->data[buffer->length] = '\0';
    return buffer->data + buffer->length;
}

void buffer_append(struct buffer *buffer, const void *data, size_t length)
{
    char *end = buffer_reserve(buffer, length);
    if (length) {
        memcpy(end, data, length);
    }
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    CLEANUP(freep) char *text = xvasprintf(format, arguments);
    va_end(arguments);
    buffer_append_text(buffer, text);
}

void buffer_consume(struct buffer *buffer, size_t length)
{
    if (!length) {
        return;
    }
    memmove(buffer->data, buffer->data + length, buffer->length - length);
    buffer->length -= length;
    buffer->data[buffer->length] = '\0';
}

char *buffer_steal(struct buffer *buffer)
{
    if (!buffer->data) {
        buffer_reserve(buffer, 0);
    }
    char *data = buffer->data;
    *buffer = (struct buffer){0};
    return data;
}

void buffer_reset(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}
