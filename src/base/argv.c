/* A list of owned strings, NULL-terminated as execve() wants it.
 * Not for: bytes with NULs. */
#include "base/argv.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <string.h>

void argv_push_owned(struct argv *list, char *text)
{
    list->items = xreallocarray(list->items, list->count + 2, sizeof(char *));
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

void argv_push(struct argv *list, const char *text)
{
    argv_push_owned(list, xstrdup(text));
}

void argv_push_format(struct argv *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    argv_push_owned(list, xvasprintf(format, arguments));
    va_end(arguments);
}

void argv_push_all(struct argv *list, const char *const *texts)
{
    for (; texts && *texts; texts++) {
        argv_push(list, *texts);
    }
}

bool argv_contains(const struct argv *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0) {
            return true;
        }
    }
    return false;
}

char *argv_join(const struct argv *list, const char *separator)
{
    struct buffer joined = {0};
    for (size_t i = 0; i < list->count; i++) {
        if (i) {
            buffer_append_text(&joined, separator);
        }
        buffer_append_text(&joined, list->items[i]);
    }
    return buffer_steal(&joined);
}

void argv_reset(struct argv *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct argv){0};
}
