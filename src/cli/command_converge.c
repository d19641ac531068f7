/* `box converge`: runs the template's converge.sh in a box that is there already.
 * Not for how (box/converge.c), nor for a mint, which runs it by itself. */
#include "base/text.h"
#include "box/converge.h"
#include "cli/command.h"
#include "cli/portrait.h"

static int run(struct context *context, struct error *err)
{
    const struct box *box = context->box;
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(box_freep) struct box *after = NULL;
    struct client *client = NULL;
    int64_t budget = (int64_t)option_number(&context->options, "wait", CONVERGE_BUDGET_DEFAULT_S) * 1000;

    if (!box->template_name) {
        error_set(err, ERR_STATE, "the box %s does not say which template it is of", box->name);
        return error_remedy(err, "box info %s", box->name);
    }
    if (template_find(box->template_name, option_text(&context->options, "template-dir"), &template, err) < 0 ||
        context_client(context, &client, err) < 0 ||
        converge_box(client, box, &template, budget, context->narrator, err) < 0 ||
        box_find(client, box->name, &after, err) < 0) {
        return -1;
    }
    portrait_tell_login(context->narrator, after);
    return 0;
}

static const struct option_row options[] = {
    {.name = "template-dir",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .help = "look for its template in this directory first"},
    {.name = "wait",
     .kind = OPTION_NUMBER,
     .value = "S",
     .minimum = 1,
     .maximum = 86400,
     .help = "seconds that it may take (default 1200)"},
    {0},
};

const struct command command_converge = {
    .name = "converge",
    .section = SECTION_IMAGES,
    .arguments = "BOX",
    .summary = "bring a box to its template as it is now",
    .help = "Runs the converge.sh of the box's template in the box, as root, and shows what\n"
            "it prints as it comes. A mint does the same after cloud-init. What fails\n"
            "leaves the box as it is and can be run again: such a script is written for\n"
            "that.\n"
            "\n"
            "After a run that ended well the box has the mark bootstrapped, to which box\n"
            "restore goes back, and a box whose mint failed in converge.sh alone is\n"
            "complete. user-data.yaml is cloud-init's and does not run again.\n",
    .options = options,
    .flags = NEEDS_BOX | NEEDS_RUNNING | CANCELLABLE,
    .run = run,
    .also = "update upgrade provision bootstrap",
};
