#ifndef BOX_DRILL_CREW_H
#define BOX_DRILL_CREW_H

#include "base/argv.h"
#include "base/narrate.h"
#include "drill/ground.h"

#include <stdbool.h>
#include <stdint.h>

/* What the drill makes for itself on a daemon, how it is known again, and how it goes away. Everything carries
 * CREW_TAG from the first moment it can, and its name is noted below CREW_DIRECTORY before it exists; doctor and the
 * next drill find what an interrupted one left behind by either. */
#define CREW_TAG       "user.box.drill" /* the id of the run that made it */
#define CREW_PREFIX    "drill-"
#define CREW_DIRECTORY "/var/lib/box/drill"
#define CREW_NETWORK   "drill-net" /* of the hardening rehearsal */
#define CREW_PROFILE   "drill-net"
#define CREW_ACL       "drill-acl"

/* The mints of a run: boxes named drill-a-ID, drill-b-ID, ..., made side by side by `box new`, each with a log of its
 * own in the run's directory. Their facts go to the ground as "box", "peer", "spare". A box that cannot be made is a
 * fact that is missing; `ret_failures` says why, one sentence each. ERR_INTERRUPTED on Ctrl-C.
 * `container`: containers, also where the host would make VMs. `budget`: milliseconds for each. */
int crew_mint(struct ground *ground, struct client *client, const char *id, unsigned count, const char *template_name,
              bool container, int64_t budget, struct narrator *narrator, struct argv *ret_failures, struct error *err);

/* Notes a name before the thing is made, so that nothing of ours is ever nobody's. Trials may do so side by side. */
int crew_note(const char *kind, const char *name, struct error *err);

/* "instance drill-a-1f", "network drill-net", ...: what any drill left on this daemon. */
int crew_leftovers(struct client *client, struct argv *ret_names, struct error *err);

/* Removes all of that, one by one, and verifies that it is gone: ERR_STATE names what is left. */
int crew_remove(struct client *client, struct narrator *narrator, struct error *err);

/* Puts the instrument into a box (or takes it out again). */
int crew_equip(const struct ground *ground, struct client *client, const char *instance, struct error *err);
int crew_strip(const struct ground *ground, struct client *client, const char *instance, struct error *err);

#endif
