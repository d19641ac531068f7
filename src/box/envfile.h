#ifndef BOX_BOX_ENVFILE_H
#define BOX_BOX_ENVFILE_H

#include "base/error.h"

#include <stddef.h>

/* The strict file format of box.env: one KEY="value" a line, blank lines, lines that start with #. Nothing is expanded,
 * nothing is escaped, nothing may follow the value. */

/* Called for each pair, in order, with borrowed NUL-terminated texts. Returns 0, or -1 with an error that this format's
 * reader puts "path:line: " in front of. */
typedef int envfile_handler(void *context, const char *key, const char *value, struct error *err);

/* Reads all lines. The first fault is one ERR_USAGE that begins "path:line: ": a byte order mark, a carriage return, a
 * NUL or another control character, bytes that are not UTF-8, a line longer than `line_ceiling`, a line of another shape. */
int envfile_read(const char *path, const char *data, size_t length, size_t line_ceiling, envfile_handler *handler,
                 void *context, struct error *err);

#endif
