#ifndef BOX_BOX_TEMPLATEFILE_H
#define BOX_BOX_TEMPLATEFILE_H

#include "base/buffer.h"
#include "base/error.h"

#include <sys/stat.h>

/* The files of a template as bytes: what kind each is, how large, and what must not be in it. Each fault is one
 * ERR_USAGE that begins with the path, and with ":LINE" where a line is at fault. Nothing is opened that could block.
 */

#define TEMPLATEFILE_CEILING (1024 * 1024)

/* ERR_USAGE that says what is there instead of what is wanted (S_IFREG, S_IFDIR): nothing, a link to nothing, a FIFO.
 */
int templatefile_check_kind(const char *path, mode_t wanted, struct error *err);

/* For cloud-init: at most 1 MiB of UTF-8 without NUL, not compressed, without what YAML allows nowhere. */
int templatefile_read_user_data(const char *path, struct buffer *ret_data, struct error *err);

/* The script that a template may have: "#!" first, UTF-8, line ends as on Unix. Absent is success, and empty. */
int templatefile_read_script(const char *path, struct buffer *ret_data, struct error *err);

#endif
