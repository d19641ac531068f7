#ifndef BOX_DRILL_GROUND_H
#define BOX_DRILL_GROUND_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "incus/client.h"

#include <stdbool.h>

/* What the drill stands on: the facts that attacks are written with, read from the kernel, the daemon, and the lab's
 * description of its world. Without a lab, only this host's own addresses and two public resolvers are ever probed. */
struct ground {
    json_t *facts;       /* object of strings: "gateway", "uplink", "box.ip", ...; what is not there, this host lacks */
    json_t *world;       /* the lab's description of its world, or NULL */
    char *program;       /* box itself */
    char *instrument;    /* box-probe on the host */
    char *guest_program; /* where the instrument lies in a box */
    char *directory;     /* the drill's run directory: logs and the guard */
    int world_namespace; /* descriptor of the world's network namespace, or -1 */
};

/* Finds the instrument beside this program, in the build tree or below libexec; reads the kernel and the daemon.
 * ERR_NOT_FOUND where there is no instrument. */
int ground_open(struct client *client, const char *directory, struct ground **ret_ground, struct error *err);
void ground_free(struct ground *ground);
DEFINE_CLEANUP(struct ground *, ground_free)

/* Borrowed, or NULL. */
const char *ground_fact(const struct ground *ground, const char *name);
void ground_set(struct ground *ground, const char *name, const char *value);

/* Facts of a box under `prefix`: its instance name, address and MAC ("box.name", "box.ip", "box.mac", "box.port").
 * ERR_STATE where it has no lease. */
int ground_learn_box(struct ground *ground, struct client *client, const char *prefix, const char *name,
                     struct error *err);

/* Fills each {fact} of a text in; "{}" stays. ERR_NOT_FOUND names a fact that this host lacks. The caller frees. */
int ground_fill(const struct ground *ground, const char *text, char **ret_text, struct error *err);

/* Splits "PLACE: WORD..." and fills in each {fact}. ERR_NOT_FOUND names a fact that this host lacks; ERR_USAGE where
 * the text is no such thing. Outputs are the caller's. */
int ground_expand(const struct ground *ground, const char *text, char **ret_place, struct argv *ret_words,
                  struct error *err);

#endif
