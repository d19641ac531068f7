#ifndef BOX_DOCTOR_DOCTOR_H
#define BOX_DOCTOR_DOCTOR_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "doctor/finding.h"
#include "incus/client.h"

#include <stdbool.h>

/* Whether this host is fit to mint boxes, and whether their isolation is live: asked of the kernel, the daemon and the
 * boxes, never of a file that claims it. */

struct doctor_options {
    bool fix;     /* repair what is ours, then look again */
    bool pin_dns; /* with fix: to the resolvers of BOX_DNS or the usual ones, whatever boxnet is pinned to */
    /* Appends what an aborted drill left, and removes it: the drill is a floor above. Both may be NULL. */
    int (*leftovers)(struct client *client, struct argv *ret_names, struct error *err);
    int (*remove_leftovers)(struct client *client, struct narrator *narrator, struct error *err);
};

/* Looks, twice where the first look finds something that may only be on its way. `client` may be NULL, and then
 * `failure` says why. What is found is no error of this function: see findings_healthy(). It fails where a repair does,
 * and on Ctrl-C. */
int doctor_run(struct client *client, const struct error *failure, const struct doctor_options *options,
               struct narrator *narrator, struct findings *ret_findings, struct error *err);

#endif
