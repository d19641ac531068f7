/* `box version`: which box this is.
 * Not for: the version of the daemon behind it. */
#include "cli/command.h"
#include "cli/version.h"

static int run(struct context *context, struct error *err)
{
    if (context->json) {
        CLEANUP(json_freep) json_t *value = json_pack("{s:s}", "version", BOX_VERSION);
        context_print_json(context, value);
    } else {
        (void)fprintf(context->out, "box %s\n", BOX_VERSION);
    }
    return 0;
}

const struct command command_version = {
    .name = "version",
    .section = SECTION_OTHER,
    .arguments = "",
    .summary = "show which box this is",
    .flags = TAKES_JSON,
    .run = run,
};
