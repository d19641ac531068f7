#ifndef BOX_STACK_SETUP_H
#define BOX_STACK_SETUP_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "incus/client.h"
#include "stack/subnet.h"

#include <stdbool.h>
#include <stdint.h>

/* What a host must carry for boxes, converged from the one table (stack/table.h). */
struct setup_options {
    bool dry_run;        /* read and compare only */
    const char *subnet;  /* BOX_SUBNET: "10.89.0.0/24", or NULL: the first free one; an existing boxnet keeps its own */
    const char *dns;     /* BOX_DNS: addresses apart by blanks or commas, or NULL: those that boxnet is pinned to, where
                          * all of them are public, else 1.1.1.1 8.8.8.8 */
    bool fresh_dns;      /* never those that boxnet is pinned to */
    uint64_t pool_size;  /* bytes of the pool's loop file where it has to be made; 0: by free disk */
    const char *program; /* the path of box that the unit or the watcher's process runs; NULL: this one */
};

struct setup_report {
    /* Array of {"object", "item", "live" (text or null), "want" (text or null), "why", "done" (boolean)}. */
    json_t *changes;
    /* What this host cannot carry, one sentence each (no systemd: no unit at boot). */
    struct argv notes;
    char *subnet; /* "10.88.0.0/24" */
    char *dns;    /* addresses apart by blanks */
};

/* Reads every item, and without `dry_run` converges those that differ, object by object, each within its budget. The
 * walls are laid before anything of the daemon's is touched. What is in the way (a foreign bridge of our name, a taken
 * subnet that was pinned) is ERR_STATE or ERR_USAGE before anything is changed. Needs root (ERR_DENIED).
 * `ret_report` is written on success, and is the caller's. */
int setup_run(struct client *client, const struct setup_options *options, struct narrator *narrator,
              struct setup_report *ret_report, struct error *err);

/* The rows as they stand, for who judges a host without changing it. Any user may ask: what needs root or the daemon
 * and has none is a failure of that row alone. */
struct setup_view {
    /* One object a row: {"object", "why", "changes" (as in a report)}, and where it could not be read or something
     * foreign is in the way "failure", "remedy" (text or null), "unseen" (true: for want of root or a daemon). */
    json_t *rows;
    bool is_set_up; /* something of the stack is there: what is missing then is a damage */
    bool has_subnet;
    struct subnet subnet; /* of boxnet */
    uint32_t gateway;
    char *dns; /* the resolvers that it must have, apart by blanks */
};

/* `client` may be NULL: no daemon. Never fails. */
void setup_look(struct client *client, const struct setup_options *options, struct setup_view *ret_view);
void setup_view_reset(struct setup_view *view);

void setup_report_reset(struct setup_report *report);

#endif
