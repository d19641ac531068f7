#ifndef BOX_BASE_FD_H
#define BOX_BASE_FD_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Closes a descriptor and sets it to -1; -1 is fine. The cleanup handler of every fd. */
void fd_closep(int *fd);
void fd_closefp(FILE **file);

/* Reads until EOF into `buffer`; fails with ERR_SYSTEM when more than `ceiling` bytes come. */
int fd_read_all(int fd, size_t ceiling, struct buffer *buffer, struct error *err);

/* Writes everything, over EINTR and short writes. */
int fd_write_all(int fd, const void *data, size_t length, struct error *err);

/* Reads a regular file whole (a FIFO, device or directory is refused: ERR_USAGE). ERR_NOT_FOUND where it is absent.
 * The data are NUL-terminated; NULs within are kept and counted. */
int fd_read_file(const char *path, size_t ceiling, struct buffer *buffer, struct error *err);

/* Writes a file through a temporary name in the same directory, fsync and rename: the final name is never half. */
int fd_write_file(const char *path, const void *data, size_t length, mode_t mode, struct error *err);

/* Removes a file, and what fd_write_file() left beside it where it was killed. One that is not there is success. */
int fd_remove_file(const char *path, struct error *err);

/* mkdir -p with `mode` for what is made. */
int fd_make_directories(const char *path, mode_t mode, struct error *err);

/* Opens /dev/null on whichever of 0, 1, 2 is closed, so that no socket ever lands there. Call first in main. */
void fd_secure_standard(void);

#endif
