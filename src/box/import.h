#ifndef BOX_BOX_IMPORT_H
#define BOX_BOX_IMPORT_H

#include "box/artifact.h"
#include "box/box.h"

struct import_request {
    int fd;                          /* the file, at its beginning */
    int64_t length;                  /* of it */
    const char *path;                /* for messages */
    const struct artifact *artifact; /* what artifact_check() found in it */
    const char *name;                /* of the new box */
};

/* Makes a stopped box of an exported one. The file is untrusted: until it is on the contract (told line by line), with
 * a MAC and identity of its own and without snapshots that are off the contract, the instance has another name, by
 * which list shows it as incomplete, and is not started. Whatever fails, nothing of it is left. */
int import_run(struct client *client, const struct import_request *request, struct narrator *narrator,
               struct box **ret_box, struct error *err);

/* How the name of an instance begins that is being imported, or was when its import was killed. */
#define IMPORT_PREFIX "box-import-"

#endif
