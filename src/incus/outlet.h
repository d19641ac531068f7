#ifndef BOX_INCUS_OUTLET_H
#define BOX_INCUS_OUTLET_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a stream of a command goes: a descriptor that must not be made non-blocking (other processes share it), a
 * buffer with a ceiling, somebody who listens, or nowhere. */
struct outlet {
    int fd;                 /* borrowed; -1: none */
    struct buffer *capture; /* borrowed; NULL: none */
    size_t room;            /* bytes that `capture` may still take */
    void (*hear)(void *context, const char *data, size_t length); /* gets it as it comes; NULL: nobody listens */
    void *hear_context;
    size_t step;            /* bytes that a write() may have without blocking, once poll() says that one may be made */
    bool is_socket;
    bool takes_all; /* poll() has nothing to say about it */
    bool broken; /* nobody reads any more */
};

/* `ceiling` counts for `capture` alone. */
struct outlet outlet_make(int fd, struct buffer *capture, size_t ceiling);

/* Takes what can be taken now without blocking out of `data`; sets `broken` on EPIPE (and takes all from then on).
 * Fails with ERR_SYSTEM where the descriptor does (a full disk). */
int outlet_take(struct outlet *outlet, struct buffer *data, struct error *err);

#endif
