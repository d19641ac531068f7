/* `box image build`: an image from the machine's own Debian mirror, cached, imported into the daemon.
 * Not for what is in it (box/recipe.c). */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/imagebuild.h"
#include "box/recipe.h"
#include "cli/command.h"

#include <time.h>

static void tell_result(struct context *context, const struct imagebuild *image)
{
    CLEANUP(freep) char *age = clock_describe((int64_t)time(NULL) - image->built);

    if (image->fresh) {
        narrate_note(context->narrator, "built %s: %lld MiB", image->recipe->alias,
                     (long long)(image->size / (1024 * 1024)));
    } else {
        narrate_note(context->narrator, "%s is in the cache, built %s ago (--force builds it anew)",
                     image->recipe->alias, age);
    }
}

static int run(struct context *context, struct error *err)
{
    const char *wanted = context_argument(context, 0) ? context_argument(context, 0) : recipe_aliases[0];
    bool vm = option_given(&context->options, "vm") && !text_ends_with(wanted, RECIPE_VM_SUFFIX);
    CLEANUP(freep) char *alias = vm ? xasprintf("%s" RECIPE_VM_SUFFIX, wanted) : xstrdup(wanted);
    CLEANUP(imagebuild_reset) struct imagebuild image = {0};
    CLEANUP(freep) char *fingerprint = NULL;
    bool imported = false;
    struct client *client = NULL;
    bool import = !option_given(&context->options, "no-import");

    /* Asked first: a minute of building for a daemon that is not there would be a minute lost. */
    if (import && context_client(context, &client, err) < 0) {
        error_wrap(err, "the image is to be imported");
        return -1;
    }
    if (imagebuild_run(alias, context->force || option_given(&context->options, "force"), context->narrator, &image,
                       err) < 0) {
        return -1;
    }
    tell_result(context, &image);
    if (!import) {
        (void)fprintf(context->out, "%s\n", image.rootfs_path);
        return 0;
    }
    if (imagebuild_import(client, &image, image.fresh, context->narrator, &imported, &fingerprint, err) < 0) {
        return -1;
    }
    if (!imported) {
        narrate_note(context->narrator, "Incus has this very image already");
    }
    (void)fprintf(context->out, "%s %.12s\n", alias, fingerprint);
    return 0;
}

static const struct option_row options[] = {
    {.name = "force", .kind = OPTION_FLAG, .help = "build even where the cache has it"},
    {.name = "no-import", .kind = OPTION_FLAG, .help = "stop after the cache; no Incus needed"},
    {.name = "vm", .kind = OPTION_FLAG, .help = "for VMs: a bootable disk, named IMAGE/vm in Incus"},
    {0},
};

const struct command command_image_build = {
    .name = "image build",
    .section = SECTION_IMAGES,
    .arguments = "[IMAGE]",
    .summary = "build an image from this machine's own Debian mirror",
    .help = "Installs a Debian by mmdebstrap from the archive that this machine's apt uses,\n"
            "verified by its signatures, packs it into /var/cache/box/images, and imports\n"
            "it into Incus under the name that the templates use. About a minute; what the\n"
            "cache has is not built again. No image server is asked.\n"
            "\n"
            "With --vm it is a disk that boots by itself (EFI, systemd-boot, Debian's cloud\n"
            "kernel, Incus's agent), under the name IMAGE/vm; nothing is mounted on the\n"
            "way.\n"
            "\n"
            "BOX_MIRROR sets the Debian mirror that a box's own apt uses, and the one to\n"
            "build from where this machine's apt knows no Debian archive.\n",
    .options = options,
    .flags = CANCELLABLE,
    .run = run,
};
