/* `box generate`: the man page and the completion scripts, for the build and for packagers.
 * Not for: users, who have them installed; hence hidden. */
#include "base/text.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/manual.h"

static int run(struct context *context, struct error *err)
{
    const char *what = context_argument(context, 0);
    if (text_equal(what, "man")) {
        manual_print(context->out);
        return 0;
    }
    if (completion_print(what, context->out)) {
        return 0;
    }
    return error_set(err, ERR_USAGE, "nothing to generate is called '%s': man, bash, zsh, fish", what);
}

const struct command command_generate = {
    .name = "generate",
    .section = SECTION_OTHER,
    .arguments = "WHAT",
    .summary = "print the man page (man) or a completion script (bash, zsh, fish)",
    .flags = HIDDEN,
    .run = run,
};
