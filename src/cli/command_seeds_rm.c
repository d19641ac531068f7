/* `box seeds rm`: drops the seeds, of one template or all.
 * Not for boxes that came from them: those stay. */
#include "base/text.h"
#include "box/seed.h"
#include "cli/command.h"

static int drop(struct context *context, const char *template, const struct seed *seeds, size_t count,
                struct error *err)
{
    struct client *client = NULL;
    size_t dropped = 0;

    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (template && !text_equal(seeds[i].template_name, template)) {
            continue;
        }
        if (seed_remove(client, &seeds[i], err) < 0) {
            return -1;
        }
        narrate_note(context->narrator, "the seed of %s is dropped", seeds[i].template_name);
        dropped++;
    }
    if (dropped == 0) {
        narrate_note(context->narrator, "there was no seed%s%s", template ? " of " : "", template ? template : "");
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    struct seed *seeds = NULL;
    size_t count = 0;

    if (context_client(context, &client, err) < 0 || seed_list(client, &seeds, &count, err) < 0) {
        return -1;
    }
    int result = drop(context, context_argument(context, 0), seeds, count, err);
    seed_list_free(seeds, count);
    return result;
}

const struct command command_seeds_rm = {
    .name = "seeds rm",
    .section = SECTION_IMAGES,
    .arguments = "[TEMPLATE]",
    .summary = "drop the seeds, of one template or all",
    .help = "Nothing is lost: the next box of the template boots its image for the first\n"
            "time again, and leaves a new seed. Boxes that came from a seed stay as they\n"
            "are.\n",
    .flags = CANCELLABLE,
    .run = run,
};
