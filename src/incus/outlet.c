/* Writing to a descriptor that others share and that may block, without blocking and without changing its flags.
 * Not for: deciding what a broken pipe means; see exec.c. */
#include "incus/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct outlet outlet_make(int fd, struct buffer *capture, size_t ceiling)
{
    struct outlet outlet = {.fd = fd, .capture = capture, .room = ceiling};
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0) {
        outlet.is_socket = S_ISSOCK(status.st_mode);
        /* A pipe that poll() calls writable has room for PIPE_BUF bytes (pipe(7)), and a terminal for little more. A
         * file takes what it gets, and so does a device that is no terminal: /dev/null above all. */
        outlet.takes_all = S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && !isatty(fd));
        outlet.step = outlet.takes_all || outlet.is_socket ? (size_t)1 << 20 : PIPE_BUF;
    }
    return outlet;
}

static bool writable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    return poll(&poller, 1, 0) > 0;
}

static void keep(struct outlet *outlet, struct buffer *data)
{
    size_t part = data->length < outlet->room ? data->length : outlet->room;
    if (part) {
        buffer_append(outlet->capture, data->data, part);
        outlet->room -= part;
    }
    buffer_consume(data, data->length);
}

int outlet_take(struct outlet *outlet, struct buffer *data, struct error *err)
{
    if (outlet->capture) {
        keep(outlet, data);
        return 0;
    }
    if (outlet->hear && data->length > 0) {
        outlet->hear(outlet->hear_context, data->data, data->length);
    }
    if (outlet->hear || outlet->fd < 0 || outlet->broken) {
        buffer_consume(data, data->length);
        return 0;
    }
    size_t done = 0;
    int failure = 0;
    while (done < data->length && (outlet->takes_all || writable(outlet->fd))) {
        size_t part = data->length - done < outlet->step ? data->length - done : outlet->step;
        ssize_t got = outlet->is_socket ? send(outlet->fd, data->data + done, part, MSG_DONTWAIT | MSG_NOSIGNAL)
                                        : write(outlet->fd, data->data + done, part);
        if (got >= 0) {
            done += (size_t)got;
        } else if (errno != EINTR) {
            failure = errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
            break;
        } else {
            break; /* a signal: let the loop above see it */
        }
    }
    buffer_consume(data, done);
    if (failure == EPIPE || failure == ECONNRESET) {
        outlet->broken = true;
        buffer_consume(data, data->length);
        return 0;
    }
    return failure ? error_set_errno(err, failure, "cannot write the output of the command") : 0;
}
