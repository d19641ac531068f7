#ifndef BOX_DRILL_REHEARSAL_H
#define BOX_DRILL_REHEARSAL_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"

/* The drill in a lab of its own: the lab is brought up beside this host, box sets it up, the drill runs in it with the
 * arguments given (those of `box drill`), and the lab goes down again. Nothing of this host is touched.
 * ERR_NOT_FOUND where the lab's program is not there (a source tree carries it; BOX_LAB_PROGRAM names another).
 * `ret_report` is the inner drill's report. */
int rehearsal_run(const struct argv *arguments, struct narrator *narrator, json_t **ret_report, struct error *err);

#endif
