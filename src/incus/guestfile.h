#ifndef BOX_INCUS_GUESTFILE_H
#define BOX_INCUS_GUESTFILE_H

#include "base/buffer.h"
#include "incus/client.h"

#include <sys/types.h>

/* Files of a guest through the files API. Works on a stopped container too; a VM needs its agent. Reading and listing
 * follow symbolic links, within the guest.
 * An owner and a mode are what a file is created with: one that exists keeps its own. */
struct guestfile_owner {
    uint32_t user, group;
    mode_t mode; /* permission bits */
};

/* Reads a regular file, at most `ceiling` bytes (more is ERR_SYSTEM). ERR_NOT_FOUND where it is absent. */
int guestfile_read(struct client *client, const char *instance, const char *path, size_t ceiling,
                   struct buffer *ret_data, struct error *err);

/* Creates or overwrites a regular file. */
int guestfile_write(struct client *client, const char *instance, const char *path, const void *data, size_t length,
                    const struct guestfile_owner *owner, struct error *err);

/* Streams from a descriptor of known length (never the whole file in memory), narrating progress. */
int guestfile_upload(struct client *client, const char *instance, const char *path, int fd, int64_t length,
                     const struct guestfile_owner *owner, struct narrator *narrator, struct error *err);

/* Streams a regular file of the guest into a descriptor. */
int guestfile_download(struct client *client, const char *instance, const char *path, int fd, struct narrator *narrator,
                       struct error *err);

/* Deletes; an absent file is success. */
int guestfile_delete(struct client *client, const char *instance, const char *path, struct error *err);

/* Names in a directory as a JSON array of strings. */
int guestfile_list(struct client *client, const char *instance, const char *path, json_t **ret_names,
                   struct error *err);

#endif
