/* HTTP/1.1 over a unix socket: requests and answers over it, with one poll(), so that Ctrl-C, ticks and budgets
 * reach every wait. Not for: the bytes of an answer (httpmessage.c) or of a request (httpupload.c), nor for what they
 * mean; see envelope.c and call.c. */
#include "incus/http.h"

#include "base/cancel.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/httpmessage.h"
#include "incus/httppool.h"
#include "incus/httpupload.h"
#include "incus/httpwatch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define EXTRA     16                   /* descriptors of the caller's that one step polls */
#define TRANSFERS 16                   /* and transfers */
#define CHUNK     ((size_t)256 * 1024) /* received at a time */
#define ROUNDS    16                   /* chunks in one step, lest nobody looks at the clock meanwhile */
#define INTERIM   8                    /* answers before the answer: 100 Continue and its like */

struct http {
    struct httppool pool;
    bool answered; /* the daemon has said something on some connection */
    struct http_transfer *transfers;
    char *chunk;
};

struct http_transfer {
    struct http *http;
    struct http_transfer *next;
    int fd;
    bool question; /* may be sent again */
    bool again;    /* over a connection that has carried others; without a word on it, `question` goes to a fresh one */
    bool sent;     /* all of the request, or as much as anybody takes */
    bool cut;      /* not all of the request: the connection is of no further use */
    bool complete; /* the answer is */
    bool ended;
    struct httpupload upload;
    int sink; /* or -1 */
    size_t ceiling;
    int64_t received; /* bytes that went to the sink */
    struct buffer header;
    unsigned interim;
    int64_t length; /* of the answer's body; -1 where the header does not say */
    bool open;      /* the header is read */
    bool closes;
    struct httpmessage_body body;
    struct error failure;
    struct http_answer answer;
};

void http_answer_reset(struct http_answer *answer)
{
    buffer_reset(&answer->body);
    free(answer->etag);
    free(answer->kind);
    *answer = (struct http_answer){0};
}

struct http *http_open(const char *socket_path, int fd)
{
    struct http *http = xcalloc(1, sizeof(*http));
    *http = (struct http){.pool = httppool_make(socket_path, fd)};
    return http;
}

void http_close(struct http *http)
{
    if (!http) {
        return;
    }
    httppool_reset(&http->pool);
    free(http->chunk);
    free(http);
}

static int connect_transfer(struct http_transfer *transfer, struct error *err)
{
    return httppool_take(&transfer->http->pool, transfer->question, &transfer->fd, &transfer->again, err);
}

static void fail(struct http_transfer *transfer, struct error *cause)
{
    error_move(&transfer->failure, cause);
    transfer->ended = true;
    fd_closep(&transfer->fd);
}

static void broken(struct http_transfer *transfer, const char *why)
{
    struct error cause = {0};
    (void)error_set(&cause, ERR_PROTOCOL, "the answer of Incus is broken: %s", why);
    fail(transfer, &cause);
}

/* The request has left and the answer is here, or nothing more of either will move. */
static void conclude(struct http_transfer *transfer)
{
    if (!transfer->complete || !transfer->sent) {
        return;
    }
    transfer->ended = true;
    if (!transfer->closes && !transfer->cut) {
        httppool_give(&transfer->http->pool, transfer->fd);
        transfer->fd = -1;
    }
    fd_closep(&transfer->fd);
}

static void feed_upload(struct http_transfer *transfer)
{
    struct error cause = {0};
    switch (httpupload_send(&transfer->upload, transfer->fd, &cause)) {
    case HTTPUPLOAD_FAILED:
        fail(transfer, &cause);
        return;
    case HTTPUPLOAD_GONE:
        transfer->cut = true; /* the answer that the daemon gave before it hung up is still to be read */
        break;
    case HTTPUPLOAD_WAITING:
        return;
    case HTTPUPLOAD_DONE:
        break;
    }
    transfer->sent = true;
    conclude(transfer);
}

static char *copy_value(const struct httpmessage_value *value)
{
    return value->text ? xstrndup(value->text, value->length) : NULL;
}

static bool open_answer(struct http_transfer *transfer, const struct httpmessage_head *head)
{
    struct http_answer *answer = &transfer->answer;
    answer->status = head->status;
    answer->etag = copy_value(&head->etag);
    answer->kind = copy_value(&head->kind);
    transfer->length = head->length;
    transfer->closes = head->closes;
    transfer->open = true;
    if (!httpmessage_body_begin(head, &transfer->body)) {
        broken(transfer, "it does not say how long it is");
        return false;
    }
    /* A refusal may come while a body is still being sent: nobody wants the rest. */
    if (head->status >= 400 && !transfer->sent) {
        transfer->sent = transfer->cut = true;
    }
    return true;
}

static bool take_payload(struct http_transfer *transfer, const char *data, size_t length)
{
    struct error cause = {0};
    struct http_answer *answer = &transfer->answer;
    bool is_file = !answer->kind || text_equal(answer->kind, "file");
    if (transfer->sink >= 0 && answer->status / 100 == 2 && is_file) {
        transfer->received += (int64_t)length;
        if (fd_write_all(transfer->sink, data, length, &cause) < 0) {
            fail(transfer, &cause);
            return false;
        }
        return true;
    }
    if (length > transfer->ceiling - answer->body.length) {
        (void)error_set(&cause, ERR_SYSTEM, "the answer of Incus is larger than %zu bytes", transfer->ceiling);
        fail(transfer, &cause);
        return false;
    }
    buffer_append(&answer->body, data, length);
    return true;
}

static void take_body(struct http_transfer *transfer, const char *data, size_t length)
{
    const char *why = NULL, *payload;
    size_t taken, run;
    while (length && transfer->body.state != HTTPMESSAGE_ENDED) {
        if (!httpmessage_body_read(&transfer->body, data, length, &taken, &payload, &run, &why)) {
            broken(transfer, why);
            return;
        }
        if (run && !take_payload(transfer, payload, run)) {
            return;
        }
        data += taken;
        length -= taken;
    }
    if (transfer->body.state == HTTPMESSAGE_ENDED) {
        transfer->complete = true;
        transfer->cut = transfer->cut || length; /* nobody asked for what follows */
        conclude(transfer);
    }
}

/* Reads the header off what has come, and the body behind it. */
static void take_header(struct http_transfer *transfer, const char *data, size_t length)
{
    struct buffer *header = &transfer->header;
    buffer_append(header, data, length);
    while (!transfer->open && !transfer->ended) {
        struct httpmessage_head head;
        const char *why = NULL;
        enum httpmessage_progress progress = httpmessage_read_head(header->data, header->length, &head, &why);
        if (progress == HTTPMESSAGE_PARTIAL) {
            return;
        }
        if (progress == HTTPMESSAGE_BROKEN) {
            broken(transfer, why);
        } else if (head.status == 101) {
            broken(transfer, "it changes the protocol");
        } else if (head.status >= 200) {
            if (open_answer(transfer, &head)) {
                buffer_consume(header, head.size);
                take_body(transfer, header->data, header->length);
                buffer_reset(header);
            }
        } else if (++transfer->interim > INTERIM) {
            broken(transfer, "it only ever announces itself");
        } else {
            buffer_consume(header, head.size);
        }
    }
}

static int begin_again(struct http_transfer *transfer, struct error *err);

/* The connection is over, whatever errno calls it. */
static void take_end(struct http_transfer *transfer)
{
    struct error cause = {0};
    if (transfer->open && transfer->body.state == HTTPMESSAGE_UNTIL_CLOSE) {
        transfer->complete = transfer->sent = transfer->cut = true;
        conclude(transfer);
        return;
    }
    if (transfer->question && transfer->again && !transfer->open && !transfer->header.length) {
        /* The daemon hung up on a connection that nobody used, just when it was used. */
        if (begin_again(transfer, &cause) < 0) {
            fail(transfer, &cause);
        }
        return;
    }
    (void)error_set(&cause, ERR_NO_DAEMON, "the Incus daemon closed the connection before its answer was complete");
    (void)error_remedy(&cause, "see whether the daemon still runs and what its log says");
    fail(transfer, &cause);
}

static void receive(struct http_transfer *transfer)
{
    struct http *http = transfer->http;
    if (!http->chunk) {
        http->chunk = xmalloc(CHUNK);
    }
    for (int round = 0; round < ROUNDS && !transfer->complete && !transfer->ended; round++) {
        ssize_t got = recv(transfer->fd, http->chunk, CHUNK, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (got <= 0) {
            take_end(transfer);
            return;
        }
        http->answered = true;
        if (transfer->open) {
            take_body(transfer, http->chunk, (size_t)got);
        } else {
            take_header(transfer, http->chunk, (size_t)got);
        }
        if ((size_t)got < CHUNK) {
            return; /* that was all there was: another call would only say so */
        }
    }
}

static int begin_again(struct http_transfer *transfer, struct error *err)
{
    fd_closep(&transfer->fd);
    transfer->upload.at = transfer->upload.sent = 0;
    transfer->sent = transfer->cut = false;
    transfer->question = false; /* once */
    if (connect_transfer(transfer, err) < 0) {
        return -1;
    }
    feed_upload(transfer);
    return 0;
}

void http_abandon(struct http_transfer *transfer)
{
    if (!transfer) {
        return;
    }
    for (struct http_transfer **at = &transfer->http->transfers; *at; at = &(*at)->next) {
        if (*at == transfer) {
            *at = transfer->next;
            break;
        }
    }
    fd_closep(&transfer->fd);
    httpupload_reset(&transfer->upload);
    buffer_reset(&transfer->header);
    error_reset(&transfer->failure);
    http_answer_reset(&transfer->answer);
    free(transfer);
}

int http_begin(struct http *http, const struct http_request *request, struct http_transfer **ret_transfer,
               struct error *err)
{
    CLEANUP(http_abandonp) struct http_transfer *transfer = xcalloc(1, sizeof(*transfer));
    transfer->http = http;
    transfer->fd = -1;
    transfer->sink = request->sink ? *request->sink : -1;
    transfer->ceiling = request->ceiling;
    transfer->question = text_equal(request->method, "GET") && !request->source && !request->parts;
    if (httpupload_make(request, &transfer->upload, err) < 0 || connect_transfer(transfer, err) < 0) {
        return -1;
    }
    transfer->next = http->transfers;
    http->transfers = transfer;
    feed_upload(transfer);
    *ret_transfer = steal(&transfer);
    return 0;
}

bool http_ended(const struct http_transfer *transfer)
{
    return transfer->ended;
}

static short events_of(const struct http_transfer *transfer)
{
    return (short)((transfer->complete ? 0 : POLLIN) | (transfer->sent ? 0 : POLLOUT));
}

static void advance(struct http_transfer *transfer, short revents)
{
    if (revents & ~POLLOUT && !transfer->complete) {
        receive(transfer);
    }
    if (!transfer->ended && !transfer->sent && revents & (POLLOUT | POLLERR | POLLHUP)) {
        feed_upload(transfer);
    }
}

int http_step(struct http *http, struct pollfd *extra, size_t count, int timeout, struct error *err)
{
    struct pollfd fds[EXTRA + TRANSFERS];
    struct http_transfer *polled[TRANSFERS];
    size_t used = count < EXTRA ? count : EXTRA, transfers = 0;
    for (size_t i = 0; i < used; i++) {
        fds[i] = extra[i];
    }
    for (struct http_transfer *transfer = http->transfers; transfer && transfers < TRANSFERS;
         transfer = transfer->next) {
        if (!transfer->ended) {
            fds[used + transfers] = (struct pollfd){.fd = transfer->fd, .events = events_of(transfer)};
            polled[transfers++] = transfer;
        }
    }
    int ready = poll(fds, used + transfers, timeout);
    if (ready < 0 && errno != EINTR) {
        return error_set_errno(err, errno, "cannot wait for the Incus daemon");
    }
    for (size_t i = 0; i < count; i++) {
        extra[i].revents = ready > 0 && i < used ? fds[i].revents : 0;
    }
    for (size_t i = 0; i < transfers && ready > 0; i++) {
        if (fds[used + i].revents) {
            advance(polled[i], fds[used + i].revents);
        }
    }
    return 0;
}

int http_result(struct http_transfer *transfer, struct http_answer *ret_answer, struct error *err)
{
    if (transfer->failure.code) {
        return error_move(err, &transfer->failure);
    }
    *ret_answer = transfer->answer;
    transfer->answer = (struct http_answer){0};
    return 0;
}

static struct httpwatch_motion motion_of(const struct http_transfer *transfer)
{
    return (struct httpwatch_motion){
        .streamed = transfer->upload.moved + transfer->received,
        .total = transfer->sink >= 0 ? transfer->length : transfer->upload.total,
        .kept = (int64_t)transfer->answer.body.length,
        .answered = transfer->http->answered,
        .socket_path = transfer->http->pool.socket_path,
    };
}

int http_exchange(struct http *http, const struct http_request *request, const struct http_patience *patience,
                  struct http_answer *ret_answer, struct error *err)
{
    if (!patience->deaf && cancel_check(err) < 0) {
        return -1;
    }
    CLEANUP(http_abandonp) struct http_transfer *transfer = NULL;
    if (http_begin(http, request, &transfer, err) < 0) {
        return -1;
    }
    bool act = !text_equal(request->method, "GET") && !request->source && request->part_count == 0;
    struct httpwatch watch = httpwatch_make(patience, act);
    while (!transfer->ended) {
        struct pollfd cancel = {.fd = httpwatch_cancel_fd(&watch), .events = POLLIN};
        if (http_step(http, &cancel, 1, httpwatch_timeout(&watch), err) < 0) {
            return -1;
        }
        if (transfer->ended) {
            break;
        }
        const struct httpwatch_motion motion = motion_of(transfer);
        if (httpwatch_look(&watch, &motion, err) < 0) {
            return -1;
        }
    }
    return http_result(transfer, ret_answer, err);
}
