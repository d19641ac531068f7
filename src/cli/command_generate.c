/* `box generate`: the man page, the completion scripts and the unit, for the build and for packagers.
 * Not for: users, who have them installed; hence hidden. */
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "stack/unit.h"

static int run(struct context *context, struct error *err)
{
    const char *what = context_argument(context, 0);
    if (text_equal(what, "man")) {
        manual_print(context->out);
        return 0;
    }
    if (text_equal(what, "man-env")) {
        manual_print_template(context->out);
        return 0;
    }
    if (text_equal(what, "unit")) {
        CLEANUP(freep) char *unit = unit_text(CLI_INSTALLED_PROGRAM);
        (void)fputs(unit, context->out);
        return 0;
    }
    if (completion_print(what, context->out)) {
        return 0;
    }
    return error_set(err, ERR_USAGE, "nothing to generate is called '%s': man, man-env, bash, zsh, fish, unit", what);
}

const struct command command_generate = {
    .name = "generate",
    .section = SECTION_OTHER,
    .arguments = "WHAT",
    .summary = "print a man page (man, man-env), a completion (bash, zsh, fish) or the unit (unit)",
    .flags = HIDDEN,
    .run = run,
};
