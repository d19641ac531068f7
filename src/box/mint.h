#ifndef BOX_BOX_MINT_H
#define BOX_BOX_MINT_H

#include "box/box.h"
#include "box/limits.h"
#include "box/template.h"

#include <stdbool.h>
#include <stdint.h>

/* Minting a box: from a template to a machine that a person can use. */

enum mint_kind {
    MINT_ANY,       /* a VM where this host can run one, else a container */
    MINT_VM,        /* --vm */
    MINT_CONTAINER, /* --container */
};

struct mint_request {
    const char *name;
    const struct template *template;
    struct limits limits;  /* chosen (limits_choose); borrowed texts */
    enum mint_kind kind;
    int64_t budget;        /* milliseconds that its first boot may take, and the template's converge.sh after it */
    const char *version;   /* of this box, for the stamp */
    bool cold;             /* not from a seed */
    int64_t seed_age;      /* seconds that a seed is good for (seed_max_age); 0: none is used, none kept */
};

/* Creates, starts, waits until it is usable. Each step is narrated. Where a good seed of the template is there (seed.h),
 * the box is a copy of that, and it is said. A template's converge.sh runs in the first one alone: what it did is in the
 * seed. At the end the mark `pristine` is made (and `bootstrapped`), and a seed for the next box.
 *
 * The creating request carries the tag, TAG_STATE_MINTING and a random id; what fails before the guest has booted, and a
 * Ctrl-C at any moment, is cleaned up behind: an instance is only ever deleted where it carries this mint's id, so the loser of two mints
 * of one name touches nothing. What fails in the guest is kept as TAG_STATE_FAILED with its reason (converge.sh: as
 * TAG_STATE_UNCONVERGED), and is an error all the same. ERR_EXISTS where the name is taken; ERR_STATE where the host is not set up, or no image is there. */
int mint_run(struct client *client, const struct mint_request *request, struct narrator *narrator,
             struct box **ret_box, struct error *err);

#define MINT_BUDGET_DEFAULT_S (20 * 60)

#endif
