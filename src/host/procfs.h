#ifndef BOX_HOST_PROCFS_H
#define BOX_HOST_PROCFS_H

#include <sys/types.h>

/* The first process whose program is called `program` (its file name) and whose command line has `argument` as one
 * whole word (NULL: any); 0 where there is none. Never fails: what cannot be read is not found. */
pid_t procfs_find(const char *program, const char *argument);

#endif
