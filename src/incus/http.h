#ifndef BOX_INCUS_HTTP_H
#define BOX_INCUS_HTTP_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/narrate.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HTTP/1.1 over the daemon's unix socket. Knows requests, bodies and time, not what Incus means by them. A question
 * (GET) goes over a connection that is free, and is asked once more where that one turns out to be dead. An act goes
 * over one that has carried nothing yet, and is never sent twice. */
struct http;
struct http_transfer;

/* Bytes to send, read from a descriptor (borrowed) of known length; never held in memory. */
struct http_source {
    int fd;
    int64_t length;
};

/* One file of a multipart/form-data body. */
struct http_part {
    const char *name, *filename;
    struct http_source source;
};

/* Everything is borrowed until the transfer ends. At most one of data, source and parts. */
struct http_request {
    const char *method;
    const char *target;         /* "/1.0/...", encoded */
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    const void *data;
    size_t length;
    const struct http_source *source;
    const struct http_part *parts;
    size_t part_count;
    const int *sink; /* a 2xx body that is a file goes to this descriptor instead of memory */
    size_t ceiling;  /* most bytes of body that are kept in memory; more is ERR_SYSTEM */
};

/* How long, and who is told meanwhile. */
struct http_patience {
    int64_t budget;            /* milliseconds for the whole; 0: no limit */
    int64_t idle;              /* milliseconds without a byte in either direction; 0: no limit */
    struct narrator *narrator; /* may be NULL */
    bool deaf;                 /* goes on although Ctrl-C came: for cleaning up */
};

struct http_answer {
    int status;
    struct buffer body;
    char *etag; /* owned, may be NULL */
    char *kind; /* X-Incus-type: "file", "directory", "symlink"; owned, may be NULL */
};

/* `fd` is a connection that has carried nothing yet, which is taken over, or -1: one is made when it is needed. */
struct http *http_open(const char *socket_path, int fd);
void http_close(struct http *http); /* after every transfer of it was abandoned */
DEFINE_CLEANUP(struct http *, http_close)

/* The whole exchange: sends, waits, ticks, narrates how far a streamed body is. Any HTTP status is success.
 * Ctrl-C ends it, but for an act that is under way without a streamed body: that one has 10 s more for its answer, so
 * that who undoes it knows what the daemon has begun.
 * ERR_NO_DAEMON (connection refused, closed or, with nothing ever answered, idle), ERR_TIMEOUT, ERR_INTERRUPTED,
 * ERR_PROTOCOL, ERR_SYSTEM (the source or the sink failed, too large an answer). */
int http_exchange(struct http *http, const struct http_request *request, const struct http_patience *patience,
                  struct http_answer *ret_answer, struct error *err);
void http_answer_reset(struct http_answer *answer);

/* The same in pieces, for who waits for other descriptors too: connects (as daemon_connect()) and sends what leaves at
 * once, so that who begins several has them all on their way. */
int http_begin(struct http *http, const struct http_request *request, struct http_transfer **ret_transfer,
               struct error *err);

/* One poll(): of `extra` (`count` entries, revents filled) and of the transfers, at most `timeout` ms, then one step of
 * all transfers. Fails only where poll itself does; EINTR is success. `count` is at most 16. */
int http_step(struct http *http, struct pollfd *extra, size_t count, int timeout, struct error *err);
bool http_ended(const struct http_transfer *transfer);

/* The answer of a transfer that ended. */
int http_result(struct http_transfer *transfer, struct http_answer *ret_answer, struct error *err);

/* Ends a transfer; one that is still running loses its connection. */
void http_abandon(struct http_transfer *transfer);
DEFINE_CLEANUP(struct http_transfer *, http_abandon)

#endif
