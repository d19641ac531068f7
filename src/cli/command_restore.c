/* `box restore`: a box goes back to one of its snapshots.
 * Not for a second box from it: `box new --from`. */
#include "base/clock.h"
#include "base/memory.h"
#include "box/box.h"
#include "box/snapshot.h"
#include "cli/command.h"
#include "cli/confirm.h"

#include <time.h>

static int ask(struct context *context, const struct snapshot *snapshot, struct error *err)
{
    int64_t now = (int64_t)time(NULL);
    CLEANUP(freep) char *age = clock_describe(now > snapshot->created ? now - snapshot->created : 0);

    return confirm(context, err, "throw away all that was done in %s since its snapshot %s (%s old)",
                   context->box->name, snapshot->label, snapshot->created > 0 ? age : "?");
}

static int run(struct context *context, struct error *err)
{
    const char *label = context_argument(context, 1);
    CLEANUP(snapshot_reset) struct snapshot snapshot = {0};
    struct client *client = NULL;

    if (snapshot_check_label(label, err) < 0 || context_client(context, &client, err) < 0 ||
        box_find(client, context_argument(context, 0), &context->box, err) < 0 ||
        snapshot_find(client, context->box->name, label, &snapshot, err) < 0 || ask(context, &snapshot, err) < 0) {
        return -1;
    }
    return snapshot_restore(client, context->box, &snapshot, context->narrator, err);
}

const struct command command_restore = {
    .name = "restore",
    .section = SECTION_DAILY,
    .arguments = "BOX LABEL",
    .summary = "go back to a snapshot of a box",
    .help = "The disk becomes what it was; what was done since is thrown away, so it asks\n"
            "first. A running box is stopped and started again.\n"
            "\n"
            "Its tag, limits, doors and pins stay as they are now, whatever the snapshot\n"
            "says, and what the snapshot brings that is off the isolation contract is taken\n"
            "away; each is told.\n"
            "\n"
            "Every fresh mint has the snapshot pristine: the box before anybody was in it.\n"
            "A clone of a used box has none.\n",
    .flags = DESTRUCTIVE | CANCELLABLE,
    .run = run,
    .also = "rollback revert reset",
};
