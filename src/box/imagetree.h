#ifndef BOX_BOX_IMAGETREE_H
#define BOX_BOX_IMAGETREE_H

#include "base/error.h"
#include "box/mirror.h"
#include "box/recipe.h"

/* The directories of an image while it is being built. */

#if defined(__x86_64__)
#define IMAGETREE_ARCHITECTURE "amd64" /* as Debian calls it */
#define IMAGETREE_MACHINE      "x86_64" /* as Incus does */
#elif defined(__aarch64__)
#define IMAGETREE_ARCHITECTURE "arm64"
#define IMAGETREE_MACHINE      "aarch64"
#else
#error "box knows the architectures amd64 and arm64"
#endif

/* Applies the recipe's entries and apt sources to an installed root. */
int imagetree_dress(const struct recipe *recipe, const struct mirror *mirror, const char *root, struct error *err);

/* Makes `directory` with metadata.yaml and the templates. `key` names the build. */
int imagetree_describe(const struct recipe *recipe, const char *key, const char *directory, struct error *err);

/* rm -r, never following a symbolic link nor leaving the file system. An absent path is success. */
int imagetree_remove(const char *path, struct error *err);

#endif
