#ifndef BOX_INCUS_HTTPPOOL_H
#define BOX_INCUS_HTTPPOOL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Connections to the daemon: one that has carried nothing yet, and some that are free again. */
#define HTTPPOOL_IDLE 4

struct httppool {
    char *socket_path; /* owned */
    int fresh;         /* or -1 */
    int idle[HTTPPOOL_IDLE];
    size_t count;
};

/* `fresh` (or -1) is taken over. */
struct httppool httppool_make(const char *socket_path, int fresh);
void httppool_reset(struct httppool *pool);

/* A connection, the caller's. Where `used_will_do`, one that is free is preferred, and `ret_used` says that it is such
 * a one: the daemon may have just hung up on it. Fails as daemon_connect() does. */
int httppool_take(struct httppool *pool, bool used_will_do, int *ret_fd, bool *ret_used, struct error *err);

/* Takes back a connection that is free for the next request. */
void httppool_give(struct httppool *pool, int fd);

#endif
