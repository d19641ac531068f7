#ifndef BOX_BOX_TEMPLATEJUDGE_H
#define BOX_BOX_TEMPLATEJUDGE_H

#include "base/narrate.h"
#include "box/template.h"
#include "incus/client.h"

#include <stdbool.h>

/* What the programs of an image say of a template. Owned texts; one line each, made fit for a terminal. */
struct templatejudge_answer {
    bool cloud_config; /* else a script or another of cloud-init's formats, of which no more is known */
    char *schema;      /* what is wrong with the cloud-config; "" where nothing is */
    char *users;       /* the users that it makes, separated by blanks; NULL where it cannot be read */
    char *syntax; /* what the shell says of converge.sh; "" where nothing, NULL where its interpreter is no shell */
    char *missing; /* that the image lacks the interpreter of converge.sh, and what it has; NULL where it has it */
    bool made;     /* user-data.yaml may bring that interpreter */
};

/* Asks in a box that is made from the template's image for that, and removed again on every way out. ERR_STATE where
 * the image is not on this host. */
int templatejudge_ask(struct client *client, const struct template *template, struct narrator *narrator,
                      struct templatejudge_answer *ret_answer, struct error *err);

/* Reads the answer of the guest, whatever that says. ERR_PROTOCOL where it is none. */
int templatejudge_read(const char *data, size_t length, struct templatejudge_answer *ret_answer, struct error *err);

void templatejudge_reset(struct templatejudge_answer *answer);

#endif
