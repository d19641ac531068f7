#ifndef BOX_DOCTOR_UPLINK_H
#define BOX_DOCTOR_UPLINK_H

#include "doctor/finding.h"

/* What this host's own network gives boxes. Each appends one finding and never fails. */

/* "route": is there a way to the IPv4 internet? A host with IPv6 alone carries no box that reaches anything. */
void uplink_route(struct findings *findings);

/* "upstream": does any of the resolvers (addresses apart by blanks) answer this host? At most some seconds. */
void uplink_resolvers(const char *dns, struct findings *findings);

#endif
