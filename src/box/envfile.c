/* The strict format of box.env, line by line.
 * Not for which keys there are (template.c). */
#include "box/envfile.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

#define KEY_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static int check_bytes(const char *line, size_t length, struct error *err)
{
    if (memchr(line, '\0', length)) {
        return error_set(err, ERR_USAGE, "a NUL byte");
    }
    if (memchr(line, '\r', length)) {
        error_set(err, ERR_USAGE, "a carriage return: lines must end as on Unix");
        return error_remedy(err, "sed -i 's/\\r$//' on the file");
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];

        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return error_set(err, ERR_USAGE, "a control character (0x%02x)", byte);
        }
    }
    return text_is_utf8(line, length) ? 0 : error_set(err, ERR_USAGE, "bytes that are not UTF-8");
}

/* Splits a checked line at =" and the closing quote, which must be its last byte. */
static int read_pair(const char *line, size_t length, envfile_handler *handler, void *context, struct error *err)
{
    size_t key_length = 0;

    while (key_length < length && strchr(KEY_BYTES, line[key_length])) {
        key_length++;
    }
    const char *value = line + key_length + 2;

    if (key_length == 0 || length < key_length + 3 || line[key_length] != '=' || line[key_length + 1] != '"' ||
        line[length - 1] != '"' || memchr(value, '"', length - key_length - 3)) {
        return error_set(err, ERR_USAGE, "expected KEY=\"value\" and nothing else on the line");
    }
    CLEANUP(freep) char *key = xstrndup(line, key_length);
    CLEANUP(freep) char *text = xstrndup(value, length - key_length - 3);

    return handler(context, key, text, err);
}

static int read_line(const char *line, size_t length, size_t line_ceiling, envfile_handler *handler, void *context,
                     struct error *err)
{
    if (length > line_ceiling) {
        return error_set(err, ERR_USAGE, "a line of %zu bytes: at most %zu", length, line_ceiling);
    }
    if (check_bytes(line, length, err) < 0) {
        return -1;
    }
    size_t blank = 0;

    while (blank < length && (line[blank] == ' ' || line[blank] == '\t')) {
        blank++;
    }
    if (blank == length || line[0] == '#') {
        return 0;
    }
    return read_pair(line, length, handler, context, err);
}

int envfile_read(const char *path, const char *data, size_t length, size_t line_ceiling, envfile_handler *handler,
                 void *context, struct error *err)
{
    size_t number = 1;

    if (length >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        return error_set(err, ERR_USAGE, "%s:1: a byte order mark: the file must start with its first line", path);
    }
    for (size_t start = 0; start < length; number++) {
        const char *end = memchr(data + start, '\n', length - start);
        size_t line_length = end ? (size_t)(end - data) - start : length - start;

        if (read_line(data + start, line_length, line_ceiling, handler, context, err) < 0) {
            return error_wrap(err, "%s:%zu", path, number);
        }
        start += line_length + 1;
    }
    return 0;
}
