#ifndef BOX_BOX_TEMPLATEFILE_H
#define BOX_BOX_TEMPLATEFILE_H

#include "base/buffer.h"
#include "base/error.h"

/* The files of a template as bytes: what kind each is, how large, and what must not be in it. Each fault is one
 * ERR_USAGE that begins with the path, and with ":LINE" where a line is at fault. Nothing is opened that could block,
 * and no link is followed from a file's name: it would carry a file of the host into a box. */

#define TEMPLATEFILE_CEILING     (1024 * 1024)
#define TEMPLATEFILE_ENV_CEILING (4 * 1024 * 1024)

/* ERR_USAGE that says what is there instead: nothing, a link to nothing, a FIFO. A link to a directory is one. */
int templatefile_check_directory(const char *path, struct error *err);

/* box.env as it is: what its lines are is envfile.c's to judge. */
int templatefile_read_env(const char *path, struct buffer *ret_data, struct error *err);

/* For cloud-init: at most 1 MiB of UTF-8 without NUL, not compressed, without what YAML allows nowhere. */
int templatefile_read_user_data(const char *path, struct buffer *ret_data, struct error *err);

/* The script that a template may have: "#!" first, UTF-8, line ends as on Unix. Absent is success, and empty. */
int templatefile_read_script(const char *path, struct buffer *ret_data, struct error *err);

#endif
