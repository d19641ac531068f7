/* `box rm`: removes boxes with all that is on their disks, after asking.
 * Not for instances that are no boxes: they are "no such box" and stay untouched. */
#include "base/memory.h"
#include "box/loss.h"
#include "box/remove.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/each.h"

static int rm(struct context *context, struct box *box, struct error *err)
{
    struct client *client = NULL;

    return context_client(context, &client, err) < 0 ? -1 : remove_box(client, box, context->narrator, err);
}

/* Looks before it asks: who says --force has decided. */
static void tell_losses(struct context *context, const struct each *each)
{
    struct client *client = NULL;
    int64_t budget = LOSS_BUDGET;

    if (context->force || context_client(context, &client, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < each->count; i++) {
        CLEANUP(argv_reset) struct argv lines = {0};

        budget = loss_look(client, each->boxes[i], budget, &lines);
        for (size_t line = 0; line < lines.count; line++) {
            narrate_warn(context->narrator, "%s would lose: %s", each->boxes[i]->name, lines.items[line]);
        }
    }
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(each_reset) struct each each = {0};

    if (each_find(context, &each, err) < 0) {
        return -1;
    }
    if (each.count > 0) {
        CLEANUP(freep) char *names = each_names(&each);

        tell_losses(context, &each);

        if (confirm(context, err,
                    each.count == 1 ? "delete the box %s and all that is on its disk"
                                    : "delete the boxes %s and all that is on their disks",
                    names) < 0 ||
            each_run(context, &each, rm, err) < 0) {
            return -1;
        }
    }
    return each_end(&each, "removed", err);
}

const struct command command_rm = {
    .name = "rm",
    .section = SECTION_DAILY,
    .arguments = "BOX...",
    .summary = "remove boxes and all that is on their disks",
    .help = "Asks first. Without a terminal to ask on it does nothing unless --force is\n"
            "given. Several are removed at once: one that fails does not stop the rest.\n"
            "\n"
            "Before it asks it looks into a running box, for at most 3 seconds, and lists\n"
            "repositories with uncommitted or unpushed work and live tmux sessions; --force\n"
            "skips that. A running box is stopped by force; what was not pushed is lost.\n",
    .flags = DESTRUCTIVE | CANCELLABLE,
    .run = run,
    .also = "remove delete destroy del",
};
