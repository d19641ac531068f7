#ifndef BOX_BOX_CLONE_H
#define BOX_BOX_CLONE_H

#include "box/box.h"
#include "box/limits.h"
#include "box/snapshot.h"
#include "box/template.h"

#include <stdbool.h>
#include <stdint.h>

/* A box made from another one's disk. */
struct clone_request {
    const char *name;
    const struct box *source;
    const struct snapshot *snapshot; /* of the source; NULL: its present state */
    bool strip;                      /* what of it is off the contract is left out; else that is refused */
    const struct template *template; /* a mint by way of a seed: whose stamp it gets; NULL: a clone of a used box */
    struct limits limits;            /* instead of the source's, each where it is not NULL; borrowed texts */
    int64_t budget;                  /* milliseconds that its boot may take */
    const char *version;             /* of this box, for the stamp */
};

/* Copies, gives the copy an identity of its own before it boots, starts it, waits until it is usable. Doors and pins
 * are not copied. ERR_CONTRACT, naming each deviation, where the source is off the contract; ERR_STATE where it is
 * incomplete. Fails and cleans up as mint_run() does. */
int clone_run(struct client *client, const struct clone_request *request, struct narrator *narrator,
              struct box **ret_box, struct error *err);

/* The creating request of a copy of `object` (the daemon's, or a snapshot's) at `path` ("a", "a/one"): reduced to the
 * contract, with `config` (an object, borrowed) over it. What of it could not be left out in a creating request is
 * named in `ret_stripped`, as reduce.h tells it. The caller owns it. */
json_t *clone_body(const char *name, const char *path, const json_t *object, const json_t *config,
                   struct argv *ret_stripped);

/* Takes what a creating request cannot leave out from a stopped copy. */
int clone_reduce(struct client *client, const char *name, struct error *err);

#endif
