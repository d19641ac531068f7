/* One WebSocket: the handshake's answer, wslay for the frames, two buffers, no blocking.
 * Not for: what the bytes mean; see exec.c. */
#include "incus/websocket.h"

#include "base/fd.h"
#include "base/memory.h"
#include "incus/daemon.h"
#include "incus/envelope.h"
#include "incus/handshake.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define WINDOW   ((size_t)256 * 1024) /* bytes of payload after which reading pauses */
#define RAW_SIZE ((size_t)128 * 1024)

struct websocket {
    int fd;
    wslay_event_context_ptr frames;
    bool open;              /* the handshake is through */
    bool ended;             /* the peer's text message came */
    bool stalled;           /* the last read stopped for want of room */
    bool drained;           /* the last read took all that had come */
    bool mute;              /* the peer takes nothing more; it may still be sending */
    bool payload;           /* the frame that is coming in belongs to a binary message */
    bool binary;            /* so does the message */
    struct buffer header;   /* of the handshake's answer */
    struct buffer incoming; /* payload */
    struct buffer outgoing; /* framed */
    size_t raw_start, raw_length;
    uint8_t raw[RAW_SIZE];
};

static ssize_t on_receive(wslay_event_context_ptr frames, uint8_t *data, size_t length, int flags, void *context)
{
    struct websocket *websocket = context;
    websocket->stalled = websocket->incoming.length >= WINDOW;
    if (!websocket->stalled && !websocket->drained && websocket->raw_length == 0 && websocket->fd >= 0) {
        ssize_t got;
        do {
            got = recv(websocket->fd, websocket->raw, RAW_SIZE, MSG_DONTWAIT);
        } while (got < 0 && errno == EINTR);
        if (got > 0) {
            websocket->raw_start = 0;
            websocket->raw_length = (size_t)got;
            websocket->drained = (size_t)got < RAW_SIZE;
        } else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            /* The daemon drops its sockets without a CLOSE frame: an end, whatever errno calls it. */
            websocket_close(websocket);
        }
    }
    if (websocket->stalled || websocket->raw_length == 0) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    if (length > websocket->raw_length) {
        length = websocket->raw_length;
    }
    memcpy(data, websocket->raw + websocket->raw_start, length);
    websocket->raw_start += length;
    websocket->raw_length -= length;
    return (ssize_t)length;
}

static ssize_t on_send(wslay_event_context_ptr frames, const uint8_t *data, size_t length, int flags, void *context)
{
    struct websocket *websocket = context;
    buffer_append(&websocket->outgoing, data, length);
    return (ssize_t)length;
}

static int on_mask(wslay_event_context_ptr frames, uint8_t *key, size_t length, void *context)
{
    return getrandom(key, length, 0) == (ssize_t)length ? 0 : -1;
}

/* A ping may come between two frames of a message, and its chunks arrive through the same callback. */
static void on_frame(wslay_event_context_ptr frames, const struct wslay_event_on_frame_recv_start_arg *frame,
                     void *context)
{
    struct websocket *websocket = context;
    bool control = wslay_is_ctrl_frame(frame->opcode);
    if (!control && frame->opcode != WSLAY_CONTINUATION_FRAME) {
        websocket->binary = frame->opcode == WSLAY_BINARY_FRAME;
    }
    websocket->payload = !control && websocket->binary;
    if (frame->opcode == WSLAY_TEXT_FRAME) {
        websocket->ended = true;
    }
}

static void on_chunk(wslay_event_context_ptr frames, const struct wslay_event_on_frame_recv_chunk_arg *chunk,
                     void *context)
{
    struct websocket *websocket = context;
    if (websocket->payload && !websocket->ended && chunk->data_length) {
        buffer_append(&websocket->incoming, chunk->data, chunk->data_length);
    }
}

int websocket_open(const char *socket_path, const char *target, struct websocket **ret_websocket, struct error *err)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_receive,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_frame_recv_start_callback = on_frame,
        .on_frame_recv_chunk_callback = on_chunk,
    };
    CLEANUP(freep) char *request = handshake_request(target);
    CLEANUP(websocket_freep) struct websocket *websocket = xcalloc(1, sizeof(*websocket));
    websocket->fd = -1;
    if (daemon_connect(socket_path, &websocket->fd, err) < 0) {
        return -1;
    }
    if (wslay_event_context_client_init(&websocket->frames, &callbacks, websocket) != 0) {
        abort();
    }
    wslay_event_config_set_no_buffering(websocket->frames, 1);
    size_t length = strlen(request);
    if (send(websocket->fd, request, length, MSG_NOSIGNAL) != (ssize_t)length) {
        return error_set_errno(err, errno, "cannot ask the Incus daemon for a stream");
    }
    *ret_websocket = steal(&websocket);
    return 0;
}

void websocket_free(struct websocket *websocket)
{
    if (!websocket) {
        return;
    }
    websocket_close(websocket);
    if (websocket->frames) {
        wslay_event_context_free(websocket->frames);
    }
    buffer_reset(&websocket->header);
    buffer_reset(&websocket->incoming);
    buffer_reset(&websocket->outgoing);
    free(websocket);
}

void websocket_close(struct websocket *websocket)
{
    fd_closep(&websocket->fd);
}

int websocket_fd(const struct websocket *websocket)
{
    return websocket->fd;
}

short websocket_events(const struct websocket *websocket)
{
    if (websocket->fd < 0) {
        return 0;
    }
    bool room = websocket->incoming.length < WINDOW, waiting = websocket->open && websocket->outgoing.length;
    return (short)((room ? POLLIN : 0) | (waiting ? POLLOUT : 0));
}

struct buffer *websocket_incoming(struct websocket *websocket)
{
    return &websocket->incoming;
}

bool websocket_stalled(const struct websocket *websocket)
{
    return websocket->stalled;
}

bool websocket_ended(const struct websocket *websocket)
{
    return websocket->ended || websocket->fd < 0;
}

size_t websocket_backlog(const struct websocket *websocket)
{
    return websocket->outgoing.length + wslay_event_get_queued_msg_length(websocket->frames);
}

/* RFC 6455 section 5.2, with the mask laid on eight bytes at a time: wslay does it byte by byte, which for a gigabyte
 * took half a second of a CPU. wslay still answers pings and closes; its frames and ours are each put into `outgoing`
 * whole. */
static void queue(struct websocket *websocket, uint8_t opcode, const void *data, size_t length)
{
    if (websocket->fd < 0 || websocket->mute) {
        return;
    }
    uint8_t header[14] = {(uint8_t)(0x80 | opcode)};
    size_t size = 2;
    if (length < 126) {
        header[1] = (uint8_t)(0x80 | length);
    } else {
        size_t digits = length <= UINT16_MAX ? 2 : 8;
        header[1] = digits == 2 ? 0x80 | 126 : 0x80 | 127;
        for (size_t i = digits; i > 0; i--) {
            header[size++] = (uint8_t)(length >> (8 * (i - 1)));
        }
    }
    uint8_t *mask = header + size;
    if (getrandom(mask, 4, 0) != 4) {
        abort();
    }
    buffer_append(&websocket->outgoing, header, size + 4);
    uint8_t *to = (uint8_t *)buffer_reserve(&websocket->outgoing, length);
    const uint8_t *from = data;
    uint64_t pattern, word;
    memcpy(&pattern, mask, 4);
    memcpy((uint8_t *)&pattern + 4, mask, 4);
    size_t done = 0;
    for (; done + sizeof(word) <= length; done += sizeof(word)) {
        memcpy(&word, from + done, sizeof(word));
        word ^= pattern;
        memcpy(to + done, &word, sizeof(word));
    }
    for (; done < length; done++) {
        to[done] = from[done] ^ mask[done % 4];
    }
    websocket->outgoing.length += length;
}

void websocket_send(struct websocket *websocket, const void *data, size_t length)
{
    queue(websocket, WSLAY_BINARY_FRAME, data, length);
}

void websocket_send_text(struct websocket *websocket, const char *text)
{
    queue(websocket, WSLAY_TEXT_FRAME, text, strlen(text));
}

static int refused(const struct websocket *websocket, int status, size_t consumed, struct error *err)
{
    CLEANUP(envelope_reset) struct envelope answer = {0};
    CLEANUP(error_reset) struct error told = {0};
    if (envelope_read(status, websocket->header.data + consumed, websocket->header.length - consumed, "a stream",
                      &answer, &told) < 0 &&
        told.code != ERR_PROTOCOL) {
        error_move(err, &told);
        return error_wrap(err, "the daemon refused a stream of the command");
    }
    return error_set(err, ERR_PROTOCOL, "the daemon refused a stream of the command with HTTP %d", status);
}

/* Reads the answer to the handshake; what comes behind it in the same read is the first frame. */
static int shake(struct websocket *websocket, struct error *err)
{
    while (!websocket->open) {
        char *end = buffer_reserve(&websocket->header, 4096);
        ssize_t got = recv(websocket->fd, end, 4096, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return 0;
        }
        if (got <= 0) {
            websocket_close(websocket);
            return error_set(err, ERR_NO_DAEMON, "the Incus daemon hung up before it opened a stream of the command");
        }
        websocket->header.length += (size_t)got;
        int status;
        size_t consumed;
        switch (handshake_read(websocket->header.data, websocket->header.length, &status, &consumed)) {
        case HANDSHAKE_PARTIAL:
            continue;
        case HANDSHAKE_BROKEN:
            return error_set(err, ERR_PROTOCOL, "the Incus daemon does not speak HTTP on a stream of the command");
        case HANDSHAKE_COMPLETE:
            break;
        }
        if (status != 101) {
            return refused(websocket, status, consumed, err);
        }
        websocket->raw_length = websocket->header.length - consumed;
        memcpy(websocket->raw, websocket->header.data + consumed, websocket->raw_length);
        buffer_reset(&websocket->header);
        websocket->open = true;
    }
    return 0;
}

static void flush(struct websocket *websocket)
{
    (void)wslay_event_send(websocket->frames);
    size_t sent = 0;
    while (websocket->fd >= 0 && !websocket->mute && sent < websocket->outgoing.length) {
        ssize_t done = send(websocket->fd, websocket->outgoing.data + sent, websocket->outgoing.length - sent,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done >= 0) {
            sent += (size_t)done;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            /* The daemon hung up, yet what it sent before is still to be read. */
            websocket->mute = true;
        }
    }
    if (websocket->fd < 0 || websocket->mute) {
        sent = websocket->outgoing.length;
    }
    buffer_consume(&websocket->outgoing, sent);
}

int websocket_service(struct websocket *websocket, struct error *err)
{
    if (!websocket->open) {
        if (websocket->fd >= 0 && shake(websocket, err) < 0) {
            websocket_close(websocket);
            return -1;
        }
        if (!websocket->open) {
            return 0;
        }
    }
    websocket->drained = false;
    if (wslay_event_recv(websocket->frames) == WSLAY_ERR_NOMEM) {
        abort();
    }
    bool closing = wslay_event_get_close_received(websocket->frames);
    if (!closing && !wslay_event_get_read_enabled(websocket->frames)) {
        websocket_close(websocket);
        return error_set(err, ERR_PROTOCOL, "the Incus daemon sent a broken frame on a stream of the command");
    }
    flush(websocket);
    if (closing) {
        websocket_close(websocket);
    }
    return 0;
}
