/* `box cp`: files and directories between this host and a box.
 * Not for: how they travel; see transfer.c. */
#include "base/memory.h"
#include "base/text.h"
#include "base/unpack.h"
#include "box/box.h"
#include "box/name.h"
#include "cli/command.h"
#include "cli/transfer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "BOX:path" is in a box, where no slash comes before the colon: "./a:b" is a file here. The rest is borrowed. */
static char *box_of(const char *word, const char **ret_path)
{
    size_t length = strcspn(word, ":/");
    if (word[length] != ':' || !length) {
        return NULL;
    }
    *ret_path = word + length + 1;
    return xstrndup(word, length);
}

static int ask_otherwise(struct error *err)
{
    return error_remedy(err, "into a box: box cp FILE BOX:PATH\nout of it: box cp BOX:PATH FILE\n"
                             "a file with a colon in its name, here: ./NAME");
}

/* Which box is meant, and on which side it stands. */
static int read_sides(const struct context *context, char **ret_box, bool *ret_push, struct error *err)
{
    size_t last = context->arguments.count - 1;
    const char *path;
    for (size_t i = 0; i <= last; i++) {
        if (!*context->arguments.items[i]) {
            error_set(err, ERR_USAGE, "%s is an empty word: no file has that name", i < last ? "a source" : "DST");
            return ask_otherwise(err);
        }
    }
    CLEANUP(freep) char *target = box_of(context->arguments.items[last], &path);
    CLEANUP(freep) char *found = NULL;
    for (size_t i = 0; i < last; i++) {
        CLEANUP(freep) char *source = box_of(context->arguments.items[i], &path);
        if (source && target) {
            error_set(err, ERR_USAGE, "both sides are in a box");
            return error_remedy(err, "first to this host: box cp %s:PATH FILE", source);
        }
        if (!target && (!source || (found && !text_equal(found, source)))) {
            error_set(err, ERR_USAGE,
                      found && source ? "the sources are in different boxes" : "one side must be in a box, all of it");
            return ask_otherwise(err);
        }
        if (source) {
            free(found);
            found = steal(&source);
        }
    }
    *ret_push = target != NULL;
    *ret_box = target ? steal(&target) : steal(&found);
    return name_check(*ret_box, err);
}

static int find_box(struct context *context, const char *name, struct box **ret_box, struct error *err)
{
    struct client *client = NULL;
    CLEANUP(box_freep) struct box *box = NULL;
    if (context_client(context, &client, err) < 0 || box_find(client, name, &box, err) < 0) {
        return -1;
    }
    if (!box->running) {
        error_set(err, ERR_STATE, "the box %s is not running (Incus says: %s)", box->name, box->status);
        return error_remedy(err, "start it: box start %s", box->name);
    }
    *ret_box = steal(&box);
    return 0;
}

static int push(struct context *context, const struct box *box, struct error *err)
{
    CLEANUP(argv_reset) struct argv sources = {0};
    CLEANUP(argv_reset) struct argv bases = {0};
    const char *destination = NULL;
    size_t last = context->arguments.count - 1;
    for (size_t i = 0; i < last; i++) {
        const char *source = context->arguments.items[i];
        CLEANUP(freep) char *base = transfer_base(source);
        if (argv_contains(&bases, base)) {
            return error_set(err, ERR_USAGE, "two of the sources are called '%s'", *base ? base : source);
        }
        if (access(source, R_OK) < 0) { /* before the box is touched */
            return error_set_errno(err, errno, "cannot read %s", source);
        }
        argv_push(&sources, source);
        argv_push_owned(&bases, steal(&base));
    }
    free(box_of(context->arguments.items[last], &destination));
    return transfer_push(context, box, &sources, destination, err);
}

/* What a source of the box becomes here. The caller frees. */
static char *target_of(const struct context *context, const char *source, bool into)
{
    const char *target = context->arguments.items[context->arguments.count - 1];
    CLEANUP(freep) char *base = transfer_base(source);
    return *base && into ? xasprintf("%s/%s", target, base) : xstrdup(target);
}

/* Before anything is copied. */
static int check_target(const struct box *box, const char *source, const char *target, struct error *err)
{
    CLEANUP(freep) char *final = NULL;
    struct stat status;
    if (unpack_resolve(target, &final, err) == 0) {
        return 0;
    }
    if (stat(target, &status) == 0) {
        return error_remedy(err, "to write into it: box exec %s -- cat %s >%s", box->name, source, target);
    }
    return error_remedy(err, "name another file, or take this one away: rm %s", target);
}

static int pull(struct context *context, const struct box *box, struct error *err)
{
    size_t last = context->arguments.count - 1;
    const char *target = context->arguments.items[last];
    struct stat status;
    bool into = stat(target, &status) == 0 && S_ISDIR(status.st_mode);
    if (!into && (last > 1 || text_ends_with(target, "/") || !*target)) {
        return error_set(err, ERR_USAGE, "there is no directory '%s' here", target);
    }
    for (size_t i = 0; i < last; i++) {
        const char *source = NULL;
        free(box_of(context->arguments.items[i], &source));
        CLEANUP(freep) char *inside = target_of(context, source, into);
        if (check_target(box, source, inside, err) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < last; i++) {
        const char *source = NULL;
        free(box_of(context->arguments.items[i], &source));
        CLEANUP(freep) char *inside = target_of(context, source, into);
        if (transfer_pull(context, box, source, inside, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(freep) char *name = NULL;
    CLEANUP(box_freep) struct box *box = NULL;
    bool pushes = false;
    if (read_sides(context, &name, &pushes, err) < 0 || find_box(context, name, &box, err) < 0) {
        return -1;
    }
    return pushes ? push(context, box, err) : pull(context, box, err);
}

const struct command command_cp = {
    .name = "cp",
    .section = SECTION_DAILY,
    .arguments = "SRC... DST",
    .summary = "copy files and directories into a box or out of it",
    .help = "One side is BOX:PATH, the other is on this host. A path in the box counts from\n"
            "the home of the box's user, who owns what is copied in. Directories go with\n"
            "all that is in them; 'dir/.' is what is in dir. An existing directory as DST\n"
            "is copied into; a directory of the same name is merged.\n"
            "\n"
            "    box cp ./src a:work\n"
            "    box cp a:work/report.txt .\n"
            "\n"
            "No file ever stands half under its final name. Out of a box, devices and\n"
            "symbolic links that lead out of what is copied are left out: a box is not\n"
            "trusted. A device, FIFO or socket of this host is never replaced; a symbolic\n"
            "link that is named as DST is followed.\n",
    .flags = CANCELLABLE,
    .run = run,
    .also = "copy scp push pull rsync file",
};
