/* `box start`: starts boxes that keep the contract, and waits until the walls let them speak.
 * Not for making one: `box new`. */
#include "base/memory.h"
#include "box/power.h"
#include "cli/command.h"
#include "cli/each.h"

static int start(struct context *context, struct box *box, struct error *err)
{
    struct client *client = NULL;
    bool started = false;

    if (context_client(context, &client, err) < 0 || power_start(client, box, context->narrator, &started, err) < 0) {
        return -1;
    }
    if (!started) {
        narrate_note(context->narrator, "the box %s was running already", box->name);
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(each_reset) struct each each = {0};

    if (each_find(context, &each, err) < 0 || each_run(context, &each, start, err) < 0) {
        return -1;
    }
    return each_end(&each, "started", err);
}

const struct command command_start = {
    .name = "start",
    .section = SECTION_DAILY,
    .arguments = "BOX...",
    .summary = "start boxes, and wait until they have a network",
    .help = "A box that is off its isolation contract is not started. A started box has a\n"
            "network once the watcher has armed its port; where it does not, the box runs\n"
            "without one, and that is told.\n",
    .flags = CANCELLABLE,
    .run = run,
    .also = "up boot resume",
};
