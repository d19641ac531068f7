/* `box snapshot rm`: one snapshot of a box.
 * Not for the box: `box rm` takes it with all of its snapshots. */
#include "box/box.h"
#include "box/snapshot.h"
#include "cli/command.h"
#include "cli/confirm.h"

static int run(struct context *context, struct error *err)
{
    const char *label = context_argument(context, 1);
    CLEANUP(snapshot_reset) struct snapshot snapshot = {0};
    struct client *client = NULL;

    if (snapshot_check_label(label, err) < 0 || context_client(context, &client, err) < 0 ||
        box_find(client, context_argument(context, 0), &context->box, err) < 0 ||
        snapshot_find(client, context->box->name, label, &snapshot, err) < 0 ||
        confirm(context, err, "delete the snapshot %s of %s", label, context->box->name) < 0) {
        return -1;
    }
    return snapshot_remove(client, context->box->name, label, context->narrator, err);
}

const struct command command_snapshot_rm = {
    .name = "snapshot rm",
    .section = SECTION_DAILY,
    .arguments = "BOX LABEL",
    .summary = "remove a snapshot of a box",
    .help = "Asks first. Without a terminal to ask on it does nothing unless --force is\n"
            "given. The box itself stays as it is.\n",
    .flags = DESTRUCTIVE | CANCELLABLE,
    .run = run,
};
