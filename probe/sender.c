/* The two ways out for a forged IP packet.
 * Its bytes come from craft.c or icmperror.c; whole frames of any kind are sent by raw.c itself.
 */
#include "sender.h"

#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void sender_close(struct sender *sender)
{
    sockets_close(&sender->fd);
    ether_close(&sender->ether);
}

static int open_raw(const struct request *request, int family, struct sender *sender, struct outcome *outcome)
{
    const char *interface = request_text(request, "--interface", NULL);
    int on = 1;

    sender->fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    if (sender->fd < 0) {
        return outcome_fail(outcome, errno, "opening a raw socket: %s", strerror(errno));
    }
    if (interface && setsockopt(sender->fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) < 0) {
        return outcome_fail(outcome, errno, "binding to interface %s: %s", interface, strerror(errno));
    }
    /* A broadcast address needs leave; a socket that has it may send to any. */
    (void)setsockopt(sender->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
    return 0;
}

int sender_open(const struct request *request, int family, struct sender *ret_sender, struct outcome *outcome)
{
    struct sender sender CLEANUP_SENDER = SENDER_CLOSED;
    bool frames = request_has(request, "--to-mac");

    if (request_mac(request, "--to-mac", sender.to_mac, outcome) < 0 ||
        ether_open(request_text(request, "--interface", NULL), &sender.ether, outcome) < 0 ||
        (!frames && open_raw(request, family, &sender, outcome) < 0)) {
        return -1;
    }
    *ret_sender = sender;
    sender = (struct sender)SENDER_CLOSED;
    return 0;
}

static int send_frame(const struct sender *sender, const struct frame *packet, int family, struct outcome *outcome)
{
    struct frame frame = {.size = 0};
    struct wire_ether header = {.type = family == AF_INET6 ? 0x86dd : 0x0800};

    memcpy(header.destination, sender->to_mac, 6);
    memcpy(header.source, sender->ether.mac, 6);
    wire_put_ether(&frame, &header);
    wire_put(&frame, packet->data, packet->size);
    return ether_send(&sender->ether, &frame, outcome);
}

int sender_send(const struct sender *sender, const struct frame *packet, const struct endpoint *destination,
                struct outcome *outcome)
{
    struct sockaddr_storage address;
    struct endpoint plain = *destination;
    socklen_t size;

    if (packet->overflow) {
        return outcome_fail(outcome, EMSGSIZE, "the packet is longer than %d bytes", WIRE_FRAME);
    }
    if (sender->fd < 0) {
        return send_frame(sender, packet, destination->family, outcome);
    }
    plain.port = 0; /* IPv6 raw sockets take a port for a protocol */
    size = endpoint_to_sockaddr(&plain, &address);
    while (sendto(sender->fd, packet->data, packet->size, 0, (struct sockaddr *)&address, size) < 0) {
        if (errno == EINTR || (errno == ENOBUFS && poll(NULL, 0, 1) == 0)) {
            continue;
        }
        return outcome_fail(outcome, errno, "sending a forged packet: %s", strerror(errno));
    }
    return 0;
}
