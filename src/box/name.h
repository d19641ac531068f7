#ifndef BOX_BOX_NAME_H
#define BOX_BOX_NAME_H

#include "base/error.h"

#include <stdbool.h>

#define NAME_SEED_PREFIX "box-seed-" /* of a seed's instance (seed.h) */

/* The rule for the name of a box, which is Incus's own for an instance: 1 to 63 of A-Z a-z 0-9 -, no hyphen at either
 * end, not digits alone, and a letter or digit first. */
bool name_is_valid(const char *name);

/* ERR_USAGE that names the rule where the name breaks it. */
int name_check(const char *name, struct error *err);

/* Likewise for a name that a box shall get: ERR_USAGE, too, where box keeps such names for itself. */
int name_check_new(const char *name, struct error *err);

/* Likewise for the name of a template: 1 to 63 of A-Z a-z 0-9 . _ -, a letter or digit first. */
int name_check_template(const char *name, struct error *err);

#endif
