#ifndef BOX_CLI_LASTWORDS_H
#define BOX_CLI_LASTWORDS_H

#include <stddef.h>

/* The line that says why a guest's tool failed, fit to be shown: the last one that is a cause. What tar closes with
 * when it told its causes before is none, and how many more causes there were is added. "" where nothing was said.
 * `data` may be NULL where `length` is 0. The caller frees. */
char *lastwords_of(const char *data, size_t length);

#endif
