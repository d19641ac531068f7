#ifndef BOX_BOX_REMOVE_H
#define BOX_BOX_REMOVE_H

#include "base/error.h"
#include "base/narrate.h"
#include "box/box.h"
#include "incus/client.h"

/* Removes a box with its disk and snapshots, stopping it by force where it runs. The instance is looked at again just
 * before: a different one that has taken the name meanwhile, and one without the tag, stay untouched (ERR_STATE).
 * One that is gone already is success. Does not ask: that is the command's. Ctrl-C between the two steps leaves the box
 * stopped and tagged. */
int remove_box(struct client *client, const struct box *box, struct narrator *narrator, struct error *err);

/* For cleaning up after a mint: removes the instance of that name only where it carries the tag and TAG_MINT is `mint`.
 * Anything else, and none at all, stays as it is and is success. Goes on although Ctrl-C came. */
int remove_leftover(struct client *client, const char *name, const char *mint, struct narrator *narrator,
                    struct error *err);

#endif
