/* `box complete`: names for the shells' completions, one a line; quick, and silent whatever happens.
 * Not for: people, who have `box list`; hence hidden. */
#include "base/text.h"
#include "box/tag.h"
#include "box/template.h"
#include "cli/command.h"
#include "incus/image.h"
#include "incus/instance.h"

static void print_boxes(struct context *context, struct client *client)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    if (instance_list(client, TAG_FILTER, &instances, NULL) < 0) {
        return;
    }
    size_t i;
    json_t *instance;
    json_array_foreach (instances, i, instance) {
        const char *name = json_text(instance, "name");
        if (name && tag_is_box(instance) && !tag_is_seed(instance)) {
            (void)fprintf(context->out, "%s\n", name);
        }
    }
}

static void print_images(struct context *context, struct client *client)
{
    CLEANUP(json_freep) json_t *images = NULL;
    if (image_list(client, &images, NULL) < 0) {
        return;
    }
    size_t i, j;
    json_t *image, *alias;
    json_array_foreach (images, i, image) {
        json_array_foreach (json_path(image, "aliases", NULL), j, alias) {
            const char *name = json_text(alias, "name");
            if (name) {
                (void)fprintf(context->out, "%s\n", name);
            }
        }
    }
}

static void print_templates(struct context *context)
{
    struct template_row *rows = NULL;
    size_t count = 0;
    template_list(NULL, &rows, &count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].hidden) {
            (void)fprintf(context->out, "%s\n", rows[i].name);
        }
    }
    template_list_free(rows, count);
}

static int run(struct context *context, struct error *err)
{
    const char *kind = context_argument(context, 0);
    struct client *client = NULL;
    if (text_equal(kind, "TEMPLATE")) {
        print_templates(context);
        return 0;
    }
    if (context_client(context, &client, NULL) < 0) {
        return 0; /* no daemon, no names: a completion has nobody to complain to */
    }
    if (text_equal(kind, "BOX")) {
        print_boxes(context, client);
    } else if (text_equal(kind, "IMAGE")) {
        print_images(context, client);
    }
    return 0;
}

const struct command command_complete = {
    .name = "complete",
    .section = SECTION_OTHER,
    .arguments = "KIND",
    .summary = "print the names of KIND (BOX, TEMPLATE, IMAGE), one a line",
    .flags = HIDDEN,
    .run = run,
};
