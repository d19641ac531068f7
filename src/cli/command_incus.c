/* `box incus`: the hatch. Runs the incus client on a box, for all that box has no command for.
 * Not for: instances that are no boxes. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "box/tag.h"
#include "cli/command.h"
#include "incus/client.h"

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

/* Groups of subcommands: the word behind them is no argument yet. */
static const char *const groups[] = {"config device", "config metadata", "config template", "config trust", "config",
                                     "snapshot",      "file",            "profile",         "network acl",  "network",
                                     "storage volume", "storage bucket", "storage",         "image alias",  "image",
                                     "project",       "cluster",         "operation",       NULL};

/* Subcommands that act on every instance they are given, in whatever place. */
static const char *const of_many[] = {"delete", "rm",    "stop",   "start",  "restart",
                                      "pause",  "freeze", "resume", "unfreeze", NULL};

/* Those that change, or give away, the instance that they name first, and have names of another kind behind it. */
static const char *const of_first[] = {"move",           "mv",     "rename",          "copy", "cp", "publish", "export",
                                       "snapshot create", "snapshot delete", "snapshot rm", "snapshot rename",
                                       "snapshot restore", NULL};

/* Replaces every {} in the words by the name. False where there was none. */
static bool fill_in(const struct argv *words, const char *name, struct argv *command)
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
    return placed;
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

static bool begins_with_one_of(const struct argv *words, const char *const *patterns)
{
    for (; *patterns; patterns++) {
        if (begins_with(words, *patterns)) {
            return true;
        }
    }
    return false;
}

/* The instance that a word names: "local:NAME/SNAPSHOT", or a path of the API. The caller frees. */
static char *instance_of(const char *word)
{
    static const char *const prefixes[] = {"local:", "/1.0/instances/"};
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        word += text_starts_with(word, prefixes[i]) ? strlen(prefixes[i]) : 0;
    }
    return xstrndup(word, strcspn(word, "/?"));
}

/* The words that are arguments: no flags, nor the subcommand itself, nor what a guest is to run. Borrowed words. */
static void find_arguments(const struct argv *words, struct argv *arguments)
{
    size_t skip = 1;
    bool flags_end = false;
    for (const char *const *group = groups; *group && skip == 1; group++) {
        if (begins_with(words, *group)) {
            skip = strchr(*group, ' ') ? 3 : 2;
        }
    }
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];
        if (!flags_end && text_equal(word, "--")) {
            if (begins_with(words, "exec")) {
                return;
            }
            flags_end = true;
        } else if (!flags_end && word[0] == '-') {
            i += text_equal(word, "--timeout"); /* its value is no name */
        } else if (skip > 0) {
            skip--;
        } else {
            argv_push(arguments, word);
        }
    }
}

static int refuse(const char *name, struct error *err)
{
    return error_remedy(err, "{} stands for %s: box incus %s -- ... {} ...; for other instances run incus itself", name,
                        name);
}

/* Another instance among the arguments is never meant by somebody who named this box. */
static int refuse_others(struct context *context, const struct argv *arguments, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    struct client *client = NULL;
    const char *name = context->box->name;
    if (context_client(context, &client, err) < 0 || client_get(client, "/1.0/instances", &instances, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < arguments->count; i++) {
        CLEANUP(freep) char *named = instance_of(arguments->items[i]);
        size_t index;
        json_t *path;
        json_array_foreach(instances, index, path)
        {
            const char *text = json_string_value(path);
            CLEANUP(freep) char *other = instance_of(text ? text : "");
            if (text_equal(named, other) && !text_equal(named, name)) {
                error_set(err, ERR_USAGE, "'%s' names another instance, %s, and not the box %s: nothing was run",
                          arguments->items[i], other, name);
                return refuse(name, err);
            }
        }
    }
    return 0;
}

static bool is_the_box(const char *word, const char *name)
{
    CLEANUP(freep) char *named = instance_of(word);
    return text_equal(named, name);
}

/* A box is found in one project of the daemon, and is one. */
static int refuse_sweeping_flags(const struct context *context, const struct argv *words, struct error *err)
{
    const char *name = context->box->name;
    bool many = begins_with_one_of(words, of_many);
    for (size_t i = 0; i < words->count && !text_equal(words->items[i], "--"); i++) {
        const char *word = words->items[i];
        if ((many && (text_equal(word, "--all") || text_starts_with(word, "--all="))) ||
            text_equal(word, "--project") || text_starts_with(word, "--project=")) {
            error_set(err, ERR_USAGE, "%s leads to other instances than the box %s: nothing was run", word, name);
            return refuse(name, err);
        }
    }
    return 0;
}

/* Whoever deletes, stops or moves must say which: then it is exactly the box. */
static int require_the_box(struct context *context, const struct argv *words, const struct argv *arguments,
                           struct error *err)
{
    const char *name = context->box->name;
    size_t checked = begins_with_one_of(words, of_many)    ? arguments->count
                     : begins_with_one_of(words, of_first) ? (arguments->count > 0)
                                                           : 0;
    for (size_t i = 0; i < checked; i++) {
        if (!is_the_box(arguments->items[i], name)) {
            error_set(err, ERR_USAGE, "'%s' stands where the name of the box %s must: nothing was run",
                      arguments->items[i], name);
            return refuse(name, err);
        }
    }
    return 0;
}

/* The tag is all by which box knows a box. */
static void warn_of_key(struct context *context, const char *word)
{
    const char *name = context->box->name;
    size_t length = strcspn(word, "=");
    bool is_tag = (length == strlen(TAG_KEY) && text_starts_with(word, TAG_KEY)) ||
                  (length == strlen(TAG_OLDER) && text_starts_with(word, TAG_OLDER));
    if (is_tag) {
        narrate_warn(context->narrator,
                     "%.*s is the tag by which box knows %s: without it (or with another value than 1) it will no longer "
                     "know it, not even box rm does; to give it back: incus config set %s %.*s=1",
                     (int)length, word, name, name, (int)length, word);
    } else if (text_starts_with(word, TAG_KEY) || text_starts_with(word, TAG_OLDER)) {
        narrate_warn(context->narrator,
                     "this can move %s off its isolation contract: %.*s is what box itself noted of it, and box may no "
                     "longer know it for what it is; look afterwards: box info %s",
                     name, (int)length, word, name);
    } else {
        narrate_warn(context->narrator,
                     "this can move %s off its isolation contract: %s is part of it; look afterwards: box info %s", name,
                     word, name);
    }
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
                warn_of_key(context, words->items[i]);
                return;
            }
        }
    }
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(argv_reset) struct argv words = {0};
    CLEANUP(argv_reset) struct argv arguments = {0};
    CLEANUP(argv_reset) struct argv command = {0};
    const char *name = context->box->name;
    bool placed = fill_in(&context->rest, name, &words);
    find_arguments(&words, &arguments);
    if (refuse_sweeping_flags(context, &words, err) < 0 || refuse_others(context, &arguments, err) < 0 ||
        require_the_box(context, &words, &arguments, err) < 0) {
        return -1;
    }
    /* Whoever typed the name itself where it belongs does not want it twice. */
    if (!placed && !(arguments.count > 0 && begins_with_one_of(&words, of_many))) {
        argv_push(&words, name);
    }
    argv_push(&command, "incus");
    argv_push_all(&command, (const char *const *)words.items);
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
            "An argument that names another instance is refused, and so is a delete, stop,\n"
            "move or snapshot of anything but the box.\n"
            "\n"
            "What can move the box off its isolation contract is done, with a warning.\n",
    .flags = NEEDS_BOX | TAKES_REST,
    .run = run,
    .also = "lxc",
};
