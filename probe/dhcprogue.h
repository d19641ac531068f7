#pragma once

#include "ether.h"
#include "request.h"

/* Plays a DHCP server until the budget ends: answers every discover and request on the wire. Reachable when a client
 * asked for what we offered, dropped when none did. */
int dhcprogue_run(const struct request *request, const struct ether *ether, struct outcome *outcome);
