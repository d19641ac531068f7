/* Allocation that aborts instead of failing.
 * A command line tool that cannot get a few kilobytes has nothing better to do than to stop.
 * Not for: data whose size a peer chose without a ceiling. */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static void *check(void *pointer)
{
    if (!pointer) {
        abort();
    }
    return pointer;
}

void *xmalloc(size_t size)
{
    return check(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return check(calloc(count ? count : 1, size ? size : 1));
}

void *xreallocarray(void *pointer, size_t count, size_t size)
{
    return check(reallocarray(pointer, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *text)
{
    return check(strdup(text));
}

char *xstrndup(const char *text, size_t length)
{
    return check(strndup(text, length));
}

char *xvasprintf(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) {
        abort();
    }
    return text;
}

char *xasprintf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = xvasprintf(format, arguments);
    va_end(arguments);
    return text;
}
