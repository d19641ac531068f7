#ifndef BOX_BASE_TARREAD_H
#define BOX_BASE_TARREAD_H

#include "base/cleanup.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reading a tar stream (ustar, pax, GNU's long names) that somebody else wrote. Facts only: whether a name may be used
 * is for who uses it. */
struct tarread;

enum tarread_kind {
    TARREAD_FILE,
    TARREAD_DIRECTORY,
    TARREAD_SYMLINK,
    TARREAD_OTHER, /* a device, a FIFO, a hard link, ...: has no data */
};

struct tarread_entry {
    enum tarread_kind kind;
    char *name; /* as it stands there: may be absolute, hold "..", be empty */
    char *link; /* target of a symbolic link */
    mode_t mode;
    uint64_t size;
    int64_t mtime;
};

/* Reads from a descriptor (borrowed). */
struct tarread *tarread_open(int fd);
void tarread_close(struct tarread *reader);
DEFINE_CLEANUP(struct tarread *, tarread_close)

/* Goes on to the next entry, past what is unread of the last; borrowed until the next call. NULL at the end of the
 * archive, after which the rest of the stream is read and dropped. A stream that stops before its end, and one that is no tar,
 * are ERR_PROTOCOL. */
int tarread_next(struct tarread *reader, const struct tarread_entry **ret_entry, struct error *err);

/* The next bytes of the entry's data, at most `size`; 0 at its end, -1 on failure. */
ssize_t tarread_data(struct tarread *reader, void *data, size_t size, struct error *err);

#endif
