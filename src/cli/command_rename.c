/* `box rename`: another name for a box; its snapshots follow.
 * Not for a second box: `box new --from`. */
#include "base/text.h"
#include "box/box.h"
#include "box/name.h"
#include "cli/command.h"
#include "incus/instance.h"

static int refuse_running(const struct box *box, const char *name, struct error *err)
{
    error_set(err, ERR_STATE, "the box %s is not stopped (Incus says: %s), and only a stopped one can get another name",
              box->name, box->status);
    return error_remedy(err, "box down %s, then: box rename %s %s", box->name, box->name, name);
}

static int run(struct context *context, struct error *err)
{
    const char *name = context_argument(context, 1);
    CLEANUP(error_reset) struct error cause = {0};
    struct client *client = NULL;

    if (name_check(context_argument(context, 0), err) < 0 || name_check_new(name, err) < 0) {
        return -1;
    }
    if (context_client(context, &client, err) < 0 ||
        box_find(client, context_argument(context, 0), &context->box, err) < 0) {
        return -1;
    }
    const struct box *box = context->box;

    if (!text_equal(box->status, "Stopped")) {
        return refuse_running(box, name, err);
    }
    if (text_equal(box->name, name)) {
        narrate_note(context->narrator, "%s is its name already", name);
        return 0;
    }
    narrate_step(context->narrator, "renaming %s to %s", box->name, name);
    if (instance_rename(client, box->name, name, &cause) < 0) {
        if (cause.code == ERR_EXISTS) {
            error_set(err, ERR_EXISTS, "the name %s is taken", name);
            return error_remedy(err, "choose another name; which are taken: box list");
        }
        error_wrap(&cause, "cannot rename %s to %s", box->name, name);
        return error_move(err, &cause);
    }
    narrate_done(context->narrator, "%s", "");
    return 0;
}

const struct command command_rename = {
    .name = "rename",
    .section = SECTION_DAILY,
    .arguments = "BOX NAME",
    .summary = "give a stopped box another name",
    .help = "Its snapshots, stamp and address follow; the guest learns its new name when it\n"
            "starts. The rule for a name is that of box new.\n",
    .flags = CANCELLABLE,
    .run = run,
    .also = "mv move",
};
