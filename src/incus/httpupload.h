#ifndef BOX_INCUS_HTTPUPLOAD_H
#define BOX_INCUS_HTTPUPLOAD_H

#include "base/buffer.h"
#include "base/error.h"
#include "incus/http.h"

#include <stdbool.h>
#include <stdint.h>

/* A request on its way: its head, its body in memory and its streamed body, as pieces that leave one after the other.
 */
struct httpupload_piece {
    char *text; /* owned; or NULL where the piece is streamed */
    size_t length;
    int fd; /* borrowed */
    int64_t left;
};

struct httpupload {
    struct httpupload_piece *pieces;
    size_t count, at; /* the pieces; the one that is leaving */
    size_t sent;      /* of the text, or of `chunk` */
    char *chunk;      /* what was read of a source and has not left yet */
    size_t chunk_length;
    int64_t total; /* bytes that are streamed */
    int64_t moved; /* of these, the bytes that have left */
};

/* The request as it goes on the wire. ERR_USAGE where its target or a header holds what would end it early. */
int httpupload_make(const struct http_request *request, struct httpupload *ret_upload, struct error *err);
void httpupload_reset(struct httpupload *upload);

enum httpupload_progress {
    HTTPUPLOAD_FAILED = -1, /* the source cannot be read, or ended early; `err` is set */
    HTTPUPLOAD_WAITING = 0, /* the socket takes nothing now, or much has left in this call */
    HTTPUPLOAD_DONE = 1,
    HTTPUPLOAD_GONE = 2, /* nobody is there to take it */
};

/* Sends as far as that goes without blocking on the socket. */
enum httpupload_progress httpupload_send(struct httpupload *upload, int fd, struct error *err);

#endif
