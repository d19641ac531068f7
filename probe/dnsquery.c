/* Asks one DNS server one question, over UDP or TCP, and takes only the answer to it.
 * The bytes are made and read in dnswire.c; which servers are asked is the caller's choice.
 */
#include "dnsquery.h"

#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { ATTEMPTS = 3 };

static enum dnsquery_result failed(struct dnsquery *exchange, int errno_value)
{
    exchange->errno_value = errno_value;
    return DNSQUERY_FAILED;
}

/* True when these bytes are the answer; else it is counted why not. */
static bool accept_reply(struct dnsquery *exchange, const uint8_t *bytes, size_t size, struct dnswire_reply *ret_reply)
{
    const char *wrong = dnswire_read_reply(bytes, size, ret_reply);

    if (wrong) {
        exchange->malformed = wrong;
        return false;
    }
    if (!dnswire_answers(&exchange->query, ret_reply)) {
        exchange->foreign++;
        return false;
    }
    exchange->reply_size = size;
    return true;
}

static enum dnsquery_result over_udp(struct dnsquery *exchange, const uint8_t *question, size_t size,
                                     struct deadline deadline, struct dnswire_reply *ret_reply)
{
    uint8_t bytes[4096];

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct deadline step = deadline_step_ms(deadline, deadline_left_ms(deadline) / (ATTEMPTS - attempt));

        if (send(exchange->fd, question, size, 0) < 0) {
            return failed(exchange, errno);
        }
        for (;;) {
            int ready = deadline_wait(step, exchange->fd, POLLIN);
            if (ready < 0) {
                return failed(exchange, errno);
            }
            if (ready == 0) {
                break;
            }
            ssize_t got = recv(exchange->fd, bytes, sizeof(bytes), 0);
            if (got < 0 && errno != EAGAIN) {
                return failed(exchange, errno);
            }
            if (got >= 0 && accept_reply(exchange, bytes, (size_t)got, ret_reply)) {
                return DNSQUERY_ANSWERED;
            }
        }
    }
    return DNSQUERY_SILENT;
}

/* 1 when all bytes were read, 0 for silence, -1 with errno. */
static int read_all(int fd, uint8_t *bytes, size_t size, struct deadline deadline)
{
    size_t at = 0;

    while (at < size) {
        int ready = deadline_wait(deadline, fd, POLLIN);
        if (ready <= 0) {
            return ready;
        }
        ssize_t got = recv(fd, bytes + at, size - at, 0);
        if (got == 0) {
            errno = ECONNRESET;
            return -1;
        }
        if (got < 0 && errno != EAGAIN) {
            return -1;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    return 1;
}

static enum dnsquery_result over_tcp(struct dnsquery *exchange, const uint8_t *question, size_t size,
                                     struct deadline deadline, struct dnswire_reply *ret_reply)
{
    uint8_t framed[DNSWIRE_QUERY + 2] = {(uint8_t)(size >> 8), (uint8_t)size};
    uint8_t prefix[2];
    uint8_t bytes[16384];
    int error = 0;
    socklen_t error_size = sizeof(error);

    int ready = deadline_wait(deadline, exchange->fd, POLLOUT);
    if (ready <= 0) {
        return ready == 0 ? DNSQUERY_SILENT : failed(exchange, errno);
    }
    (void)getsockopt(exchange->fd, SOL_SOCKET, SO_ERROR, &error, &error_size);
    if (error) {
        return failed(exchange, error);
    }
    memcpy(framed + 2, question, size);
    if (send(exchange->fd, framed, size + 2, MSG_NOSIGNAL) < 0) {
        return failed(exchange, errno);
    }
    ready = read_all(exchange->fd, prefix, 2, deadline);
    size_t length = ready > 0 ? (size_t)prefix[0] << 8 | prefix[1] : 0;
    if (length > sizeof(bytes)) {
        exchange->malformed = "longer than 16 KiB";
        return DNSQUERY_SILENT;
    }
    if (ready > 0) {
        ready = read_all(exchange->fd, bytes, length, deadline);
    }
    if (ready <= 0) {
        return ready == 0 ? DNSQUERY_SILENT : failed(exchange, errno);
    }
    return accept_reply(exchange, bytes, length, ret_reply) ? DNSQUERY_ANSWERED : DNSQUERY_SILENT;
}

enum dnsquery_result dnsquery_run(struct dnsquery *exchange, struct deadline deadline, struct dnswire_reply *ret_reply)
{
    uint8_t question[DNSWIRE_QUERY];
    size_t size;

    if (!dnswire_write_query(&exchange->query, question, &size)) {
        return failed(exchange, EINVAL);
    }
    if (sockets_connect(exchange->fd, &exchange->server) < 0 && errno != EINPROGRESS) {
        return failed(exchange, errno);
    }
    return exchange->tcp ? over_tcp(exchange, question, size, deadline, ret_reply)
                         : over_udp(exchange, question, size, deadline, ret_reply);
}
