/* `box teardown-host`: removes boxes and stack, of both generations, and proves that they are gone.
 * Not for how: clearing.c. */
#include "base/memory.h"
#include "cli/clearing.h"
#include "cli/commands.h"

static int run(struct context *context, struct error *err)
{
    struct clearing clearing = {
        .storage = STORAGE_OURS,
        .purge_incus = option_given(&context->options, "purge-incus"),
    };
    return clearing_run(context, &clearing, err);
}

static const struct option_row options[] = {
    {.name = "purge-incus", .kind = OPTION_FLAG, .help = "remove Incus's packages too, where nobody else uses it"},
    CLEARING_YES,
    {0},
};

const struct command command_teardown_host = {
    .name = "teardown-host",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "remove every box and what setup-host made, and assert that it is gone",
    .help = "Names what it would remove, then asks. Without a terminal to ask on it does\n"
            "nothing unless --yes is given. Boxes go one by one, with all that is on their\n"
            "disks; then profile, network, ACL, the pool where box made it and nobody else\n"
            "keeps anything on it, the images that box built, the watcher, and last the\n"
            "walls. The older generation of names (claudenet, claude-isolate, claude-dev,\n"
            "claudebox) goes the same way. Whoever else uses boxnet is named, and stops it.\n"
            "\n"
            "A run that was interrupted is finished by the next one; where nothing is left\n"
            "it says so. Whom setup-host put into the group incus-admin is taken out again.\n",
    .options = options,
    .flags = NEEDS_ROOT | CANCELLABLE,
    .run = run,
    .also = "uninstall remove-host",
};
