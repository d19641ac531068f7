#ifndef BOX_BASE_ARGV_H
#define BOX_BASE_ARGV_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* A list of strings that it owns, always followed by a NULL that `count` does not count: fit for execve().
 * `items` is NULL while empty. Start with `CLEANUP(argv_reset) struct argv list = {0};`. */
struct argv {
    char **items;
    size_t count;
};

void argv_push(struct argv *list, const char *text);                              /* copies */
void argv_push_owned(struct argv *list, char *text);                              /* takes ownership */
void argv_push_format(struct argv *list, const char *format, ...) PRINTF_LIKE(2, 3);
void argv_push_all(struct argv *list, const char *const *texts);                  /* copies up to NULL */
bool argv_contains(const struct argv *list, const char *text);
char *argv_join(const struct argv *list, const char *separator);                  /* the caller frees */
void argv_reset(struct argv *list);

#endif
