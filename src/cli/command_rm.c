/* `box rm`: removes boxes with all that is on their disks, after asking.
 * Not for instances that are no boxes: they are "no such box" and stay untouched. */
#include "base/memory.h"
#include "box/remove.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/each.h"

static int rm(struct context *context, struct box *box, struct error *err)
{
    struct client *client = NULL;

    return context_client(context, &client, err) < 0 ? -1 : remove_box(client, box, context->narrator, err);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(each_reset) struct each each = {0};

    if (each_find(context, &each, err) < 0) {
        return -1;
    }
    if (each.count > 0) {
        CLEANUP(freep) char *names = each_names(&each);

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
            "given. Boxes are removed one by one: one that fails does not stop the rest.\n"
            "A running box is stopped by force; what was not pushed from it is lost.\n",
    .flags = DESTRUCTIVE | CANCELLABLE,
    .run = run,
    .also = "remove delete destroy del",
};
