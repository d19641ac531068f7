/* Which connection a request goes over: an idle one, the one that was made to see whether anybody is there, a new one.
 * Not for: what goes over it; see http.c. */
#include "incus/httppool.h"

#include "base/fd.h"
#include "base/memory.h"
#include "incus/daemon.h"

#include <errno.h>
#include <sys/socket.h>

struct httppool httppool_make(const char *socket_path, int fresh)
{
    return (struct httppool){.socket_path = xstrdup(socket_path), .fresh = fresh};
}

void httppool_reset(struct httppool *pool)
{
    fd_closep(&pool->fresh);
    while (pool->count) {
        fd_closep(&pool->idle[--pool->count]);
    }
    free(pool->socket_path);
    *pool = (struct httppool){.fresh = -1};
}

/* Nothing has come where nothing was asked: neither the connection's end nor a surplus of the last answer. */
static bool is_quiet(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

int httppool_take(struct httppool *pool, bool used_will_do, int *ret_fd, bool *ret_used, struct error *err)
{
    CLEANUP(fd_closep) int fd = -1;
    bool used = false;
    while (used_will_do && pool->count && !used) {
        fd_closep(&fd);
        fd = pool->idle[--pool->count];
        used = is_quiet(fd);
    }
    if (!used) {
        fd_closep(&fd);
        fd = pool->fresh;
        pool->fresh = -1;
    }
    if (fd >= 0 && !used && !is_quiet(fd)) {
        fd_closep(&fd);
    }
    if (fd < 0 && daemon_connect(pool->socket_path, &fd, err) < 0) {
        return -1;
    }
    *ret_fd = fd;
    *ret_used = used;
    fd = -1;
    return 0;
}

void httppool_give(struct httppool *pool, int fd)
{
    if (pool->count < HTTPPOOL_IDLE) {
        pool->idle[pool->count++] = fd;
    } else {
        fd_closep(&fd);
    }
}
