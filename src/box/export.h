#ifndef BOX_BOX_EXPORT_H
#define BOX_BOX_EXPORT_H

#include "box/box.h"

#include <stdbool.h>

struct export_request {
    const struct box *box; /* stopped */
    const char *path;   /* of the file; a directory gets NAME-TIME.tar.zst in it; NULL: that in the current directory */
    bool instance_only; /* without its snapshots */
    bool overwrite;
};

/* Writes a whole box into a file: mode 0600 from the first byte, under its name only when it is whole. Whatever ends
 * this process, also KILL, neither half a file under that name nor a backup in the daemon is left: a child sees to
 * that. ERR_EXISTS where the file is there; a full disk is told apart, the daemon's or the target's. `ret_path` is the
 * file; owned. */
int export_run(struct client *client, const struct export_request *request, struct narrator *narrator, char **ret_path,
               struct error *err);

#endif
