/* `box tmux`: a session of tmux in a box, on this terminal; it goes on when the terminal goes.
 * Not for: several windows of one shell on the host; that is the host's own tmux around `box shell`. */
#include "cli/command.h"
#include "cli/landing.h"

#include <string.h>

#define SESSION        "main"
#define SESSION_LENGTH 64
#define LETTERS        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* tmux itself gives `.` and `:` a meaning in a target, and `=`, `@`, `$`, `%`, `+`, `!`, `{` at its beginning. */
static int check_session(const char *name, struct error *err)
{
    size_t length = strlen(name);
    if (length >= 1 && length <= SESSION_LENGTH && strspn(name, LETTERS "_-") == length && strcspn(name, "-_") != 0) {
        return 0;
    }
    error_set(err, ERR_USAGE, "that is no name for a session: 1 to %d of A-Z a-z 0-9 _ -, a letter or digit first",
              SESSION_LENGTH);
    return error_remedy(err, "without a name the session is '%s'", SESSION);
}

static int run(struct context *context, struct error *err)
{
    const char *session = context_argument(context, 1);
    session = session ? session : SESSION;
    struct client *client = NULL;
    if (check_session(session, err) < 0 || context_client(context, &client, err) < 0) {
        return -1;
    }
    CLEANUP(argv_reset) struct argv command = {0};
    landing_tmux(context->box, session, &command);
    return landing_on_terminal(client, context->box, &command, &context->status, err);
}

const struct command command_tmux = {
    .name = "tmux",
    .section = SECTION_DAILY,
    .arguments = "BOX [SESSION]",
    .summary = "attach to a tmux session in a box, or begin one",
    .help = "The session is 'main' unless you name one. It goes on when you detach (Ctrl-B\n"
            "d), when the terminal is closed and when the connection breaks: the same\n"
            "command attaches again. It ends with its last shell, or with the box.\n",
    .flags = NEEDS_BOX | NEEDS_RUNNING | NEEDS_TERMINAL,
    .run = run,
    .also = "attach screen",
};
