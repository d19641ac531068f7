#ifndef BOX_BOX_REMOVE_H
#define BOX_BOX_REMOVE_H

#include "base/error.h"
#include "base/narrate.h"
#include "box/box.h"
#include "incus/client.h"

#include <stdbool.h>

/* Removes a box with its disk and snapshots, stopping it by force where it runs. The instance is looked at again just
 * before: a different one that has taken the name meanwhile, and one without the tag, stay untouched (ERR_STATE).
 * One that is gone already is success. Does not ask: that is the command's. Ctrl-C between the two steps leaves the box
 * stopped and tagged. */
int remove_box(struct client *client, const struct box *box, struct narrator *narrator, struct error *err);

/* Cleans up behind a mint that failed or was interrupted: waits for what the daemon still does with the name, then
 * removes the instance where it carries the tag and this mint's id, and only then. Anything else, and none at all,
 * stays as it is and is success. `*ret_removed` tells whether there was one. The caller masks a Ctrl-C (cancel_mask).
 */
int remove_minted(struct client *client, const char *name, const char *mint_id, struct narrator *narrator,
                  bool *ret_removed, struct error *err);

/* Removes an instance of whatever kind by a name that nobody but the caller can know, waiting for what the daemon still
 * does with the name. Absent is success. */
int remove_instance(struct client *client, const char *name, struct narrator *narrator, struct error *err);

#endif
