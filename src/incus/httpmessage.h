#ifndef BOX_INCUS_HTTPMESSAGE_H
#define BOX_INCUS_HTTPMESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An HTTP/1.1 answer as bytes (RFC 9112), read strictly: what two readers could understand in two ways is broken. Pure;
 * nothing is allocated, and nothing is looked at twice that a peer could make long. */

/* More than this of a status line and header is broken; the daemon's are below 1 KiB. */
#define HTTPMESSAGE_HEAD ((size_t)16384)

enum httpmessage_progress {
    HTTPMESSAGE_BROKEN = -1,
    HTTPMESSAGE_PARTIAL = 0, /* more bytes are needed */
    HTTPMESSAGE_COMPLETE = 1,
};

/* A value of a header, within the bytes that were read; `text` is NULL where the header is absent. */
struct httpmessage_value {
    const char *text;
    size_t length;
};

struct httpmessage_head {
    int status;     /* 100 to 999 */
    size_t size;    /* bytes that status line and header took */
    int64_t length; /* Content-Length, or -1 */
    bool chunked;
    bool closes;                         /* the connection carries no further answer */
    struct httpmessage_value etag, kind; /* ETag, X-Incus-type */
};

/* Reads a status line and a header at the start of `data`. When complete, `ret_head` is filled; when broken, `ret_why`
 * (may be NULL) says how, in static words. */
enum httpmessage_progress httpmessage_read_head(const char *data, size_t length, struct httpmessage_head *ret_head,
                                                const char **ret_why);

/* The framing of one body, fed piece by piece. */
struct httpmessage_body {
    enum {
        HTTPMESSAGE_ENDED, /* the body is whole */
        HTTPMESSAGE_COUNTED,
        HTTPMESSAGE_UNTIL_CLOSE, /* the end of the connection is its end */
        HTTPMESSAGE_CHUNK_SIZE,
        HTTPMESSAGE_CHUNK_EXTENSION,
        HTTPMESSAGE_CHUNK_DATA,
        HTTPMESSAGE_CHUNK_END,
        HTTPMESSAGE_TRAILER,
    } state;
    int64_t left; /* bytes of payload until the state changes */
    size_t digits, line, trailer;
    bool carriage; /* the last byte of framing was a CR */
};

/* The body that follows `head`. Fails (false) where a success does not say how long it is: cut short, it would look
 * whole. */
bool httpmessage_body_begin(const struct httpmessage_head *head, struct httpmessage_body *ret_body);

/* Takes framing and at most one run of payload off the start of `data`. `ret_taken` is how much of `data` was used,
 * `ret_payload` (within `data`) and `ret_length` what of it is payload. Call again with the rest until all is taken or
 * the state is HTTPMESSAGE_ENDED. False: broken, as `ret_why` (may be NULL) says. */
bool httpmessage_body_read(struct httpmessage_body *body, const char *data, size_t length, size_t *ret_taken,
                           const char **ret_payload, size_t *ret_length, const char **ret_why);

#endif
