#ifndef BOX_BOX_IMAGEBUILD_H
#define BOX_BOX_IMAGEBUILD_H

#include "base/error.h"
#include "base/narrate.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* An image in the cache: two files that the daemon takes. Owned. */
struct imagebuild {
    const struct recipe *recipe;
    char *key; /* 12 hexadecimal digits of the digest of all that goes into it */
    char *metadata_path, *rootfs_path;
    int64_t size;  /* bytes of both */
    int64_t built; /* when, seconds since the epoch */
    bool fresh;    /* built by this call, not found */
};

/* Finds the image of that alias in the cache, or builds it (mmdebstrap, mksquashfs; needs root and the machine's Debian
 * mirror; about a minute). `force` builds in any case. Two builds at once: the second waits, and says so. The final
 * names are never half; what an interrupted build left is removed, by itself or by the next one. */
int imagebuild_run(const char *alias, bool force, struct narrator *narrator, struct imagebuild *ret_image,
                   struct error *err);

/* Imports it under its alias; nothing is done where the daemon has the very same already (unless `force`).
 * `*ret_imported` tells. The caller frees the fingerprint. */
int imagebuild_import(struct client *client, const struct imagebuild *image, bool force, struct narrator *narrator,
                      bool *ret_imported, char **ret_fingerprint, struct error *err);

void imagebuild_reset(struct imagebuild *image);

#endif
