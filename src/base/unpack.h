#ifndef BOX_BASE_UNPACK_H
#define BOX_BASE_UNPACK_H

#include "base/error.h"
#include "base/tally.h"

#include <stdint.h>

/* Files out of a tar stream that somebody else wrote and may have meant ill: nothing outside the target is read,
 * written or pointed at. Files are written under a temporary name and renamed when they are whole. */
struct unpack {
    int fd;                /* the stream; borrowed */
    uint64_t *moved;       /* bytes of files so far; may be NULL, may be in memory that another process reads */
    struct tally *skipped; /* left out: devices, hard links, symbolic links that lead out of the target; likewise */
};

/* The archive holds one file, or one directory named "." with everything in it. It becomes `target`, whatever names
 * the archive tells for it: an existing file is replaced, an existing directory is merged into (links in there are
 * replaced, never followed). The directory that holds `target` must exist; a last component that is a symbolic link is
 * followed as unpack_resolve() does. No bit of set-user-id survives. No device, FIFO or socket is replaced, neither at
 * `target` nor below it: ERR_STATE.
 *
 * ERR_PROTOCOL where the stream is no such archive, or stops early; ERR_CONTRACT where it holds a name that leads out. */
int unpack_run(const struct unpack *unpack, const char *target, struct error *err);

/* Where a copy to `target` ends up: itself, or what a symbolic link of that name leads to. ERR_STATE where a device,
 * FIFO or socket stands there, or the link leads nowhere. Touches nothing. The caller frees *ret_final. */
int unpack_resolve(const char *target, char **ret_final, struct error *err);

#endif
