#ifndef BOX_BOX_MIGRATE_H
#define BOX_BOX_MIGRATE_H

#include "base/error.h"
#include "base/narrate.h"
#include "box/box.h"
#include "incus/client.h"

#include <stdbool.h>

/* Moves boxes of the older generation onto boxnet. Tag, user, disk, snapshots, limits, and whether it ran, stay; its
 * address becomes one of boxnet's. Whatever instant it is interrupted at, the box is a box, on the one network or the
 * other, with a note (rehome.h) of what it was, and the same call ends what was begun. */

/* How a box stands to the move. */
enum migrate_stage {
    MIGRATE_OLDER,   /* on the older network */
    MIGRATE_BEGUN,   /* a move of it began and did not end */
    MIGRATE_DONE,    /* on boxnet, by the contract's profile */
    MIGRATE_FOREIGN, /* on neither: not for this to judge */
};
enum migrate_stage migrate_stage_of(const struct box *box);

/* True where moving it interrupts what runs in it. */
bool migrate_interrupts(const struct box *box);

/* What this host must have before any box is touched: boxnet, its profile, a watcher. ERR_STATE with the remedy. */
int migrate_check_host(struct client *client, struct error *err);

/* Moves one box that is MIGRATE_OLDER or MIGRATE_BEGUN, verifies it on its new leg (the contract, armed, a lease, its
 * user, names resolve, the internet is reached), and leaves it running only where it ran. `ret_box` (may be NULL) is the
 * box afterwards, with its new address where it runs. `grace`: seconds that a guest has for its shutdown.
 * A box off the contract by itself is refused before it is touched (ERR_CONTRACT). Where anything fails after that, and
 * on Ctrl-C, the box is put back where it was, and `*ret_rolled_back` says whether that succeeded. */
int migrate_run(struct client *client, const char *name, unsigned grace, struct narrator *narrator,
                struct box **ret_box, bool *ret_rolled_back, struct error *err);

#endif
