/* `box down`: shuts boxes down, first by asking, then by force.
 * Not for removing them: `box rm`. */
#include "base/memory.h"
#include "box/power.h"
#include "cli/command.h"
#include "cli/each.h"

static int down(struct context *context, struct box *box, struct error *err)
{
    unsigned grace = (unsigned)option_number(&context->options, "grace", POWER_GRACE_SECONDS);
    struct client *client = NULL;
    bool stopped = false;

    if (context_client(context, &client, err) < 0 ||
        power_down(client, box, grace, context->narrator, &stopped, err) < 0) {
        return -1;
    }
    if (!stopped) {
        narrate_note(context->narrator, "the box %s was down already", box->name);
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(each_reset) struct each each = {0};

    if (each_find(context, &each, err) < 0 || each_run(context, &each, down, err) < 0) {
        return -1;
    }
    return each_end(&each, "shut down", err);
}

static const struct option_row options[] = {
    {.name = "grace",
     .kind = OPTION_NUMBER,
     .value = "S",
     .help = "seconds that the guest has to shut down (default 30; 0: none)",
     .minimum = 0,
     .maximum = 3600},
    {0},
};

const struct command command_down = {
    .name = "down",
    .section = SECTION_DAILY,
    .arguments = "BOX...",
    .summary = "shut boxes down; their disks stay",
    .help = "The guest is asked to shut down. One that has not done so after 30 seconds\n"
            "(--grace) is forced down, and that is told.\n",
    .options = options,
    .flags = CANCELLABLE,
    .run = run,
    .also = "stop halt shutdown poweroff",
};
