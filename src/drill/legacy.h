#ifndef BOX_DRILL_LEGACY_H
#define BOX_DRILL_LEGACY_H

#include "drill/trial.h"

/* A stack of the older generation and one box on it, which the drill lays for itself, under the older names for there are
 * no others, and therefore only on a host that has nothing of them. Network, profile, ACL and instance carry CREW_TAG; the
 * nft tables are noted. crew_remove() takes all of it away. */
#define LEGACY_GATEWAY  "10.87.0.1"
#define LEGACY_SUBNET   "10.87.0.0/24"
#define LEGACY_KEY      "boot.stop.priority" /* what its profile sets, and no template */
#define LEGACY_VALUE    "7"
#define LEGACY_SNAPSHOT "drill-before"
#define LEGACY_WORK     "/var/lib/drill-work" /* a file in the box, with the run's id in it */

/* The name of the box of a run: the fact "older.name". The caller frees. */
char *legacy_name(const char *run);

/* Lays stack and box, and waits until the box runs with an address there and carries the instrument. ERR_EXISTS where
 * this host has anything of the older generation, or its subnet; then nothing was touched. */
int legacy_lay(struct trial *trial, struct error *err);

#endif
