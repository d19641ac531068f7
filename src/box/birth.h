#ifndef BOX_BOX_BIRTH_H
#define BOX_BOX_BIRTH_H

#include "box/box.h"
#include "box/limits.h"
#include "box/ready.h"
#include "box/template.h"

#include <stdbool.h>
#include <stdint.h>

#define BIRTH_ID_SIZE 17 /* 16 hexadecimal digits and the NUL */

/* How a box comes to life, whatever its disk is made from: an instance that carries the tag, TAG_STATE_MINTING and
 * this birth's id in its creating request, its first boot, the verdict, and the cleanup behind what failed. Borrowed
 * texts but for `found`. */
struct birth {
    struct client *client;
    struct narrator *narrator;
    const char *name;
    char id[BIRTH_ID_SIZE];
    bool vm;
    bool lenient;                /* a copy of what was usable: what it lacks now is told, and is no failure */
    bool renew;                  /* a VM that is a copy: it gets its identity once it answers, and boots again */
    const char *user;            /* that must be there */
    const struct template *template; /* whose converge.sh runs before it is complete; NULL: none does */
    const struct limits *limits; /* what was asked for */
    int64_t budget;              /* milliseconds for its boot */
    struct ready_user found;     /* what `user` is in the guest */
};

/* Draws the id; nothing is requested. */
int birth_begin(struct birth *birth, struct error *err);

/* ERR_EXISTS where the name is taken; says by what. */
int birth_check_free(struct birth *birth, struct error *err);

/* Creates by `create`, starts, waits until it is usable, takes TAG_STATE away. What fails before the guest has booted,
 * and Ctrl-C at any moment, is removed, and only where it carries this birth's id; what fails in the guest is kept as
 * TAG_STATE_FAILED, or, where all but the template's converge.sh was done, as TAG_STATE_UNCONVERGED. `create` leaves the instance stopped and within the contract. */
int birth_run(struct birth *birth, int (*create)(void *context, struct error *err), void *context, struct box **ret_box,
              struct error *err);

void birth_reset(struct birth *birth);

#endif
