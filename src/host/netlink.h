#ifndef BOX_HOST_NETLINK_H
#define BOX_HOST_NETLINK_H

#include "base/error.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

/* Plain netlink: requests with an acknowledgement, dumps, and sockets that hear events. */

/* A request under construction; attributes beyond its size abort (all of ours are a few dozen bytes). */
struct netlink_message {
    union {
        struct nlmsghdr header;
        char data[1024];
    };
};

/* Starts a message: `body` (a struct ifinfomsg, ndmsg, rtmsg, ...) follows the header. */
void netlink_begin(struct netlink_message *message, uint16_t type, uint16_t flags, const void *body, size_t length);
void netlink_put(struct netlink_message *message, uint16_t type, const void *data, size_t length);
/* Opens a nested attribute and returns where it began; netlink_close_nest() completes it. */
size_t netlink_open_nest(struct netlink_message *message, uint16_t type);
void netlink_close_nest(struct netlink_message *message, size_t start);

/* A socket of `protocol` (NETLINK_ROUTE, NETLINK_NETFILTER). The caller closes it. */
int netlink_open(int protocol, int *ret_fd, struct error *err);

/* Makes the socket hear a group of events (RTNLGRP_LINK, NFNLGRP_NFTABLES, ...), with room for a burst. */
int netlink_subscribe(int fd, unsigned group, struct error *err);

/* Called for each message of an answer; must not keep pointers into it. */
typedef void netlink_handler(const struct nlmsghdr *header, void *context);

/* Sends one request of the route family on a socket of its own and hands every answer to `handler` (may be NULL) until
 * it is complete. ERR_NOT_FOUND where the kernel knows no such object. A dump that another change cut through is
 * ERR_STATE with errnum EINTR: throw the results away and ask again. */
int netlink_talk(struct netlink_message *message, netlink_handler *handler, void *context, struct error *err);

/* Reads whatever events wait on a non-blocking read, one datagram; returns 1 when there was one, 0 when none is left,
 * -1 with errnum ENOBUFS when the kernel had to drop some (look at everything again). */
int netlink_hear(int fd, netlink_handler *handler, void *context, struct error *err);

/* Sorts the attributes from `data` on into table[type] for types up to `maximum`; others are skipped. */
void netlink_attributes(const void *data, size_t length, const struct rtattr **table, uint16_t maximum);

#endif
