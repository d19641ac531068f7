#ifndef BOX_INCUS_OPERATION_H
#define BOX_INCUS_OPERATION_H

#include "incus/client.h"

/* An asynchronous operation of the daemon (answer 202). The daemon goes on with it whatever becomes of us. */
struct operation;

/* Sends the request that starts one. Fails as client_request does. */
int operation_start(struct client *client, const char *method, const char *path, const json_t *body,
                    struct operation **ret_operation, struct error *err);

/* Waits for its end by long-poll, at most `budget` milliseconds (0 or less: no limit), ticking and narrating progress
 * to `narrator` (may be NULL). `ret_metadata` (may be NULL) receives the operation's own metadata.
 * A failed operation is ERR_REFUSED_BY_INCUS (or ERR_NOT_FOUND, ERR_EXISTS where its words say so) with the daemon's
 * words; ERR_TIMEOUT and ERR_INTERRUPTED leave it running: cancel or look. */
int operation_wait(struct operation *operation, int64_t budget, struct narrator *narrator, json_t **ret_metadata,
                   struct error *err);

/* The operation's metadata as they are now; for some seconds after its end, too, and where it failed. */
int operation_look(struct operation *operation, json_t **ret_metadata, struct error *err);

/* Asks the daemon to cancel it; not every operation can be. Never fails loudly: the caller is already on its way out.
 */
void operation_cancel(struct operation *operation);

/* Start and wait in one; on Ctrl-C or time-out the operation is cancelled where that can be done. */
int operation_run(struct client *client, const char *method, const char *path, const json_t *body, int64_t budget,
                  struct narrator *narrator, struct error *err);

/* "/1.0/operations/UUID". Borrowed. */
const char *operation_path(const struct operation *operation);
/* The operation's metadata as the creating answer had it (fds and secrets of an exec). Borrowed. */
const json_t *operation_metadata(const struct operation *operation);

/* The wait in pieces, for who waits for other descriptors too (exec.c): begin sends the long-poll, end judges it once
 * http_ended(). Both fail as operation_wait() does. */
struct http_transfer;
int operation_wait_begin(struct operation *operation, struct http_transfer **ret_transfer, struct error *err);
int operation_wait_end(struct operation *operation, struct http_transfer *transfer, json_t **ret_metadata,
                       struct error *err);

/* As operation_start() with everything that a call can carry; see call.h. */
struct call;
int operation_send(struct client *client, const struct call *call, struct operation **ret_operation, struct error *err);

void operation_free(struct operation *operation);
DEFINE_CLEANUP(struct operation *, operation_free)

#endif
