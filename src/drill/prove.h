#ifndef BOX_DRILL_PROVE_H
#define BOX_DRILL_PROVE_H

#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "incus/client.h"

#include <stdint.h>

/* The isolation claims alone, against one running box of the user's, within PROVE_MS. Nothing of his is changed but for
 * the instrument, which is put in and taken out again; no other box is touched or looked at, so what needs a sibling is
 * left out. */
#define PROVE_MS 10000

/* `ret_report` is what the receipt holds: the shape of a drill's report, kind "prove", with "subject" the box's name.
 * ERR_NOT_FOUND and ERR_STATE where there is no such box or it does not run. Needs root: the walls are read. */
int prove_run(struct client *client, const char *name, struct narrator *narrator, json_t **ret_report, struct error *err);

#endif
