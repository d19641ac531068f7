#ifndef BOX_BOX_REHOME_H
#define BOX_BOX_REHOME_H

#include "base/argv.h"
#include "base/json.h"

#include <stdbool.h>

/* What changes in the configuration of a box of the older generation when it moves from that generation's network and
 * profile onto boxnet, and what it takes to change it back. Bodies only; migrate.h sends them. */

/* The key under which a move notes what the box was: from before the box is stopped until the move is verified or taken
 * back. A box that carries it is in the middle of a move that somebody has to end. */
#define REHOME_NOTE "user.box.migrating"

/* True where the instance (the daemon's object) hangs on the older generation's network or profile. */
bool rehome_is_older(const json_t *instance);

/* True where a move of it began and did not end. */
bool rehome_is_under_way(const json_t *instance);

/* Whether the box ran when its move began. False where the note cannot be read. */
bool rehome_ran(const json_t *instance);

/* The body of a PUT that moves it: profile box-net alone, the older NICs gone, everything else of its own kept; what
 * its profiles gave it (limits, its disk's size) becomes its own where the contract allows it, and is one line of
 * `ret_left` where not. `profile` is box-net's own object. What the box itself has off the contract is one line of
 * `ret_refused` each, and then NULL comes back. Carries the note. */
json_t *rehome_body(const json_t *instance, const json_t *profile, bool ran, struct argv *ret_left,
                    struct argv *ret_refused);

/* The body of a PUT that takes a move back, from the box as it is now and its note, which stays (without what has been
 * taken back) until the box is what it was; NULL where the note says nothing of where it was. */
json_t *rehome_undo_body(const json_t *instance);

/* The body of a PATCH that notes that a move begins (it has changed nothing yet), or that none is under way any more. */
json_t *rehome_note_body(bool ran);
json_t *rehome_end_body(void);

#endif
