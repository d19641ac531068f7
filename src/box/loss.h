#ifndef BOX_BOX_LOSS_H
#define BOX_BOX_LOSS_H

#include "base/argv.h"
#include "box/box.h"

/* What a removal of a running box would lose: repositories with uncommitted or unpushed work, live tmux sessions.
 * Appends a line each ("repository /home/dev/work: uncommitted changes, 3 commits that were not pushed"), safe to
 * print, at most LOSS_LINES. Bounded by `budget` milliseconds, in which the guest may not have answered in full; never
 * fails: what cannot be looked at is one line less. Milliseconds that are left of the budget. */
int64_t loss_look(struct client *client, const struct box *box, int64_t budget, struct argv *ret_lines);

#define LOSS_BUDGET 3000
#define LOSS_LINES  20

#endif
