#ifndef BOX_STACK_DISMANTLE_H
#define BOX_STACK_DISMANTLE_H

#include "base/argv.h"
#include "base/error.h"
#include "base/narrate.h"
#include "incus/client.h"
#include "stack/table.h"

/* Removing the stack of both generations of names, from the same tables that set-up converges. The client may be NULL
 * where no daemon is installed: then only what lies outside of it is looked at. All need root. */

enum dismantle_scope {
    DISMANTLE_BOTH,
    DISMANTLE_OLDER, /* the older generation alone */
};

/* What stands now and dismantle_run() would take away: "network boxnet", "nft table inet box", ... `leaving` (may be
 * NULL): instances that go before it. */
int dismantle_list(struct client *client, enum dismantle_scope scope, enum stack_storage storage,
                   const struct argv *leaving, struct argv *ret_standing, struct error *err);

/* Who else uses our networks, ACLs and profiles: "instance mail uses network boxnet". `boxes` (names in the default
 * project) are not strangers. */
int dismantle_strangers(struct client *client, enum dismantle_scope scope, const struct argv *boxes,
                        struct argv *ret_strangers, struct error *err);

/* Removes everything, the walls last; boxes must be gone. What is absent is success, so that a run that was killed is
 * finished by the next. */
int dismantle_run(struct client *client, enum dismantle_scope scope, enum stack_storage storage,
                  struct narrator *narrator, struct error *err);

#endif
