#pragma once

#include "dissect.h"
#include "netdump.h"
#include "request.h"

/* A packet socket on one interface: frames out as they are, frames in as they came, before any filter of this machine.
 */
struct ether {
    int fd; /* -1 when closed */
    unsigned index;
    char name[NETDUMP_NAME];
    uint8_t mac[6];
    struct endpoint address; /* first IPv4 address; family 0: none */
    struct endpoint gateway; /* of the default route over it; family 0: none */
};

#define CLEANUP_ETHER __attribute__((cleanup(ether_close)))
void ether_close(struct ether *ether);

/* Opens `name`, or with NULL the main link. An empty struct whose fd is 0 must not be closed: begin with fd = -1. */
int ether_open(const char *name, struct ether *ret_ether, struct outcome *outcome);
int ether_send(const struct ether *ether, const struct frame *frame, struct outcome *outcome);
/* The next frame that this machine did not send: 1 and it is taken apart, 0 at the deadline, -1 with errno. A VLAN tag
 * that the kernel took out of the frame is put back. The result points into `frame`. */
int ether_receive(const struct ether *ether, struct deadline deadline, struct frame *frame,
                  struct dissected *ret_dissected);
/* The same without waiting: 0 when there is none. */
int ether_poll(const struct ether *ether, struct frame *frame, struct dissected *ret_dissected);
/* Receives what was sent to other MACs as well, for as long as the socket is open. */
int ether_promiscuous(const struct ether *ether, struct outcome *outcome);
/* Asks by ARP who has the address: 0 and the MAC, or -1 for silence (and nothing is said in an outcome). */
int ether_ask(const struct ether *ether, const struct endpoint *address, struct deadline deadline, uint8_t ret_mac[6]);
