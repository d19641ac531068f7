#ifndef BOX_INCUS_CLIENT_H
#define BOX_INCUS_CLIENT_H

#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"

#include <stdbool.h>
#include <stdint.h>

/* A connection to the Incus daemon's REST API over its unix socket (one keep-alive connection, reused).
 * The socket is the first of $INCUS_SOCKET, $INCUS_DIR/unix.socket, /run/incus/unix.socket,
 * /var/lib/incus/unix.socket; the project is $INCUS_PROJECT, else Incus's own default.
 * Not thread-safe; one client a thread. */
struct client;

/* Connects (5 s at most). Tells apart, each as ERR_NO_DAEMON or ERR_DENIED with its remedy: Incus is not installed,
 * no socket (the daemon is not running), permission denied (not in the group; in the group, but this session is
 * older than that), a daemon that does not accept. No request is sent: a daemon that accepts and never answers is told
 * by the first request, in the same words. */
int client_open(struct client **ret_client, struct error *err);
void client_close(struct client *client);
DEFINE_CLEANUP(struct client *, client_close)

/* One synchronous request: METHOD PATH ("/1.0/...", already encoded; the project parameter is added here) with a JSON
 * body (borrowed, may be NULL). `ret_metadata` (may be NULL) receives the answer's metadata, owned by the caller.
 * A daemon's error is ERR_NOT_FOUND (404), ERR_EXISTS (409), ERR_DENIED (403), ERR_REFUSED_BY_INCUS otherwise, with its
 * own words and `http`; a broken answer is ERR_PROTOCOL; 30 s without an answer ERR_TIMEOUT; Ctrl-C ERR_INTERRUPTED.
 * Must not be used for a request that answers with an operation: see operation.h. */
int client_request(struct client *client, const char *method, const char *path, const json_t *body,
                   json_t **ret_metadata, struct error *err);

/* GET, for short. */
int client_get(struct client *client, const char *path, json_t **ret_metadata, struct error *err);

/* As client_get, and the answer's ETag for a later conditional PUT; the caller frees it. */
int client_get_tagged(struct client *client, const char *path, json_t **ret_metadata, char **ret_etag,
                      struct error *err);

/* PUT with If-Match: fails with http 412 where the object changed in between. */
int client_put_tagged(struct client *client, const char *path, const char *etag, const json_t *body, struct error *err);

/* Where --verbose wants each request told with its time: called after each. */
void client_trace(struct client *client, void (*trace)(void *context, const char *line), void *context);

/* Ticked while a request waits (a synchronous one may take long: a pool, a network with many instances). NULL: silence.
 */
void client_narrate(struct client *client, struct narrator *narrator);

/* Milliseconds that the daemon may be silent before a request is given up: 30,000 unless set. */
void client_be_patient(struct client *client, int64_t milliseconds);

/* The path of the socket in use. Borrowed. */
const char *client_socket(const struct client *client);

/* For the other files of this floor. All borrowed; the project is NULL where Incus's own default is meant. */
struct http;
struct http *client_http(struct client *client);
const char *client_project(const struct client *client);
int64_t client_patience(const struct client *client);
struct narrator *client_narrator(const struct client *client);
bool client_traced(const struct client *client);
void client_tell(struct client *client, const char *line);

#endif
