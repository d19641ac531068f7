#ifndef BOX_BASE_MEMORY_H
#define BOX_BASE_MEMORY_H

#include "base/cleanup.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

/* Allocation that cannot fail: each of these aborts the process when memory is exhausted, so no caller carries
 * a path that nobody can test. A length that a peer chose is checked against a ceiling before it gets here.
 * Everything returned belongs to the caller and is released by free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *pointer, size_t count, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *format, ...) PRINTF_LIKE(1, 2);
char *xvasprintf(const char *format, va_list arguments) PRINTF_LIKE(1, 0);

/* Cleanup handler for anything that free() releases: CLEANUP(freep) char *text. */
static inline void freep(void *pointer)
{
    free(*(void **)pointer);
}

#endif
