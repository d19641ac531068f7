/* `box exec`: one command in a box, as the box's user.
 * Not for: a terminal; that is `box shell`. */
#include "cli/command.h"
#include "cli/landing.h"
#include "incus/exec.h"

#include <unistd.h>

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    CLEANUP(argv_reset) struct argv command = {0};
    landing_command(context->box, &context->rest, &command);
    CLEANUP(json_freep) json_t *environment = landing_environment(NULL);
    /* A terminal is not read unasked: it would make a loop's or a job's command wait for keys that nobody types. */
    bool reads = option_given(&context->options, "stdin") ||
                 (!isatty(STDIN_FILENO) && !option_given(&context->options, "no-stdin"));
    struct exec_request request = {
        .instance = context->box->name,
        .command = (const char *const *)command.items,
        .environment = environment,
        .directory = "/",
        .input = reads ? STDIN_FILENO : -1,
        .output = STDOUT_FILENO,
        .errors = STDERR_FILENO,
    };
    return exec_run(client, &request, &context->status, err);
}

static const struct option_row options[] = {
    {.name = "stdin", .kind = OPTION_FLAG, .letter = 'i', .help = "pass stdin on even where it is a terminal"},
    {.name = "no-stdin", .kind = OPTION_FLAG, .letter = 'n', .help = "pass no stdin on: inside a loop that reads its own"},
    {0},
};

const struct command command_exec = {
    .name = "exec",
    .section = SECTION_DAILY,
    .arguments = "BOX -- CMD...",
    .summary = "run a command in a box",
    .help = "The command runs as the box's user, in that user's home, with its groups and\n"
            "the environment of a login; nothing of this machine's environment goes along.\n"
            "Every argument arrives byte for byte. The exit status is the command's own:\n"
            "127 where there is no such command, 128+n where signal n ended it.\n"
            "\n"
            "stdin is passed on where it is no terminal. For a pipe inside the box:\n"
            "\n"
            "    box exec a -- sh -c 'dmesg | tail'\n",
    .options = options,
    .flags = NEEDS_BOX | NEEDS_RUNNING | TAKES_REST | CANCELLABLE, /* signals go on to the command */
    .run = run,
    .also = "run ssh",
};
