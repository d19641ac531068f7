/* `box snapshot`: marks the present state of a box, to go back to it or to clone it.
 * Not for going back: `box restore`; nor for copies: `box new --from`. */
#include "base/text.h"
#include "box/box.h"
#include "box/snapshot.h"
#include "cli/command.h"

#include <time.h>

static int run(struct context *context, struct error *err)
{
    const char *label = context_argument(context, 1);
    char stamped[32];
    time_t now = time(NULL);
    struct tm broken;
    struct client *client = NULL;

    if (!label) {
        if (!gmtime_r(&now, &broken) || strftime(stamped, sizeof(stamped), "%Y%m%d-%H%M%S", &broken) == 0) {
            return error_set(err, ERR_SYSTEM, "this host does not know the time");
        }
        label = stamped;
    }
    if (snapshot_check_label(label, err) < 0) {
        return -1;
    }
    if (text_equal(label, SNAPSHOT_PRISTINE)) {
        error_set(err, ERR_USAGE, "the label " SNAPSHOT_PRISTINE " is kept for the state in which a box was minted");
        return error_remedy(err, "choose another label");
    }
    if (context_client(context, &client, err) < 0 ||
        box_find(client, context_argument(context, 0), &context->box, err) < 0) {
        return -1;
    }
    if (!snapshot_is_cheap(client, context->box)) {
        narrate_note(context->narrator, "this pool does not copy on write: the whole disk is copied");
    }
    if (snapshot_take(client, context->box->name, label, context->narrator, err) < 0) {
        return -1;
    }
    (void)fprintf(context->out, "%s\n", label);
    return 0;
}

const struct command command_snapshot = {
    .name = "snapshot",
    .section = SECTION_DAILY,
    .arguments = "BOX [LABEL]",
    .summary = "mark the present state of a box",
    .help = "The box goes on meanwhile; its disk is kept as it is at this moment, its\n"
            "memory is not. Prints the label: the time in UTC where none is given. A label\n"
            "is 1 to 63 letters, digits and . _ -, a letter or digit first.\n"
            "\n"
            "A snapshot holds what the box holds, credentials included.\n"
            "\n"
            "    box restore BOX LABEL          go back to it\n"
            "    box new NAME --from BOX/LABEL  another box from it\n"
            "    box info BOX                   which there are\n"
            "    box snapshot rm BOX LABEL      remove it\n",
    .flags = CANCELLABLE,
    .run = run,
    .also = "snap checkpoint",
};
