#ifndef BOX_DRILL_TEARDOWN_H
#define BOX_DRILL_TEARDOWN_H

#include "drill/ground.h"

/* Notes what this host has before the drill makes anything ("before.*"), to compare with at the end. What cannot be
 * read is left out, and then not judged. */
void teardown_remember(struct ground *ground, struct client *client);

#endif
