/* The group incus-admin, and the caller's place in it: who called through sudo can use the daemon afterwards.
 * A session that is running does not get a new group; whoever is told so can open another one. Whom box put there is
 * noted, for the day the stack is removed. Not for making the group: the daemon's package does. */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "stack/names.h"
#include "stack/note.h"
#include "stack/table.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME    "group " STACK_GROUP
#define NOTE    STACK_DIRECTORY "/members-added" /* one a line */
#define CEILING (64 * 1024)

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

/* Those of the note that still are in the group. */
static int added_members(struct argv *ret_users, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(error_reset) struct error failure = {0};
    if (fd_read_file(NOTE, CEILING, &text, &failure) < 0) {
        return failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
    }
    const struct group *group = getgrnam(STACK_GROUP);
    for (char *rest = text.data, *user; group != NULL && (user = strsep(&rest, "\n")) != NULL;) {
        if (user[0] != '\0' && is_member(group, user) && !argv_contains(ret_users, user)) {
            argv_push(ret_users, user);
        }
    }
    return 0;
}

/* Before it is done: a run that is killed in between leaves a name that is no member, which means nothing. */
static int note_member(const char *user, struct error *err)
{
    CLEANUP(argv_reset) struct argv users = {0};
    if (added_members(&users, err) < 0) {
        return -1;
    }
    argv_push(&users, user);
    argv_push(&users, "");
    CLEANUP(freep) char *text = argv_join(&users, "\n");
    return note_write(NOTE, text, err);
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
    if (note_member(user, err) < 0 || process_check(argv, &options, NULL, err) < 0) {
        return -1;
    }
    narrate_note(narrator,
                 "%s is now in the group " STACK_GROUP ": sessions opened from now on can use box; here it "
                 "is: newgrp " STACK_GROUP,
                 user);
    return 0;
}

/* Only whom box put there: the others are members for reasons of their own. */
static int remove_members(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv users = {0};
    (void)stack;
    if (added_members(&users, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < users.count; i++) {
        const char *const argv[] = {"gpasswd", "-d", users.items[i], STACK_GROUP, NULL};
        struct process_options options = {.budget = 30000, .narrator = narrator};
        if (process_check(argv, &options, NULL, err) < 0) {
            return error_wrap(err, "cannot take %s out of the group", users.items[i]);
        }
    }
    return note_remove(NOTE, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    CLEANUP(argv_reset) struct argv users = {0};
    (void)stack;
    if (added_members(&users, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < users.count; i++) {
        argv_push_format(ret_standing, "%s in the group " STACK_GROUP, users.items[i]);
    }
    if (users.count == 0 && access(NOTE, F_OK) == 0) {
        argv_push(ret_standing, "file " NOTE);
    }
    return 0;
}

const struct stack_object item_group = {
    .name = NAME,
    .why = "only root could use box",
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_members,
    .stands = stands,
    .rank = 9,
};
