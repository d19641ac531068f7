#ifndef BOX_INCUS_BACKUP_H
#define BOX_INCUS_BACKUP_H

#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* Backups of instances: one file that holds a whole instance, made by the daemon in its own area. */

/* Makes one; the daemon itself drops it after a day, should nobody come for it. Budget: none, for nobody knows how
 * large it is. On Ctrl-C the daemon goes on: backup_discard(). */
int backup_create(struct client *client, const char *instance, const char *backup, bool instance_only,
                  const char *compression, struct narrator *narrator, struct error *err);

/* Streams it into a descriptor, narrating progress with its rate. */
int backup_download(struct client *client, const char *instance, const char *backup, int fd, struct narrator *narrator,
                    struct error *err);

/* Sees to it that there is none of that name, also where the daemon is still making it: then it waits for that, at most
 * `budget` milliseconds. Absent is success. */
int backup_discard(struct client *client, const char *instance, const char *backup, int64_t budget, struct error *err);

/* Makes an instance of that name from a backup file, streamed from a descriptor at its position. */
int backup_import(struct client *client, const char *name, const char *pool, int fd, int64_t length,
                  struct narrator *narrator, struct error *err);

#endif
