#ifndef BOX_HOST_PROCFS_H
#define BOX_HOST_PROCFS_H

#include "base/error.h"

#include <sys/types.h>

/* The first process of this network namespace whose program is called `program` (its file name) and whose command line
 * has `argument` as one whole word (NULL: any); 0 where there is none. Never fails: what cannot be read is not found.
 */
pid_t procfs_find(const char *program, const char *argument);

/* Ends a process: TERM, after 5 s KILL, and waits until it is gone. One that is gone already is success. `what` names
 * it for messages. */
int procfs_end(pid_t pid, const char *what, struct error *err);

#endif
