/* `box import`: a box from a file that `box export` wrote.
 * Not for images: `box image build`. */
#include "base/fd.h"
#include "box/artifact.h"
#include "box/import.h"
#include "box/name.h"
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Non-blocking: a FIFO would wait for a writer. */
static int open_file(const char *path, int *ret_fd, int64_t *ret_length, struct error *err)
{
    struct stat status;
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "cannot open %s", path);
    }
    *ret_length = status.st_size;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int run(struct context *context, struct error *err)
{
    const char *path = context_argument(context, 0);
    const char *name = option_text(&context->options, "name");
    CLEANUP(artifact_reset) struct artifact artifact = {0};
    CLEANUP(box_freep) struct box *box = NULL;
    CLEANUP(fd_closep) int fd = -1;
    struct client *client = NULL;
    int64_t length = 0;

    if ((name && name_check_new(name, err) < 0) || open_file(path, &fd, &length, err) < 0) {
        return -1;
    }
    narrate_step(context->narrator, "looking through %s", path);
    if (artifact_check(fd, path, context->narrator, &artifact, err) < 0) {
        return -1;
    }
    narrate_done(context->narrator, "%llu members", (unsigned long long)artifact.members);
    const struct import_request request = {
        .fd = fd, .length = length, .path = path, .artifact = &artifact, .name = name ? name : artifact.name};

    if (context_client(context, &client, err) < 0 || import_run(client, &request, context->narrator, &box, err) < 0) {
        return err && err->code == ERR_EXISTS && !name
                   ? error_remedy(err, "give it another name: box import %s --name NAME", path)
                   : -1;
    }
    narrate_note(context->narrator, "%s is there, and stopped. Start it: box start %s", box->name, box->name);
    (void)fprintf(context->out, "%s\n", box->name);
    return 0;
}

static const struct option_row options[] = {
    {.name = "name", .kind = OPTION_TEXT, .value = "NAME", .help = "name of the box, instead of the one in the file"},
    {0},
};

const struct command command_import = {
    .name = "import",
    .section = SECTION_DAILY,
    .arguments = "FILE",
    .summary = "make a box of an exported one",
    .help = "The file is not trusted: it is looked through before anything is unpacked, and\n"
            "what its configuration asks for beyond the isolation contract is taken away,\n"
            "line by line, before the box can start. It gets a MAC, an address, a\n"
            "machine-id and SSH host keys of its own, so that it can run beside its source.\n"
            "Snapshots that are off the contract are left out. The new box is stopped.\n",
    .options = options,
    .flags = CANCELLABLE,
    .run = run,
    .also = "load",
};
