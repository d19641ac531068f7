#ifndef BOX_INCUS_WEBSOCKET_H
#define BOX_INCUS_WEBSOCKET_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A WebSocket of the daemon's, on a connection of its own, driven by the caller's poll(). It never blocks but in
 * websocket_open(), and knows no exec: binary payload is a stream of bytes, a text message is the peer's end of it. */
struct websocket;

/* Connects and sends the handshake; does not wait for the answer. */
int websocket_open(const char *socket_path, const char *target, struct websocket **ret_websocket, struct error *err);
void websocket_free(struct websocket *websocket);
DEFINE_CLEANUP(struct websocket *, websocket_free)

/* The descriptor (-1 once closed) and what to poll it for (0: nothing now). */
int websocket_fd(const struct websocket *websocket);
short websocket_events(const struct websocket *websocket);

/* Reads, answers pings and writes as far as that goes without blocking. A connection that ends is no error; a refused
 * handshake (with the daemon's words) and a broken frame are. */
int websocket_service(struct websocket *websocket, struct error *err);

/* Payload that has come; the caller takes from it with buffer_consume(). While it holds more than a window's worth
 * nothing more is read, which the daemon feels as back-pressure. */
struct buffer *websocket_incoming(struct websocket *websocket);

/* Input is waiting in here that poll() does not see: call websocket_service() again once there is room. */
bool websocket_stalled(const struct websocket *websocket);

/* The peer will send no more: its text message came, or the connection is gone. */
bool websocket_ended(const struct websocket *websocket);

/* Queues a message; it leaves with websocket_service(). On a closed connection it is dropped. */
void websocket_send(struct websocket *websocket, const void *data, size_t length);
void websocket_send_text(struct websocket *websocket, const char *text);

/* Bytes that still have to leave. */
size_t websocket_backlog(const struct websocket *websocket);

/* Drops the connection; what has come stays readable. */
void websocket_close(struct websocket *websocket);

#endif
