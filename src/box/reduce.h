#ifndef BOX_BOX_REDUCE_H
#define BOX_BOX_REDUCE_H

#include "base/argv.h"
#include "base/json.h"
#include "base/narrate.h"

#include <stdbool.h>

/* Bringing an instance's configuration down to the contract (contract.h): what becomes of a copy, an import and a
 * restored snapshot before it may start. */
struct reduce_options {
    bool fresh;       /* a new machine: doors, pins and every NIC of its own go, and the daemon's own notes of the
                       * former one (volatile.*) but for what its disk needs */
    const char *pool; /* of its root disk; NULL: as it says */
};

/* The body of a PUT that leaves nothing of `instance` (the daemon's object, or a snapshot's) that is off the contract:
 * config, devices, profiles and what a PUT must repeat. Each thing that went because of the contract is told in one
 * line of `ret_stripped` ("raw.lxc: it reaches past Incus's own checks"); doors, pins and notes go without a word
 * there. The caller owns the object and may add its stamp to its "config". */
json_t *reduce_body(const json_t *instance, const struct reduce_options *options, struct argv *ret_stripped);

/* Tells what a fresh machine does not get although the contract allows it: each door, and a fixed address. */
void reduce_tell_own(const json_t *instance, struct narrator *narrator);

/* True where a PUT of the body would change the instance. */
bool reduce_differs(const json_t *instance, const json_t *body);

/* Sets a configuration key in the body; NULL takes it away. */
void reduce_set(json_t *body, const char *key, const char *value);

#endif
