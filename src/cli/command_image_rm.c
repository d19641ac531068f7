/* `box image rm`: one image out of the daemon's store.
 * Not for the cache of built images, from which `box image build` imports it again. */
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "incus/image.h"

#include <string.h>

#define PREFIX_MINIMUM 6 /* of a fingerprint: fewer digits could be meant as anything */

static bool is_fingerprint(const char *text)
{
    size_t length = strlen(text);

    return length >= PREFIX_MINIMUM && length <= 64 && strspn(text, "0123456789abcdef") == length;
}

/* By alias, else by a fingerprint or the beginning of one. */
static int find(struct client *client, const char *name, json_t **ret_image, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(json_freep) json_t *images = NULL;
    json_t *image, *match = NULL;
    size_t i;

    if (image_by_alias(client, name, NULL, ret_image, &cause) == 0) {
        return 0;
    }
    if (cause.code != ERR_NOT_FOUND) {
        return error_move(err, &cause);
    }
    if (is_fingerprint(name)) {
        if (image_list(client, &images, err) < 0) {
            return -1;
        }
        json_array_foreach(images, i, image) {
            const char *fingerprint = json_text(image, "fingerprint");

            if (fingerprint && text_starts_with(fingerprint, name)) {
                if (match) {
                    return error_set(err, ERR_USAGE, "more than one image's fingerprint begins with %s", name);
                }
                match = image;
            }
        }
    }
    if (!match) {
        error_set(err, ERR_NOT_FOUND, "no such image: %s", name);
        return error_remedy(err, "box image list");
    }
    *ret_image = json_incref(match);
    return 0;
}

static int run(struct context *context, struct error *err)
{
    const char *name = context_argument(context, 0);
    CLEANUP(json_freep) json_t *image = NULL;
    struct client *client = NULL;

    if (context_client(context, &client, err) < 0 || find(client, name, &image, err) < 0) {
        return -1;
    }
    const char *fingerprint = json_text(image, "fingerprint");

    if (!fingerprint) {
        return error_set(err, ERR_PROTOCOL, "the daemon names no fingerprint for the image %s", name);
    }
    if (confirm(context, err, "delete the image %s (%.12s) from Incus; boxes minted from it stay", name,
                fingerprint) < 0 ||
        image_delete(client, fingerprint, err) < 0) {
        return -1;
    }
    narrate_note(context->narrator, "removed the image %s (%.12s)", name, fingerprint);
    return 0;
}

const struct command command_image_rm = {
    .name = "image rm",
    .section = SECTION_IMAGES,
    .arguments = "IMAGE",
    .summary = "remove an image from Incus",
    .help = "Boxes that were minted from it stay as they are. What `box image build` built\n"
            "stays in the cache, from where it can be imported again at once.\n",
    .flags = DESTRUCTIVE,
    .run = run,
};
