/* The group incus-admin, and the caller's place in it: who called through sudo can use the daemon afterwards.
 * A session that is running does not get a new group; whoever is told so can open another one.
 * Not for making the group: the daemon's package does. */
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "stack/names.h"
#include "stack/table.h"

#include <grp.h>
#include <stdlib.h>

#define NAME "group " STACK_GROUP

/* Who called: sudo says so; root by itself needs no group. */
static const char *caller(void)
{
    const char *user = getenv("SUDO_USER");
    return text_is_empty(user) || text_equal(user, "root") ? NULL : user;
}

static bool is_member(const struct group *group, const char *user)
{
    for (char **member = group->gr_mem; *member != NULL; member++) {
        if (text_equal(*member, user)) {
            return true;
        }
    }
    return false;
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    const struct group *group = getgrnam(STACK_GROUP);
    const char *user = caller();
    (void)err;
    if (group == NULL) {
        argv_push(&stack->notes, "there is no group " STACK_GROUP " on this host: only root can use the daemon");
    } else if (user != NULL && !is_member(group, user)) {
        CLEANUP(freep) char *item = xasprintf("member %s", user);
        table_change(changes, NAME, item, NULL, "member", "the daemon does not let that user in");
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    const char *user = caller();
    (void)stack;
    (void)changes;
    if (user == NULL) {
        return 0;
    }
    const char *const argv[] = {"usermod", "-a", "-G", STACK_GROUP, user, NULL};
    struct process_options options = {.budget = 30000, .narrator = narrator};
    if (process_check(argv, &options, NULL, err) < 0) {
        return -1;
    }
    narrate_note(narrator,
                 "%s is now in the group " STACK_GROUP ": sessions opened from now on can use box; here it "
                 "is: newgrp " STACK_GROUP,
                 user);
    return 0;
}

static int remove_member(struct stack *stack, struct narrator *narrator, struct error *err)
{
    /* Who is in the group may be there for other reasons. */
    (void)stack;
    (void)narrator;
    (void)err;
    return 0;
}

const struct stack_object item_group = {
    .name = NAME,
    .why = "only root could use box",
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_member,
    .rank = 9,
};
