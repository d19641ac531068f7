#pragma once

#include "ether.h"
#include "request.h"

/* Neighbour discovery in frames that this file makes itself, so that it works where the stack's IPv6 is off. Each says
 * its verdict. */

/* fe80::/64 with the interface identifier that the MAC gives (RFC 4291). */
struct endpoint ndp_link_local(const uint8_t mac[6]);
/* A router advertisement to all nodes, for the prefix of --prefix. */
int ndp_advertise(const struct request *request, const struct ether *ether, struct outcome *outcome);
/* A router solicitation; waits for advertisements. */
int ndp_solicit(const struct request *request, const struct ether *ether, struct outcome *outcome);
/* Asks who has the address. */
int ndp_ask(const struct request *request, const struct ether *ether, const struct endpoint *target,
            struct outcome *outcome);
