#ifndef BOX_BOX_CONVERGE_H
#define BOX_BOX_CONVERGE_H

#include "base/narrate.h"
#include "box/box.h"
#include "box/template.h"
#include "incus/client.h"

#include <stdint.h>

/* A template's converge.sh in a guest: as root, after cloud-init, as often as one likes. It gets no input, and of the
 * host it learns nothing but the names of the template, of the box's user and that user's home (BOX_TEMPLATE, BOX_USER,
 * BOX_HOME). */

#define CONVERGE_BUDGET_DEFAULT_S (20 * 60)

struct converge_request {
    const char *instance;
    const struct template *template; /* that has a script */
    const char *user, *home;
    int64_t budget; /* milliseconds */
};

/* Runs it to its end and narrates each line that it prints, made fit for a terminal. ERR_STATE with its exit status and
 * last words where it fails, or where another run of it goes on; ERR_TIMEOUT, ERR_INTERRUPTED: it was killed, and what
 * it had started. */
int converge_run(struct client *client, const struct converge_request *request, struct narrator *narrator,
                 struct error *err);

/* Brings a running box to the template as it is now, and takes the mark SNAPSHOT_BOOTSTRAPPED. A box that is incomplete
 * for want of nothing else is complete then. ERR_STATE where the template has no script or is another user's, where the
 * box does not run or is otherwise incomplete. What fails leaves the box and its marks as they were. */
int converge_box(struct client *client, const struct box *box, const struct template *template, int64_t budget,
                 struct narrator *narrator, struct error *err);

/* The remedy of a run that failed: how to run it again. Returns -1. */
int converge_remedy(const char *name, const struct template *template, struct error *err);

#endif
