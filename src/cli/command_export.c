/* `box export`: a box into one file.
 * Not for single files: `box cp`. */
#include "base/memory.h"
#include "base/text.h"
#include "box/export.h"
#include "cli/command.h"

static int refuse_running(const struct box *box, struct error *err)
{
    error_set(err, ERR_STATE,
              "the box %s is not stopped (Incus says: %s): a disk that is written to meanwhile would not "
              "be whole",
              box->name, box->status);
    return error_remedy(err, "box down %s", box->name);
}

static int run(struct context *context, struct error *err)
{
    const struct export_request request = {
        .box = context->box,
        .path = context_argument(context, 1),
        .instance_only = option_given(&context->options, "instance-only"),
        .overwrite = option_given(&context->options, "force"),
    };
    CLEANUP(freep) char *path = NULL;
    struct client *client = NULL;

    if (text_equal(request.path, "-")) {
        error_set(err, ERR_USAGE, "box export writes a file, and not to stdout");
        return error_remedy(err, "name a file: box export %s FILE (./- for one that is called -)", context->box->name);
    }
    if (!text_equal(context->box->status, "Stopped")) {
        return refuse_running(context->box, err);
    }
    if (context_client(context, &client, err) < 0 || export_run(client, &request, context->narrator, &path, err) < 0) {
        return -1;
    }
    narrate_warn(context->narrator, "%s holds all that %s held, credentials included: keep it as you keep those", path,
                 context->box->name);
    (void)fprintf(context->out, "%s\n", path);
    return 0;
}

static const struct option_row options[] = {
    {.name = "instance-only", .kind = OPTION_FLAG, .help = "leave its snapshots out"},
    {.name = "force", .kind = OPTION_FLAG, .letter = 'f', .help = "overwrite FILE"},
    {0},
};

const struct command command_export = {
    .name = "export",
    .section = SECTION_DAILY,
    .arguments = "BOX [FILE]",
    .summary = "write a stopped box into a file",
    .help = "The file holds the disk, the snapshots and the configuration; box import makes\n"
            "a box of it, here or on another host. It is readable by you alone, and has its\n"
            "name only when it is whole. Without FILE it is BOX-TIME.tar.zst.\n"
            "\n"
            "It holds what the box holds, credentials included.\n",
    .options = options,
    .flags = NEEDS_BOX | CANCELLABLE,
    .run = run,
    .also = "backup save dump",
};
