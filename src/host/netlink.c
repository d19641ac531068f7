/* Speaks netlink in as few words as box needs: build a request, collect its answer, hear events.
 * Knows message framing; what the messages mean is in link.c, route.c and in src/stack.
 * Not for nftables transactions: nft.c hands those to libnftables. */
#include "host/netlink.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define NETLINK_RECEIVE_SIZE (64 * 1024)
#define NETLINK_BURST_SIZE   (8 * 1024 * 1024)

void netlink_begin(struct netlink_message *message, uint16_t type, uint16_t flags, const void *body, size_t length)
{
    memset(message, 0, sizeof(*message));
    message->header.nlmsg_type = type;
    message->header.nlmsg_flags = flags | NLM_F_REQUEST;
    message->header.nlmsg_len = NLMSG_LENGTH(length);
    memcpy(NLMSG_DATA(&message->header), body, length);
}

void netlink_put(struct netlink_message *message, uint16_t type, const void *data, size_t length)
{
    size_t start = NLMSG_ALIGN(message->header.nlmsg_len);
    if (start + RTA_SPACE(length) > sizeof(message->data)) {
        abort();
    }
    struct rtattr *attribute = (struct rtattr *)(message->data + start);
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(length);
    if (length > 0) {
        memcpy(RTA_DATA(attribute), data, length);
    }
    message->header.nlmsg_len = start + RTA_ALIGN(attribute->rta_len);
}

size_t netlink_open_nest(struct netlink_message *message, uint16_t type)
{
    size_t start = NLMSG_ALIGN(message->header.nlmsg_len);
    netlink_put(message, type | NLA_F_NESTED, NULL, 0);
    return start;
}

void netlink_close_nest(struct netlink_message *message, size_t start)
{
    struct rtattr *attribute = (struct rtattr *)(message->data + start);
    attribute->rta_len = message->header.nlmsg_len - start;
}

int netlink_open(int protocol, int *ret_fd, struct error *err)
{
    CLEANUP(fd_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot open a netlink socket");
    }
    /* Unbound it would pass for the kernel itself, and be skipped when the kernel tells its events. */
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        return error_set_errno(err, errno, "cannot bind a netlink socket");
    }
    struct timeval patience = {.tv_sec = 5};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    int on = 1;
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int netlink_subscribe(int fd, unsigned group, struct error *err)
{
    int size = NETLINK_BURST_SIZE;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
        return error_set_errno(err, errno, "cannot subscribe to the kernel's events (netlink group %u)", group);
    }
    return 0;
}

/* Reads one datagram of the kernel (portid 0); anything that another process sent is dropped. */
static ssize_t receive(int fd, char *data, size_t size, int flags)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        socklen_t length = sizeof(from);
        ssize_t got = recvfrom(fd, data, size, flags, (struct sockaddr *)&from, &length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got >= 0 && from.nl_pid != 0) {
            continue;
        }
        return got;
    }
}

static int fail_request(int errnum, struct error *err)
{
    if (errnum == ENOENT || errnum == ENODEV || errnum == ESRCH) {
        (void)error_set(err, ERR_NOT_FOUND, "the kernel knows no such object: %s", strerror(errnum));
        if (err != NULL) {
            err->errnum = errnum;
        }
        return -1;
    }
    return error_set_errno(err, errnum, "the kernel refused the request");
}

/* Handles one datagram of an answer: 1 when the answer is complete, 0 when more follows. */
static int take_answer(const char *data, size_t length, netlink_handler *handler, void *context, bool *interrupted,
                       struct error *err)
{
    size_t left = length;
    for (const struct nlmsghdr *header = (const void *)data; NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
        if (header->nlmsg_flags & NLM_F_DUMP_INTR) {
            *interrupted = true;
        }
        if (header->nlmsg_type == NLMSG_DONE) {
            return 1;
        }
        if (header->nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *answer = NLMSG_DATA(header);
            return answer->error == 0 ? 1 : fail_request(-answer->error, err);
        }
        if (handler != NULL) {
            handler(header, context);
        }
    }
    return 0;
}

int netlink_talk(struct netlink_message *message, netlink_handler *handler, void *context, struct error *err)
{
    CLEANUP(fd_closep) int fd = -1;
    if (netlink_open(NETLINK_ROUTE, &fd, err) < 0) {
        return -1;
    }
    if ((message->header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) {
        message->header.nlmsg_flags |= NLM_F_ACK;
    }
    if (send(fd, message->data, message->header.nlmsg_len, 0) < 0) {
        return error_set_errno(err, errno, "cannot ask the kernel");
    }
    CLEANUP(freep) char *data = xmalloc(NETLINK_RECEIVE_SIZE);
    bool interrupted = false;
    for (;;) {
        ssize_t got = receive(fd, data, NETLINK_RECEIVE_SIZE, 0);
        if (got < 0) {
            return error_set_errno(err, errno, "no answer from the kernel");
        }
        int done = take_answer(data, (size_t)got, handler, context, &interrupted, err);
        if (done < 0) {
            return -1;
        }
        if (done > 0) {
            break;
        }
    }
    if (interrupted) {
        (void)error_set(err, ERR_STATE, "the kernel's tables changed while they were read");
        if (err != NULL) {
            err->errnum = EINTR;
        }
        return -1;
    }
    return 0;
}

int netlink_hear(int fd, netlink_handler *handler, void *context, struct error *err)
{
    CLEANUP(freep) char *data = xmalloc(NETLINK_RECEIVE_SIZE);
    ssize_t got = receive(fd, data, NETLINK_RECEIVE_SIZE, MSG_DONTWAIT);
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        }
        return error_set_errno(err, errno, "cannot hear the kernel's events");
    }
    size_t left = (size_t)got;
    for (const struct nlmsghdr *header = (const void *)data; NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
        handler(header, context);
    }
    return 1;
}

void netlink_attributes(const void *data, size_t length, const struct rtattr **table, uint16_t maximum)
{
    for (uint16_t i = 0; i <= maximum; i++) {
        table[i] = NULL;
    }
    size_t left = length;
    for (const struct rtattr *attribute = data; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        uint16_t type = attribute->rta_type & NLA_TYPE_MASK;
        if (type <= maximum) {
            table[type] = attribute;
        }
    }
}
