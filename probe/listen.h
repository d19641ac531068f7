#pragma once

#include "hearing.h"

/* The kinds of listener; each hears until it is over and then returns 0, or -1 with the failure said. */
int listen_tcp(struct hearing *hearing, struct outcome *outcome);
int listen_udp(struct hearing *hearing, struct outcome *outcome);
/* A raw socket for one IP protocol (--protocol): what arrives after the filters of this machine. */
int listenwire_ip(struct hearing *hearing, struct outcome *outcome);
/* A packet socket: what arrives on the wire, before them. */
int listenwire_ether(struct hearing *hearing, struct outcome *outcome);
