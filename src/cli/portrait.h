#ifndef BOX_CLI_PORTRAIT_H
#define BOX_CLI_PORTRAIT_H

#include "base/json.h"
#include "base/narrate.h"
#include "box/box.h"

/* How a box is told to people and to machines, the same in every listing. */

/* Its state in lower case: "running", "stopped". The caller frees. */
char *portrait_state(const struct box *box);

/* What is wrong with it in a few words: "incomplete: minting", "off the contract", both, or "". The caller frees. */
char *portrait_note(const struct box *box);

/* Its age as people say it, "" where it is unknown. The caller frees. */
char *portrait_age(const struct box *box);

/* Tells how to log in, where its template says so. */
void portrait_tell_login(struct narrator *narrator, const struct box *box);

/* The object that stands for it in --json (docs/json.md). The caller owns it. */
json_t *portrait_json(const struct box *box);

#endif
