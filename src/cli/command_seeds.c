/* `box seeds`: what the next mints will be copied from.
 * Not for boxes: a seed is nobody's. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/seed.h"
#include "box/tag.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "cli/version.h"

#include <time.h>

static const char *describe(const struct seed *seed, int64_t max_age)
{
    if (!seed->complete) {
        return "unfinished";
    }
    if (!text_equal(seed->version, BOX_VERSION)) {
        return "of another box version";
    }
    return seed_is_good(seed, max_age) ? "good" : "too old";
}

static void print_json(struct context *context, const struct seed *seeds, size_t count, int64_t max_age)
{
    CLEANUP(json_freep) json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct seed *seed = &seeds[i];

        (void)json_array_append_new(array,
                                    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:s}", "instance", seed->instance,
                                              "template", seed->template_name, "type", seed->vm ? "vm" : "container",
                                              "fingerprint", seed->fingerprint, "version", seed->version, "created",
                                              tag_value(seed->object, TAG_CREATED), "state", describe(seed, max_age)));
    }
    context_print_json(context, array);
}

static void print_table(struct context *context, const struct seed *seeds, size_t count, int64_t max_age)
{
    CLEANUP(listing_reset) struct listing table = {0};
    int64_t now = (int64_t)time(NULL);

    listing_row(&table, "TEMPLATE", "TYPE", "IMAGE", "AGE", "STATE", "INSTANCE", NULL);
    for (size_t i = 0; i < count; i++) {
        const struct seed *seed = &seeds[i];
        CLEANUP(freep) char *age = clock_describe(now > seed->created ? now - seed->created : 0);
        CLEANUP(freep) char *image = xasprintf("%.12s", seed->fingerprint);

        listing_row(&table, seed->template_name, seed->vm ? "vm" : "container", image, seed->created > 0 ? age : "-",
                    describe(seed, max_age), seed->instance, NULL);
    }
    listing_print(&table, context->out);
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    struct seed *seeds = NULL;
    size_t count = 0;
    int64_t max_age = 0;

    if (seed_max_age(&max_age, err) < 0 || context_client(context, &client, err) < 0 ||
        seed_list(client, &seeds, &count, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, seeds, count, max_age);
    } else if (count > 0) {
        print_table(context, seeds, count, max_age);
    } else {
        narrate_note(context->narrator, "no seed is kept; the first box of a template leaves one");
    }
    seed_list_free(seeds, count);
    return 0;
}

const struct command command_seeds = {
    .name = "seeds",
    .section = SECTION_IMAGES,
    .arguments = "",
    .summary = "list the seeds that the next boxes are copied from",
    .help = "A seed is a hidden, stopped copy of the first box of a template, from before\n"
            "anybody was in it: it holds no credential. box new copies it where it is\n"
            "younger than 7 days (BOX_SEED_MAX_AGE: 7d, 12h, 0 for never) and template,\n"
            "image and box are still the same. box seeds rm drops them all.\n",
    .flags = TAKES_JSON,
    .run = run,
};
