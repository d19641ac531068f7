#ifndef BOX_DRILL_DRILL_H
#define BOX_DRILL_DRILL_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* The rehearsal of the whole tool on this host. It makes boxes, a network and a profile of its own, and removes them.
 */
struct drill_options {
    const char *phases;        /* letters, "C" or "ABC"; NULL: all */
    const char *claims;        /* only these claims ("C10T,C84") and their phases' baselines, or NULL */
    const char *damage;        /* a program that is run once the boxes stand, before they are attacked, or NULL: whether
                                  the drill notices what it breaks. It gets the facts as DRILL_BOX_IP and the like */
    const char *template_name; /* of the boxes; NULL: blank */
    bool container;            /* containers, also where this host runs VMs */
    int64_t mint_budget;       /* milliseconds for each box; 0: 300 s */
    bool keep_boxes;
};

/* Runs it. What an earlier drill left is removed first; a second drill at the same time is ERR_STATE. Needs root.
 * `ret_report` receives the whole report (docs/drill.md has its shape), also where claims are broken: look at
 * drill_counts(). On Ctrl-C everything made is removed and it is ERR_INTERRUPTED. */
int drill_run(struct client *client, const struct drill_options *options, struct narrator *narrator,
              json_t **ret_report, struct error *err);

/* How often each verdict stands in a report; indexed by enum verdict. */
void drill_counts(const json_t *report, unsigned ret_counts[4]);

/* True where this host carries the stack: the network and the profile are there. */
bool drill_host_is_set_up(struct client *client);

#endif
