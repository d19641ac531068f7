#ifndef BOX_STACK_UNIT_H
#define BOX_STACK_UNIT_H

#include "base/error.h"

#include <stdbool.h>

/* The service that lays the walls at boot and keeps them: the one place that says what its unit file holds. A package
 * lays it as it stands (`box generate unit`); setup-host lays it where no package did, or one for another program. */

/* The text of the unit, for the box at that path. The caller frees. */
char *unit_text(const char *program);

/* The unit that the service manager goes by: the host's own, else a package's. `*ret_text` is NULL where there is
 * neither; the caller frees. */
int unit_read(char **ret_text, struct error *err);

/* Makes `text` the unit that the service manager goes by. A package's unit that says the same is left to serve alone.
 */
int unit_lay(const char *text, struct error *err);

/* True where the host has a unit of its own: one that unit_remove() would take away. */
bool unit_stands(void);

/* Removes the host's own unit; a package's is the package manager's. An absent one is success. */
int unit_remove(struct error *err);

#endif
