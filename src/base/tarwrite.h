#ifndef BOX_BASE_TARWRITE_H
#define BOX_BASE_TARWRITE_H

#include "base/error.h"
#include "base/tally.h"

#include <stdint.h>

/* Writing a tar stream (POSIX pax) of files of this host. Owners are not told: who unpacks it owns what comes out. */
struct tarwrite {
    int fd;                /* where the stream goes; borrowed */
    uint64_t *moved;       /* bytes of files so far; may be in memory that another process reads; may be NULL */
    struct tally *skipped; /* sockets, FIFOs and devices that were left out; likewise */
    struct tally *grown;   /* files of which only what was there at the beginning was taken; likewise */
};

/* Adds the file or directory at `path` as `name`, a directory with all that is in it. A symbolic link is followed where
 * it is `path` itself; inside a directory it goes along as a link. A file that cannot be read is an error; one that
 * shrinks meanwhile is one too. A small file, and one whose size is told as 0 (as /proc does), is what reading it
 * yields; where that has no end within 64 MiB it is an error. */
int tarwrite_add(const struct tarwrite *archive, const char *path, const char *name, struct error *err);

/* Adds an empty directory, or an empty file. */
int tarwrite_directory(const struct tarwrite *archive, const char *name, struct error *err);
int tarwrite_empty(const struct tarwrite *archive, const char *name, struct error *err);

/* Without this the stream is not whole, and its reader says so. */
int tarwrite_end(const struct tarwrite *archive, struct error *err);

/* Bytes of files that tarwrite_add() would move; what cannot be read counts nothing. */
uint64_t tarwrite_size(const char *path);

#endif
