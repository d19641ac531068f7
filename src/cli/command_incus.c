/* `box incus`: the hatch. Runs the incus client on a box, for all that box has no command for.
 * Not for: instances that are no boxes. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "cli/command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PLACE "{}" /* stands for the name of the box */

/* Commands of the client that can move a box off the contract: the words that must follow one another, and why. */
struct danger {
    const char *words;
    const char *why;
};

static const struct danger dangers[] = {
    {"profile", "a profile can give the box another network or a path of this host"},
    {"network", "the box's walls hang on its network"},
    {"config device", "a device can give the box another network or a path of this host"},
    {"config edit", "the whole configuration can be changed, walls included"},
    {"snapshot restore", "an older configuration comes back with the disk"},
    {"rebuild", "the box becomes another machine"},
    {"move", "the target's profiles and devices count"},
    {"copy", "the copy is made with the profiles and devices that the command says"},
};

/* Configuration keys that are part of the contract. */
static const char *const guarded_keys[] = {"raw.", "security.", "user.box", "user.claudebox", "volatile.eth0", "linux.", NULL};

/* Replaces every {} in the words by the name; where there is none, the name goes to the end. */
static void fill_in(const struct argv *words, const char *name, struct argv *command)
{
    bool placed = false;
    for (size_t i = 0; i < words->count; i++) {
        struct buffer word = {0};
        const char *rest = words->items[i];
        for (const char *place; (place = strstr(rest, PLACE)); rest = place + strlen(PLACE)) {
            buffer_append(&word, rest, (size_t)(place - rest));
            buffer_append_text(&word, name);
            placed = true;
        }
        buffer_append_text(&word, rest);
        argv_push_owned(command, buffer_steal(&word));
    }
    if (!placed) {
        argv_push(command, name);
    }
}

/* True where the words that are no flags begin with those of `pattern`. */
static bool begins_with(const struct argv *words, const char *pattern)
{
    for (size_t i = 0; i < words->count; i++) {
        if (words->items[i][0] == '-') {
            continue;
        }
        size_t length = strcspn(pattern, " ");
        if (strlen(words->items[i]) != length || strncmp(words->items[i], pattern, length) != 0) {
            return false;
        }
        if (!pattern[length]) {
            return true;
        }
        pattern += length + 1;
    }
    return false;
}

static void warn(struct context *context)
{
    const char *name = context->box->name;
    const struct argv *words = &context->rest;
    for (size_t i = 0; i < ARRAY_LENGTH(dangers); i++) {
        if (begins_with(words, dangers[i].words)) {
            narrate_warn(context->narrator, "this can move %s off its isolation contract: %s; look afterwards: box info %s",
                         name, dangers[i].why, name);
            return;
        }
    }
    if (!begins_with(words, "config set") && !begins_with(words, "config unset")) {
        return;
    }
    for (size_t i = 0; i < words->count; i++) {
        for (const char *const *key = guarded_keys; *key; key++) {
            if (text_starts_with(words->items[i], *key)) {
                narrate_warn(context->narrator,
                             "this can move %s off its isolation contract: %s is part of it; look afterwards: box info %s",
                             name, words->items[i], name);
                return;
            }
        }
    }
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(argv_reset) struct argv command = {0};
    argv_push(&command, "incus");
    fill_in(&context->rest, context->box->name, &command);
    CLEANUP(freep) char *line = argv_join(&command, " ");
    narrate_note(context->narrator, "running: %s", line);
    warn(context);
    /* The client's own defaults may name another remote or project than the one in which the box was found. */
    if (setenv("INCUS_REMOTE", "local", 1) < 0 || setenv("INCUS_PROJECT", "default", 0) < 0) {
        return error_set_errno(err, errno, "preparing the environment of the incus client");
    }
    (void)fflush(context->out);
    execvp(command.items[0], command.items);
    error_set_errno(err, errno, "running the incus client");
    return error_remedy(err, "it comes with the package incus-client");
}

const struct command command_incus = {
    .name = "incus",
    .section = SECTION_OTHER,
    .arguments = "BOX -- ARG...",
    .summary = "run the incus client on a box",
    .help = "The hatch, for all that box has no command for. BOX must be a box; its name\n"
            "replaces every {} behind the --, or goes to the end where there is none:\n"
            "\n"
            "    box incus a -- config show\n"
            "    box incus a -- file push notes.txt {}/root/\n"
            "\n"
            "What can move the box off its isolation contract is done, with a warning.\n",
    .flags = NEEDS_BOX | TAKES_REST,
    .run = run,
    .also = "lxc",
};
