/* `box help`: what there is, and what a command does.
 * Not for: --help behind a command, which main.c answers with the same text. */
#include "cli/commands.h"
#include "cli/help.h"

static int run(struct context *context, struct error *err)
{
    if (!context->arguments.count) {
        help_general(context->out);
        return 0;
    }
    const char *const *words = (const char *const *)context->arguments.items;
    const struct command *command = NULL;
    size_t used = 0;
    if (!words[1] && commands_is_group(words[0])) {
        help_group(words[0], context->out);
        return 0;
    }
    if (commands_find(words, &command, &used, err) < 0) {
        return -1;
    }
    if (words[used]) {
        error_set(err, ERR_USAGE, "'box help' does not know what to do with '%s'", words[used]);
        return error_remedy(err, "box help %s", command->name);
    }
    help_command(command, context->out);
    return 0;
}

const struct command command_help = {
    .name = "help",
    .section = SECTION_OTHER,
    .arguments = "[COMMAND...]",
    .summary = "show what there is, or what a command does",
    .run = run,
    .also = "man usage commands",
};
