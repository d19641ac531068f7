#ifndef BOX_BOX_TEMPLATE_H
#define BOX_BOX_TEMPLATE_H

#include "base/error.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* A template: what a box is minted from. A directory of two files, both untrusted input: box.env (settings.h) and
 * user-data.yaml (cloud-init's, handed on byte for byte). */
enum template_source {
    TEMPLATE_GIVEN,   /* --template-dir */
    TEMPLATE_USER,    /* $XDG_CONFIG_HOME/box/templates, else $HOME/.config/box/templates */
    TEMPLATE_BUILD,   /* beside a box that is run from where it was built */
    TEMPLATE_SHIPPED, /* installed with box */
};

#define TEMPLATE_USER_DATA_CEILING (1024 * 1024) /* bytes of user-data.yaml */

#define TEMPLATE_DEFAULT "blank" /* what a box is minted from where nothing is said */

/* What a box is given where neither a flag nor the environment nor the template says. */
#define TEMPLATE_DEFAULT_CPU    "2"
#define TEMPLATE_DEFAULT_MEMORY "4GiB"
#define TEMPLATE_DEFAULT_DISK   "20GiB"

/* Everything is owned. Texts are NULL where box.env does not say; image and user never are. */
struct template {
    char *name;
    char *directory;
    enum template_source source;
    char *description;
    char *image;             /* BOX_IMAGE: an alias */
    char *user;              /* BOX_USER: whom exec and shell land in */
    char *cpu;               /* BOX_CPU: a number */
    char *memory, *disk;     /* sizes as Incus takes them: "4GiB" */
    bool require_vm;
    bool autostart;
    char *user_data;         /* NUL-terminated; valid UTF-8 without a NUL, for the daemon takes it as JSON */
    size_t user_data_length;
    char digest[SHA256_HEX_SIZE]; /* of the bytes of both files: TAG_DIGEST */
};

/* The template of that name: looked for in `directory` (--template-dir, a directory of templates; may be NULL), then
 * among the user's, then beside a box that runs where it was built, then among the shipped ones; the first wins.
 * ERR_USAGE where the name breaks the rule, where `directory` is none, and, as "FILE:LINE: what is wrong", where a file
 * does; ERR_NOT_FOUND names those that exist. */
int template_find(const char *name, const char *directory, struct template *ret_template, struct error *err);

/* One row of template_list(): a template that can be read, or why it cannot. */
struct template_entry {
    struct template template; /* name, directory and source are set in either case */
    char *fault;              /* NULL where it is sound */
};

/* All templates, sorted by name, each name once (as template_find() would find it). A template that cannot be read is a
 * row with its fault; only a `directory` that cannot be read is an error. */
int template_list(const char *directory, struct template_entry **ret_entries, size_t *ret_count, struct error *err);
void template_list_free(struct template_entry *entries, size_t count);

/* Reads the template in a directory, wherever that lies; its name is the directory's. Fails as template_find(). */
int template_read(const char *directory, enum template_source source, struct template *ret_template,
                  struct error *err);

/* Decides cpu, memory and disk: a flag of the command line (NULL: not given), else $BOX_CPU, $BOX_MEMORY, $BOX_DISK,
 * else the template, else the defaults above. Afterwards none is NULL. ERR_USAGE names where a bad value stands. */
int template_decide_limits(struct template *template, const char *cpu, const char *memory, const char *disk,
                           struct error *err);

/* "--template-dir", "user", "shipped", "build": for listings. */
const char *template_source_name(enum template_source source);

void template_reset(struct template *template);

#endif
