#ifndef BOX_BOX_TEMPLATE_H
#define BOX_BOX_TEMPLATE_H

#include "base/argv.h"
#include "base/error.h"
#include "base/sha256.h"
#include "box/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* What a box is minted from: a directory with box.env, user-data.yaml and, where it has one, converge.sh. Everything is
 * owned. */
struct template {
    char *name;
    char *directory;
    char *description; /* "" where the file has none */
    char *image;       /* alias */
    char *user;        /* that exec and shell land in */
    struct limits limits;
    bool require_vm;
    bool autostart;
    char *user_data; /* for cloud-init, byte for byte; UTF-8 without NUL */
    size_t user_data_length;
    char *script; /* converge.sh; NULL where there is none */
    size_t script_length;
    char *login;                  /* what to type in a box of it to log in; "" where the file has none */
    char digest[SHA256_HEX_SIZE]; /* of all files: what a mint was made from */
};

#define TEMPLATE_DEFAULT           "blank"
#define TEMPLATE_DEFAULT_IMAGE     "debian/13"
#define TEMPLATE_DEFAULT_USER      "dev"
#define TEMPLATE_LINE_CEILING      4096
#define TEMPLATE_SCRIPT            "converge.sh"

/* Parses a box.env: only KEY="value" lines with known keys, comments and blank lines; nothing is expanded. `path` is for
 * messages: the first fault is one ERR_USAGE that begins "path:line: ". Fills description, image, user, limits and the
 * flags; what the file leaves out gets its default. */
int template_parse(const char *path, const char *data, size_t length, struct template *ret_template,
                   struct error *err);

/* The keys of box.env, for who describes them; false past the last one. Static texts. */
bool template_describe_key(size_t index, const char **ret_key, const char **ret_meaning);

/* Reads the template in a directory, under that name. */
int template_read(const char *name, const char *directory, struct template *ret_template, struct error *err);

/* ERR_USAGE where what was given as --template-dir is no directory. */
int template_check_directory(const char *directory, struct error *err);

/* Where templates are looked for, the first hit counts: `extra` (--template-dir, may be NULL), the user's
 * ($XDG_CONFIG_HOME/box/templates), those that came with box ($BOX_TEMPLATES overrides). */
void template_places(const char *extra, struct argv *ret_directories);

/* Finds and reads a template by name. ERR_NOT_FOUND lists those that are there. */
int template_find(const char *name, const char *extra, struct template *ret_template, struct error *err);

/* One row of the listing: a template that can be used, or why it cannot. */
struct template_row {
    char *name;
    char *directory;
    bool hidden;            /* another of that name comes first */
    struct template template; /* where `fault` is NULL */
    char *fault;
};

/* All templates, sorted by name, in order of the places within one. */
void template_list(const char *extra, struct template_row **ret_rows, size_t *ret_count);
void template_list_free(struct template_row *rows, size_t count);

void template_reset(struct template *template);

#endif
