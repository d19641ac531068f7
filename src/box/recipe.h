#ifndef BOX_BOX_RECIPE_H
#define BOX_BOX_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What an image is made of, as data: the only place that knows. The builder follows it, the cache is keyed by all of
 * it. */
enum recipe_kind {
    RECIPE_FILE,    /* a file with this text */
    RECIPE_PROGRAM, /* the same, executable */
    RECIPE_LINK,    /* a symbolic link to this target */
    RECIPE_MASK,    /* a systemd unit that a box never starts; `path` is its name */
    RECIPE_REMOVE,  /* what the packages leave behind and no image may carry; `path` may be a pattern of glob(3) */
};

struct recipe_entry {
    enum recipe_kind kind;
    const char *path; /* relative to the root of the image */
    const char *text;
};

/* A file that the daemon writes into each instance from its configuration. */
struct recipe_template {
    const char *path; /* in the instance */
    const char *name; /* of the template in the metadata */
    const char *when; /* "create, copy, rename" */
    const char *text;
};

/* The template by which an image of box's gives a copy an identity of its own. */
#define RECIPE_COPIED "/etc/box-copied"

/* The partitions of a VM's disk are found by their labels. */
#define RECIPE_ROOT_LABEL "box-root"
#define RECIPE_ESP_LABEL  "box-esp"

/* One alias names one image in Incus, whatever its type: a VM's has this after it. */
#define RECIPE_VM_SUFFIX "/vm"

struct recipe {
    const char *alias; /* what templates call it in BOX_IMAGE */
    const char *os, *release, *suite, *description;
    const struct recipe *base;   /* its packages, options and entries come first (not its templates), or NULL */
    bool vm;                     /* a bootable disk, not a root file system */
    const char *const *packages; /* NULL-terminated */
    const char *const *options;  /* of mmdebstrap */
    const struct recipe_entry *entries;
    size_t entry_count;
    const struct recipe_template *templates;
    size_t template_count;
};

/* By alias, or NULL. */
const struct recipe *recipe_find(const char *alias);

/* The aliases of all recipes, NULL-terminated. */
extern const char *const recipe_aliases[];

/* The recipes themselves, for each other: recipe_find() is for everybody else. */
extern const struct recipe recipe_trixie;
extern const struct recipe vmrecipe_trixie;

#endif
