/* `box image list`: the images that boxes can be minted from.
 * Not for the images of image servers. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "incus/image.h"

#include <time.h>

/* The first alias, or NULL: an image without one was replaced, or was fetched from a server. */
static const char *alias_of(const json_t *image)
{
    return json_text(json_array_get(json_object_get(image, "aliases"), 0), "name");
}

static json_t *describe(const json_t *image)
{
    const json_t *properties = json_object_get(image, "properties");

    return json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:I, s:b}", "alias", alias_of(image), "fingerprint",
                     json_text(image, "fingerprint"), "type", json_text(image, "type"), "description",
                     json_text(properties, "description"), "architecture", json_text(image, "architecture"),
                     "uploaded", json_text(image, "uploaded_at"), "size", (json_int_t)json_number(image, "size", 0),
                     "built", json_text(properties, "box.recipe") != NULL);
}

static void print_image(struct listing *table, const json_t *image)
{
    const json_t *properties = json_object_get(image, "properties");
    const char *fingerprint = json_text(image, "fingerprint");
    const char *type = json_text(image, "type");
    int64_t uploaded = 0;
    CLEANUP(freep) char *size =
        xasprintf("%lld MiB", (long long)(json_number(image, "size", 0) / (1024 * 1024)));
    CLEANUP(freep) char *age = NULL;
    CLEANUP(freep) char *shown = xasprintf("%.12s", fingerprint ? fingerprint : "");

    if (clock_parse(json_text(image, "uploaded_at") ? json_text(image, "uploaded_at") : "", &uploaded)) {
        age = clock_describe((int64_t)time(NULL) - uploaded);
    }
    listing_row(table, alias_of(image) ? alias_of(image) : "-", shown,
              text_equal(type, "virtual-machine") ? "vm" : "container", size, age ? age : "-",
              json_text(properties, "description") ? json_text(properties, "description") : "-", NULL);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(json_freep) json_t *images = NULL;
    CLEANUP(listing_reset) struct listing table = {0};
    struct client *client = NULL;
    size_t i;
    json_t *image;

    if (context_client(context, &client, err) < 0 || image_list(client, &images, err) < 0) {
        return -1;
    }
    if (context->json) {
        CLEANUP(json_freep) json_t *array = json_array();

        json_array_foreach(images, i, image) {
            (void)json_array_append_new(array, describe(image));
        }
        context_print_json(context, array);
        return 0;
    }
    if (json_array_size(images) == 0) {
        narrate_note(context->narrator, "no image yet; `box image build` makes one");
        return 0;
    }
    listing_row(&table, "IMAGE", "FINGERPRINT", "TYPE", "SIZE", "AGE", "DESCRIPTION", NULL);
    json_array_foreach(images, i, image) {
        print_image(&table, image);
    }
    listing_print(&table, context->out);
    return 0;
}

const struct command command_image_list = {
    .name = "image list",
    .section = SECTION_IMAGES,
    .arguments = "",
    .summary = "list the images that boxes can be minted from",
    .flags = TAKES_JSON,
    .run = run,
};
