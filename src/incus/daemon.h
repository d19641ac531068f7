#ifndef BOX_INCUS_DAEMON_H
#define BOX_INCUS_DAEMON_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Where the daemon listens, and why it cannot be reached. */

/* The socket: $INCUS_SOCKET, else $INCUS_DIR/unix.socket, else the first of the well-known paths that exists (the first
 * of them where none does). Never fails; the caller frees. */
char *daemon_find(void);

/* Connects, waiting at most 5 s for the daemon to accept. The descriptor is CLOEXEC and the caller's.
 * ERR_NO_DAEMON: not installed, not running, does not accept; ERR_DENIED: not in the socket's group, or in it for
 * longer than this session lives; each with its remedy. */
int daemon_connect(const char *path, int *ret_fd, struct error *err);

/* True where a daemon's program lies on this host, whether it runs or not. */
bool daemon_is_installed(void);

/* What is told where the daemon accepted a connection and then never answered. Always returns -1. */
int daemon_silent(const char *path, int64_t waited, struct error *err);

#endif
