#ifndef BOX_DRILL_RESTRICTED_H
#define BOX_DRILL_RESTRICTED_H

#include "drill/trial.h"

#define RESTRICTED_PROJECT "drill-restricted" /* carries CREW_TAG */

/* A restricted user's instance on boxnet, in a project of the drill's own: behind the walls while its filters are on,
 * and without any network once its user has switched them off, as he may. Only in a lab. */
void restricted_claim(struct trial *trial);

/* Removes the instances of that project, and it. Absent is success. The client is one of the default project. */
int restricted_remove(struct client *client, struct error *err);

#endif
