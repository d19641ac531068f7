/* The host forwards IPv4: without it no box reaches the internet. The daemon switches it on and never off; so this row
 * does it first, behind walls that stand, and notes that it was off, for the day the stack is removed. Not for the
 * parameters of boxnet itself: item_kernel.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/link.h"
#include "host/sysctl.h"
#include "stack/names.h"
#include "stack/note.h"
#include "stack/table.h"

#include <string.h>
#include <unistd.h>

#define NAME "forwarding"
#define NOTE STACK_DIRECTORY "/forwarding-was-off"

/* The host as a whole, and boxnet where it is there: either one off ends it for boxes. */
static const struct {
    const char *path, *item;
} parameters[] = {
    {"net/ipv4/ip_forward", "ip_forward"},
    {"net/ipv4/conf/" STACK_NETWORK "/forwarding", "forwarding of " STACK_NETWORK},
};

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    (void)stack;
    for (size_t i = 0; i < ARRAY_LENGTH(parameters); i++) {
        CLEANUP(freep) char *live = NULL;
        CLEANUP(error_reset) struct error failure = {0};
        if (sysctl_read(parameters[i].path, &live, &failure) < 0) {
            if (failure.code != ERR_NOT_FOUND) {
                return error_move(err, &failure);
            }
        } else if (!text_equal(live, "1")) {
            table_change(changes, NAME, parameters[i].item, live, "1", "boxes do not reach the internet");
            return 0; /* the second follows the first */
        }
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)narrator;
    if (text_equal(json_text(json_array_get(changes, 0), "item"), parameters[1].item)) {
        return sysctl_write(parameters[1].path, "1", err);
    }
    /* A boxnet that stands says that it is a damage which is repaired, not a host that is set up. */
    CLEANUP(freep) char *live = NULL;
    if (sysctl_read(parameters[1].path, &live, NULL) < 0 &&
        note_write(NOTE, "0\n", err) < 0) {
        return -1;
    }
    return sysctl_write(parameters[0].path, "1", err);
}

/* True where another bridge lives on forwarding. */
static bool others_forward(void)
{
    CLEANUP(freep) struct link *links = NULL;
    size_t count = 0;
    bool others = link_list(&links, &count, NULL) < 0;
    for (size_t i = 0; i < count; i++) {
        others |= text_equal(links[i].kind, "bridge") && !text_equal(links[i].name, STACK_NETWORK);
    }
    return others;
}

static int restore(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)stack;
    bool was_off = access(NOTE, F_OK) == 0;
    if (was_off && others_forward()) {
        narrate_note(narrator, "forwarding was off before box setup-host and stays on: another bridge is there");
    } else if (was_off && sysctl_write(parameters[0].path, "0", err) < 0) {
        return -1;
    }
    return note_remove(NOTE, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    (void)stack;
    (void)err;
    if (access(NOTE, F_OK) == 0) {
        argv_push(ret_standing, "forwarding, which was off before");
    }
    return 0;
}

const struct stack_object item_forwarding = {
    .name = NAME,
    .why = "boxes do not reach the internet without it",
    .budget = 5000,
    .judge = judge,
    .converge = converge,
    .remove = restore,
    .stands = stands,
    .rank = 3,
};
