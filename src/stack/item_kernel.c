/* Kernel parameters of the interface boxnet: the watcher keeps them, this row judges and repairs them.
 * Where boxnet does not exist yet there is nothing to judge: the watcher sets them when it appears.
 * Not for the list itself: bridge.c. */
#include "base/memory.h"
#include "base/text.h"
#include "host/sysctl.h"
#include "stack/bridge.h"
#include "stack/names.h"
#include "stack/table.h"

#define NAME "kernel parameters of " STACK_NETWORK

/* The bridge, copied into ret_bridge; false where there is none. */
static int find_bridge(struct link *ret_bridge, bool *ret_found, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    size_t count = 0;
    if (link_list(&links, &count, err) < 0) {
        return -1;
    }
    const struct link *bridge = link_find(links, count, STACK_NETWORK);
    *ret_found = bridge != NULL;
    if (bridge != NULL) {
        *ret_bridge = *bridge;
    }
    return 0;
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    struct link bridge;
    bool found = false;
    (void)stack;
    if (find_bridge(&bridge, &found, err) < 0) {
        return -1;
    }
    for (size_t i = 0; found && i < BRIDGE_SETTING_COUNT; i++) {
        const struct bridge_setting *setting = &bridge_settings[i];
        CLEANUP(freep) char *live = NULL;
        CLEANUP(error_reset) struct error failure = {0};
        if (sysctl_read(setting->path, &live, &failure) < 0) {
            if (failure.code != ERR_NOT_FOUND) {
                return error_move(err, &failure);
            }
            continue;
        }
        if (!text_equal(live, setting->value)) {
            table_change(changes, NAME, setting->name, live, setting->value, setting->why);
        }
    }
    if (found && bridge.linklocal_learn) {
        table_change(changes, NAME, "no_linklocal_learn", "0", "1", "a box writes the bridge's table past the walls");
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    struct link bridge;
    bool found = false;
    (void)stack;
    (void)changes;
    if (find_bridge(&bridge, &found, err) < 0) {
        return -1;
    }
    return found ? bridge_converge(&bridge, narrator, err) : 0;
}

static int remove_parameters(struct stack *stack, struct narrator *narrator, struct error *err)
{
    /* They vanish with the interface. */
    (void)stack;
    (void)narrator;
    (void)err;
    return 0;
}

const struct stack_object item_kernel = {
    .name = NAME,
    .why = "the host answers boxes on addresses and protocols that are none of theirs",
    .budget = 5000,
    .judge = judge,
    .converge = converge,
    .remove = remove_parameters,
    .rank = 0,
};
