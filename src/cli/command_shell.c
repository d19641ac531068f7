/* `box shell`: a login shell in a box, on this terminal.
 * Not for: scripts; that is `box exec`. */
#include "cli/command.h"
#include "cli/landing.h"

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    CLEANUP(argv_reset) struct argv command = {0};
    landing_shell(context->box, &command);
    return landing_on_terminal(client, context->box, &command, &context->status, err);
}

const struct command command_shell = {
    .name = "shell",
    .section = SECTION_DAILY,
    .arguments = "BOX",
    .summary = "open a login shell in a box",
    .help = "The shell is the one of the box's user. It sees this terminal's size and kind\n"
            "(where the box does not know that kind: xterm-256color) and nothing else of\n"
            "this machine. 'exit' or Ctrl-D leaves it; the box runs on.\n",
    .flags = NEEDS_BOX | NEEDS_RUNNING | NEEDS_TERMINAL,
    .run = run,
    .also = "enter login attach console sh bash ssh",
};
