/* The nft tables in the kernel, as one row: compared by meaning, loaded as one transaction.
 * Where a watcher runs it has put them right before anybody looks; this row is for the proof, and for a host without
 * one. Not for what they say: ruleset.c. */
#include "base/memory.h"
#include "stack/arm.h"
#include "stack/inspect.h"
#include "stack/names.h"
#include "stack/table.h"
#include "stack/watch.h"

#include <poll.h>

#define NAME       "nft tables " STACK_NFT_TABLE
#define WATCHER_MS 500 /* it answers an event within a few */

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(inspect_reset) struct inspection inspection = {0};
    (void)stack;
    if (inspect_walls(&inspection, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < inspection.differences.count; i++) {
        table_change(changes, NAME, "rules", inspection.differences.items[i], "as they must be",
                     "boxes reach what they must not, or nothing at all");
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *left = json_array();
    /* The watcher, started by the row before, may have laid them meanwhile. */
    if (judge(stack, left, err) < 0) {
        return -1;
    }
    if (json_array_size(left) == 0) {
        return 0;
    }
    if (watch_apply(narrator, err) < 0) {
        return -1;
    }
    /* Nobody but the watcher can change its own copy: one that leaves it wrong is stuck. */
    CLEANUP(json_freep) json_t *still = json_array();
    (void)poll(NULL, 0, WATCHER_MS);
    if (judge(stack, still, err) < 0) {
        return -1;
    }
    if (json_array_size(still) == 0 || !arm_watcher_runs()) {
        return 0;
    }
    narrate_note(narrator, "the watcher does not keep its tables: it is started anew");
    return item_watcher.converge(stack, changes, narrator, err);
}

static int remove_tables(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)narrator;
    return table_nft_remove(STACK_NFT_TABLE, err);
}

/* The owned copy goes with the watcher. */
static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    (void)stack;
    return table_nft_stands(STACK_NFT_TABLE, ret_standing, err);
}

const struct stack_object item_walls = {
    .name = NAME,
    .why = "nothing holds a box back without them",
    .needs_root = true,
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_tables,
    .stands = stands,
    .rank = 8,
};
