#ifndef BOX_INCUS_HANDSHAKE_H
#define BOX_INCUS_HANDSHAKE_H

#include <stddef.h>

/* The HTTP upgrade that opens a WebSocket (RFC 6455 section 4), from the client's side. */

enum handshake_progress {
    HANDSHAKE_BROKEN = -1, /* not HTTP/1.1, or a header beyond all measure */
    HANDSHAKE_PARTIAL = 0, /* more bytes are needed */
    HANDSHAKE_COMPLETE = 1,
};

/* The request for `target` ("/1.0/...", encoded), with a fresh key. The caller frees. */
char *handshake_request(const char *target);

/* Reads an answer's status line and header. When complete, `ret_status` is the HTTP status and `ret_length` the bytes
 * that they took: what follows in `data` is the first frame already, or the body of a refusal. */
enum handshake_progress handshake_read(const char *data, size_t length, int *ret_status, size_t *ret_length);

#endif
