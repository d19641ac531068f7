#ifndef BOX_BOX_TEMPLATECHECK_H
#define BOX_BOX_TEMPLATECHECK_H

#include "base/error.h"
#include "base/narrate.h"
#include "incus/client.h"

#include <stddef.h>

/* A template judged as somebody who was handed it would: each file by itself, and, by what is in the image that it
 * names, whether cloud-init takes the user-data, whether that makes the user of box.env, and whether converge.sh is
 * one. */

enum templatecheck_verdict {
    TEMPLATECHECK_HOLDS,
    TEMPLATECHECK_FAULT,
    TEMPLATECHECK_NOT_JUDGED, /* never a pass: the detail says what it would take */
};

#define TEMPLATECHECK_ROWS 8

struct templatecheck {
    char *name; /* of the directory; owned */
    struct templatecheck_row {
        const char *what; /* "name", "box.env", "user-data.yaml", "converge.sh", "files", "schema", "user", "syntax" */
        enum templatecheck_verdict verdict;
        char *detail; /* one line, may quote the files; owned */
    } rows[TEMPLATECHECK_ROWS];
};

/* ERR_USAGE where `directory` is none; faults of the template are rows and no error. What only the image can tell is
 * asked of it in a box that is made for that and removed again, also on Ctrl-C; `client` NULL: there is no daemon. */
int templatecheck_run(struct client *client, const char *directory, struct narrator *narrator,
                      struct templatecheck *ret_check, struct error *err);

/* "holds", "fault", "not judged". */
const char *templatecheck_name(enum templatecheck_verdict verdict);

void templatecheck_reset(struct templatecheck *check);

#endif
