#pragma once

#include "dhcpwire.h"
#include "ether.h"

/* DHCP over frames, for clients that have no address and servers that should not be. */

/* Sends a message, the ports as its direction wants them. NULL for `source` is 0.0.0.0, for `destination` the broadcast
 * address, for `to_mac` the broadcast MAC. */
int dhcp_send(const struct ether *ether, const struct dhcpwire *message, const uint8_t ether_source[6],
              const struct endpoint *source, const struct endpoint *destination, const uint8_t to_mac[6],
              struct outcome *outcome);
/* The next DHCP message of the wanted direction (a server's or a client's): 1, 0 at the deadline, -1 with errno. The
 * packet comes without its payload. */
int dhcp_receive(const struct ether *ether, struct deadline deadline, bool from_server, struct dhcpwire *ret_message,
                 struct dissected *ret_packet);

/* What the message offers, as an object. */
void dhcp_write(struct jsonline *line, const char *key, const struct dhcpwire *message);
