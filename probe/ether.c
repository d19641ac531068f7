/* Frames to and from the wire, past the stack: AF_PACKET.
 * Note what it sees coming in: frames before netfilter. As the receiving end of an attack on a host it lies; there an
 * ordinary socket must listen (listen.c).
 */
#include "ether.h"

#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

void ether_close(struct ether *ether)
{
    sockets_close(&ether->fd);
}

static int open_on(struct ether *ether, struct outcome *outcome)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)ether->index,
    };
    int on = 1;
    int room = 4 * 1024 * 1024;

    /* Protocol 0 until it is bound: else frames of every interface pile up first. */
    ether->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ether->fd < 0) {
        return outcome_fail(outcome, errno, "opening a packet socket: %s", strerror(errno));
    }
    (void)setsockopt(ether->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on));
    /* Or a flood of our own fills the buffer that its spoils should go to. */
    (void)setsockopt(ether->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
    if (setsockopt(ether->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0) {
        (void)setsockopt(ether->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    }
    if (bind(ether->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        return outcome_fail(outcome, errno, "binding to interface %s: %s", ether->name, strerror(errno));
    }
    return 0;
}

int ether_open(const char *name, struct ether *ret_ether, struct outcome *outcome)
{
    struct ether ether CLEANUP_ETHER = {.fd = -1};
    struct netdump dump;

    if (netdump_read(&dump, outcome) < 0) {
        return -1;
    }
    const struct netdump_link *link = name ? netdump_link_named(&dump, name) : netdump_main_link(&dump);
    if (!link) {
        return outcome_fail(outcome, ENODEV, "no interface %s", name ? name : "that frames could leave by");
    }
    const struct netdump_address *address = netdump_address_on(&dump, link->index, AF_INET);
    const struct netdump_route *route = netdump_default_route(&dump, link->index);
    ether.index = link->index;
    memcpy(ether.name, link->name, sizeof(ether.name));
    memcpy(ether.mac, link->mac, 6);
    ether.address = address ? address->address : (struct endpoint){0};
    ether.gateway = route ? route->gateway : (struct endpoint){0};
    if (open_on(&ether, outcome) < 0) {
        return -1;
    }
    *ret_ether = ether;
    ether.fd = -1;
    return 0;
}

int ether_send(const struct ether *ether, const struct frame *frame, struct outcome *outcome)
{
    if (frame->overflow) {
        return outcome_fail(outcome, EMSGSIZE, "the frame is longer than %d bytes", WIRE_FRAME);
    }
    while (send(ether->fd, frame->data, frame->size, 0) < 0) {
        /* A full queue empties by itself; the budget ends it if it does not. */
        if (errno == EINTR || ((errno == ENOBUFS || errno == EAGAIN) && poll(NULL, 0, 1) == 0)) {
            continue;
        }
        return outcome_fail(outcome, errno, "sending a frame of %zu bytes on %s: %s", frame->size, ether->name,
                            strerror(errno));
    }
    return 0;
}

/* The kernel keeps the outermost tag beside the frame; here it returns to its place. */
static void restore_tag(struct frame *frame, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) {
            continue;
        }
        struct tpacket_auxdata told;
        memcpy(&told, CMSG_DATA(c), sizeof(told));
        if (!(told.tp_status & TP_STATUS_VLAN_VALID) || frame->size < 12 || frame->size + 4 > sizeof(frame->data)) {
            return;
        }
        uint16_t type = htons(told.tp_status & TP_STATUS_VLAN_TPID_VALID ? told.tp_vlan_tpid : 0x8100);
        uint16_t tag = htons(told.tp_vlan_tci);
        memmove(frame->data + 16, frame->data + 12, frame->size - 12);
        memcpy(frame->data + 12, &type, 2);
        memcpy(frame->data + 14, &tag, 2);
        frame->size += 4;
        return;
    }
}

int ether_poll(const struct ether *ether, struct frame *frame, struct dissected *ret_dissected)
{
    for (;;) {
        char control[128] __attribute__((aligned(sizeof(size_t))));
        struct sockaddr_ll from = {0};
        struct iovec piece = {.iov_base = frame->data, .iov_len = sizeof(frame->data)};
        struct msghdr message = {
            .msg_name = &from,
            .msg_namelen = sizeof(from),
            .msg_iov = &piece,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof(control),
        };
        ssize_t got = recvmsg(ether->fd, &message, MSG_DONTWAIT);

        if (got < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        }
        if (from.sll_pkttype == PACKET_OUTGOING) {
            continue;
        }
        frame->size = (size_t)got;
        frame->overflow = false;
        restore_tag(frame, &message);
        if (dissect_frame(frame->data, frame->size, ret_dissected)) {
            return 1;
        }
    }
}

int ether_receive(const struct ether *ether, struct deadline deadline, struct frame *frame,
                  struct dissected *ret_dissected)
{
    /* The clock is asked before each frame: under a flood there is always one more. */
    while (deadline_left_ms(deadline) > 0) {
        int got = ether_poll(ether, frame, ret_dissected);
        if (got) {
            return got;
        }
        int ready = deadline_wait(deadline, ether->fd, POLLIN);
        if (ready <= 0) {
            return ready;
        }
    }
    return 0;
}

int ether_promiscuous(const struct ether *ether, struct outcome *outcome)
{
    struct packet_mreq asked = {.mr_ifindex = (int)ether->index, .mr_type = PACKET_MR_PROMISC};

    if (setsockopt(ether->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &asked, sizeof(asked)) < 0) {
        return outcome_fail(outcome, errno, "making %s promiscuous: %s", ether->name, strerror(errno));
    }
    return 0;
}

int ether_ask(const struct ether *ether, const struct endpoint *address, struct deadline deadline, uint8_t ret_mac[6])
{
    struct wire_ether header = {.destination = {255, 255, 255, 255, 255, 255}, .type = 0x0806};
    struct wire_arp question = {.operation = 1};
    struct outcome ignored CLEANUP_OUTCOME = {0};
    struct frame frame = {.size = 0};
    struct dissected came;

    memcpy(header.source, ether->mac, 6);
    memcpy(question.sender_mac, ether->mac, 6);
    memcpy(question.sender_ip, &ether->address.ip.v4, 4);
    memcpy(question.target_ip, &address->ip.v4, 4);
    wire_put_ether(&frame, &header);
    wire_put_arp(&frame, &question);
    if (ether_send(ether, &frame, &ignored) < 0) {
        return -1;
    }
    while (ether_receive(ether, deadline, &frame, &came) > 0) {
        if (came.has_arp && came.arp.operation == 2 && memcmp(came.arp.sender_ip, &address->ip.v4, 4) == 0) {
            memcpy(ret_mac, came.arp.sender_mac, 6);
            return 0;
        }
    }
    return -1;
}
