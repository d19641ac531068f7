#ifndef BOX_CLI_TRANSFER_H
#define BOX_CLI_TRANSFER_H

#include "base/argv.h"
#include "cli/command.h"

/* Files between this host and a box, streamed as a tar archive through a command that runs as the box's user: what comes in
 * belongs to that user. A path in the box counts from the user's home; "~/" in front of it means the same. */

/* Copies to `destination` in the box: into it where it is a directory, else under that name. A source that ends in "/."
 * stands for what is in it. Nothing appears under its final name before all of it has arrived. */
int transfer_push(struct context *context, const struct box *box, const struct argv *sources, const char *destination,
                  struct error *err);

/* Copies one file or directory of the box to `target`, the final name on this host. The box is not trusted: see
 * base/unpack.h. Each file appears under its final name when it is whole. */
int transfer_pull(struct context *context, const struct box *box, const char *source, const char *target,
                  struct error *err);

/* The last component of a path, or "" where that is nothing of its own ("/", ".", "..", "a/.", "~"). The caller frees. */
char *transfer_base(const char *path);

#endif
