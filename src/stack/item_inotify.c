/* How many inotify instances the containers of a host may hold together. Each box's systemd, udev and tty hold about
 * nine; the kernel counts those of every container against the one user who started them all, the daemon's root, and
 * allows 128: the fifteenth box boots into errors. A range of ids for each box would change nothing, for the count goes
 * to who made the user namespace. Not for limits of a single box: box/limits.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/sysctl.h"
#include "stack/names.h"
#include "stack/note.h"
#include "stack/table.h"

#include <string.h>
#include <unistd.h>

#define NAME      "inotify instances"
#define PARAMETER "fs/inotify/max_user_instances"
#define FILE_PATH "/etc/sysctl.d/60-box.conf"
#define NOTE      STACK_DIRECTORY "/inotify-was"
#define WANTED    8192 /* some 900 boxes; an instance costs nothing until it is used */
#define WANTED_S  "8192"
#define PER_BOX   9

static const char text[] = "# Laid by box setup-host: each box takes about nine inotify instances.\n"
                           "fs.inotify.max_user_instances = " WANTED_S "\n";

static bool file_stands(void)
{
    CLEANUP(buffer_reset) struct buffer content = {0};
    return fd_read_file(FILE_PATH, 65536, &content, NULL) == 0 && text_equal(content.data, text);
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(freep) char *live = NULL;
    uint64_t count = 0;
    if (sysctl_read(PARAMETER, &live, err) < 0) {
        return -1;
    }
    bool enough = text_parse_number(live, 0, UINT64_MAX, &count) && count >= WANTED;
    /* Inside somebody's container not even root may: then it is that host's to raise. */
    if (!enough && geteuid() == 0 && access("/proc/sys/" PARAMETER, W_OK) < 0) {
        CLEANUP(freep)
        char *note =
            xasprintf("fs.inotify.max_user_instances is %s and cannot be raised from here: about %llu boxes can "
                      "run at once",
                      live, (unsigned long long)(count / PER_BOX));
        argv_push(&stack->notes, note);
    } else if (!enough) {
        table_change(changes, NAME, "max_user_instances", live, WANTED_S,
                     "about fourteen boxes exhaust them, and the next one boots into errors");
    } else if (count == WANTED && !file_stands()) {
        table_change(changes, NAME, FILE_PATH, NULL, WANTED_S, "the next boot forgets it");
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *live = NULL;
    (void)stack;
    (void)changes;
    (void)narrator;
    if (fd_make_directories("/etc/sysctl.d", 0755, err) < 0 ||
        fd_write_file(FILE_PATH, text, sizeof(text) - 1, 0644, err) < 0 || sysctl_read(PARAMETER, &live, err) < 0) {
        return -1;
    }
    if (text_equal(live, WANTED_S)) {
        return 0;
    }
    if (access(NOTE, F_OK) < 0 && note_write(NOTE, live, err) < 0) {
        return -1;
    }
    return sysctl_write(PARAMETER, WANTED_S, err);
}

/* Back to what it was, where it still is what we made it. */
static int restore_value(struct error *err)
{
    CLEANUP(buffer_reset) struct buffer former = {0};
    CLEANUP(freep) char *live = NULL;
    uint64_t count;
    if (fd_read_file(NOTE, 64, &former, NULL) < 0 || !text_parse_number(former.data, 1, WANTED, &count)) {
        return 0;
    }
    if (sysctl_read(PARAMETER, &live, err) < 0) {
        return -1;
    }
    return text_equal(live, WANTED_S) ? sysctl_write(PARAMETER, former.data, err) : 0;
}

static int remove_limit(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)narrator;
    return restore_value(err) < 0 || note_remove(NOTE, err) < 0 ? -1 : fd_remove_file(FILE_PATH, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    (void)stack;
    (void)err;
    if (access(FILE_PATH, F_OK) == 0) {
        argv_push(ret_standing, FILE_PATH);
    }
    return 0;
}

const struct stack_object item_inotify = {
    .name = NAME,
    .why = "only about fourteen boxes can run at once",
    .budget = 5000,
    .judge = judge,
    .converge = converge,
    .remove = remove_limit,
    .stands = stands,
    .rank = 3,
};
