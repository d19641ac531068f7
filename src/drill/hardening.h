#ifndef BOX_DRILL_HARDENING_H
#define BOX_DRILL_HARDENING_H

#include "incus/client.h"

#include <stdbool.h>

/* Removes the disposable network, its profile, its ACL and the instances on it, as far as they carry the drill's mark.
 * True where nothing of it is left. */
bool hardening_revert(struct client *client);

#endif
