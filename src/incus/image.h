#ifndef BOX_INCUS_IMAGE_H
#define BOX_INCUS_IMAGE_H

#include "incus/client.h"

/* Images of the daemon's store. */

/* The image behind an alias: object with fingerprint, properties, type, uploaded_at, size. ERR_NOT_FOUND.
 * `type` is "container", "virtual-machine" or NULL (any). */
int image_by_alias(struct client *client, const char *alias, const char *type, json_t **ret_image, struct error *err);

/* All images (recursion=1). */
int image_list(struct client *client, json_t **ret_array, struct error *err);

/* Imports a split image (metadata tarball and root file system, or a VM's disk where its name ends in .qcow2) from two files, streamed as multipart/form-data, with
 * progress; `properties` is an object of strings (borrowed). Points `alias` at it, moving the alias from an older
 * image (which is then removed where nothing else names it). The caller frees the fingerprint. */
int image_import(struct client *client, const char *metadata_path, const char *rootfs_path, const char *alias,
                 const json_t *properties, struct narrator *narrator, char **ret_fingerprint, struct error *err);

int image_delete(struct client *client, const char *fingerprint, struct error *err);

#endif
