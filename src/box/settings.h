#ifndef BOX_BOX_SETTINGS_H
#define BOX_BOX_SETTINGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A template's box.env: KEY="value" lines against an allowlist, parsed and never sourced. No key for a network or a
 * security flag exists, on purpose: a template chooses what is in a box, never what is around it. */
#define SETTINGS_CEILING      (64 * 1024) /* bytes of the file */
#define SETTINGS_LINE_CEILING 4096        /* bytes of one line */

/* Owned; NULL where the file does not say. */
struct settings {
    char *description, *image, *user, *cpu, *memory, *disk;
    bool require_vm, autostart;
};

/* Reads the bytes of a file; `file` is for the words of an error. Lines are KEY="value" without blanks around, comments
 * (#) or blank; nothing is expanded or escaped. Any fault is one ERR_USAGE "FILE:LINE: what is wrong". */
int settings_parse(const char *data, size_t length, const char *file, struct settings *ret_settings,
                   struct error *err);

/* Whether `value` is fit for `key` ("BOX_MEMORY"); else ERR_USAGE "WHERE: what is wrong with it". The key must exist. */
int settings_check(const char *key, const char *value, const char *where, struct error *err);

void settings_reset(struct settings *settings);

#endif
