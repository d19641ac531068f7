#pragma once

#include <stddef.h>

/* Reads at most size-1 bytes of a small file into `text` and ends them with NUL. The number of bytes, or -1 with errno
 * (and `text` empty). */
long slurp_file(const char *path, char *text, size_t size);
/* The same without the white space at the end. */
long slurp_line(const char *path, char *text, size_t size);
