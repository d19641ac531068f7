/* `box wipe`: what a host for drills needs between two of them.
 * Not for how: clearing.c. */
#include "base/memory.h"
#include "cli/clearing.h"
#include "cli/commands.h"

static int run(struct context *context, struct error *err)
{
    struct clearing clearing = {
        .storage = option_given(&context->options, "purge-storage") ? STORAGE_ALL : STORAGE_KEPT,
        .drills = true,
    };
    return clearing_run(context, &clearing, err);
}

static const struct option_row options[] = {
    {.name = "purge-storage", .kind = OPTION_FLAG, .help = "remove every image and the pool too, whoever made them"},
    CLEARING_YES,
    {0},
};

const struct command command_wipe = {
    .name = "wipe",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "leave nothing of box on this host; for hosts that are there for drills",
    .help = "As teardown-host, and beyond it all that any drill left. The pool and its\n"
            "images stay unless --purge-storage is given, which takes every image, whoever\n"
            "imported it. Prints what it verified absent; exit status 1 names what\n"
            "survived.\n",
    .options = options,
    .flags = NEEDS_ROOT | CANCELLABLE,
    .run = run,
};
