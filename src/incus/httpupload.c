/* An HTTP request's bytes: head, JSON, files and multipart/form-data, made and sent without holding a file in memory.
 * Not for: connections and answers; see http.c. */
#include "incus/httpupload.h"

#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK  ((size_t)256 * 1024) /* read and sent at a time */
#define ROUNDS 16                   /* chunks in one call, lest nobody looks at the clock meanwhile */

void httpupload_reset(struct httpupload *upload)
{
    for (size_t i = 0; i < upload->count; i++) {
        free(upload->pieces[i].text);
    }
    free(upload->pieces);
    free(upload->chunk);
    *upload = (struct httpupload){0};
}

static void add_piece(struct httpupload *upload, struct httpupload_piece piece)
{
    upload->pieces = xreallocarray(upload->pieces, upload->count + 1, sizeof(piece));
    upload->pieces[upload->count++] = piece;
}

static void add_text(struct httpupload *upload, struct buffer *text)
{
    size_t length = text->length;
    add_piece(upload, (struct httpupload_piece){.text = buffer_steal(text), .length = length, .fd = -1});
}

static void add_source(struct httpupload *upload, const struct http_source *source)
{
    add_piece(upload, (struct httpupload_piece){.fd = source->fd, .left = source->length});
    upload->total += source->length;
}

static bool is_word(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_line(const char *text)
{
    return !text[strcspn(text, "\r\n")];
}

/* RFC 7578: quotes and line ends would end the parameter. */
static char *quotable(const char *text)
{
    char *copy = xstrdup(text);
    for (char *c = copy; *c; c++) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') {
            *c = '_';
        }
    }
    return copy;
}

static void begin_part(struct buffer *text, const char *boundary, const struct http_part *part)
{
    CLEANUP(freep) char *name = quotable(part->name);
    CLEANUP(freep) char *file = quotable(part->filename);
    buffer_append_format(text,
                         "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
                         "Content-Type: application/octet-stream\r\n\r\n",
                         boundary, name, file);
}

/* The files between their boundaries. `head` gets its content type and, as always, its length. */
static void add_parts(struct httpupload *upload, const struct http_request *request, struct buffer *head)
{
    unsigned char random[16];
    char boundary[2 * sizeof(random) + 1];
    /* It must not occur in a file; that it cannot be guessed makes sure of it. */
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        abort();
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        snprintf(boundary + 2 * i, 3, "%02x", random[i]);
    }
    struct httpupload body = {0};
    CLEANUP(buffer_reset) struct buffer text = {0};
    int64_t length = 0;
    for (size_t i = 0; i < request->part_count; i++) {
        begin_part(&text, boundary, &request->parts[i]);
        length += (int64_t)text.length + request->parts[i].source.length;
        add_text(&body, &text);
        add_source(&body, &request->parts[i].source);
        buffer_append_text(&text, "\r\n");
    }
    buffer_append_format(&text, "--%s--\r\n", boundary);
    length += (int64_t)text.length;
    add_text(&body, &text);
    buffer_append_format(head, "Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %lld\r\n\r\n",
                         boundary, (long long)length);
    add_text(upload, head);
    for (size_t i = 0; i < body.count; i++) {
        add_piece(upload, body.pieces[i]);
    }
    upload->total = body.total;
    free(body.pieces);
}

static int check(const struct http_request *request, struct error *err)
{
    if (!is_word(request->method) || !is_word(request->target)) {
        return error_set(err, ERR_USAGE, "a request of Incus cannot carry a path with a blank or a control character");
    }
    for (const char *const *header = request->headers; header && *header; header++) {
        if (!is_line(*header)) {
            return error_set(err, ERR_USAGE, "a request of Incus cannot carry a header with a line break");
        }
    }
    return 0;
}

int httpupload_make(const struct http_request *request, struct httpupload *ret_upload, struct error *err)
{
    if (check(request, err) < 0) {
        return -1;
    }
    struct httpupload upload = {0};
    CLEANUP(buffer_reset) struct buffer head = {0};
    buffer_append_format(&head, "%s %s HTTP/1.1\r\nHost: incus\r\n", request->method, request->target);
    for (const char *const *header = request->headers; header && *header; header++) {
        buffer_append_format(&head, "%s\r\n", *header);
    }
    if (request->parts) {
        add_parts(&upload, request, &head);
    } else if (request->source) {
        buffer_append_format(&head, "Content-Length: %lld\r\n\r\n", (long long)request->source->length);
        add_text(&upload, &head);
        add_source(&upload, request->source);
    } else {
        /* Said even where it is 0: POST and PUT without a body still need their length. */
        if (request->length || !text_equal(request->method, "GET")) {
            buffer_append_format(&head, "Content-Length: %zu\r\n", request->length);
        }
        buffer_append_text(&head, "\r\n");
        /* One packet, one wake-up of the daemon. */
        buffer_append(&head, request->data, request->length);
        add_text(&upload, &head);
    }
    *ret_upload = upload;
    return 0;
}

/* The next chunk of a source; 0 or -1. */
static int refill(struct httpupload *upload, const struct httpupload_piece *piece, struct error *err)
{
    if (!upload->chunk) {
        upload->chunk = xmalloc(CHUNK);
    }
    size_t room = (uint64_t)piece->left < CHUNK ? (size_t)piece->left : CHUNK;
    ssize_t got;
    do {
        got = read(piece->fd, upload->chunk, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return error_set_errno(err, errno, "cannot read what should be sent");
    }
    if (got == 0) {
        return error_set(err, ERR_SYSTEM, "what should be sent ended %lld bytes early", (long long)piece->left);
    }
    upload->chunk_length = (size_t)got;
    upload->sent = 0;
    return 0;
}

/* One send(). True where it took something. */
static bool push(struct httpupload *upload, int fd, const char *data, size_t length, enum httpupload_progress *ret_why)
{
    ssize_t done;
    do {
        done = send(fd, data + upload->sent, length - upload->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        *ret_why = errno == EAGAIN || errno == EWOULDBLOCK ? HTTPUPLOAD_WAITING : HTTPUPLOAD_GONE;
        return false;
    }
    upload->sent += (size_t)done;
    return true;
}

static void next_piece(struct httpupload *upload)
{
    upload->at++;
    upload->sent = upload->chunk_length = 0;
}

enum httpupload_progress httpupload_send(struct httpupload *upload, int fd, struct error *err)
{
    enum httpupload_progress why = HTTPUPLOAD_WAITING;
    for (int round = 0; upload->at < upload->count; round++) {
        struct httpupload_piece *piece = &upload->pieces[upload->at];
        if (piece->text) {
            if (upload->sent < piece->length && !push(upload, fd, piece->text, piece->length, &why)) {
                return why;
            }
            if (upload->sent == piece->length) {
                next_piece(upload);
            }
            continue;
        }
        if (piece->left == 0) {
            next_piece(upload);
            continue;
        }
        if (round >= ROUNDS) {
            return HTTPUPLOAD_WAITING;
        }
        if (upload->sent == upload->chunk_length && refill(upload, piece, err) < 0) {
            return HTTPUPLOAD_FAILED;
        }
        size_t before = upload->sent;
        if (!push(upload, fd, upload->chunk, upload->chunk_length, &why)) {
            return why;
        }
        upload->moved += (int64_t)(upload->sent - before);
        piece->left -= (int64_t)(upload->sent - before);
    }
    return HTTPUPLOAD_DONE;
}
