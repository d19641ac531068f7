#ifndef BOX_CLI_LISTING_H
#define BOX_CLI_LISTING_H

#include "base/argv.h"

#include <stdio.h>

/* A table for people: columns aligned by what a terminal shows (wide characters count two), cut to its width (COLUMNS,
 * else the terminal; no limit where the output is no terminal). Cells are sanitised: they may come from a guest.
 *
 *   CLEANUP(listing_reset) struct listing table = {0};
 *   listing_row(&table, "NAME", "STATE", NULL);
 *   listing_row(&table, "a", "running", NULL);
 *   listing_print(&table, context->out);
 */
struct listing {
    struct argv cells; /* row after row */
    size_t columns;    /* set by the first row */
};

/* Adds a row; the list ends with NULL and must have as many cells as the first row. Copies. */
void listing_row(struct listing *table, const char *cell, ...) __attribute__((sentinel));

/* Prints all rows, the first as heading. Where they are too wide the widest columns are shortened by an ellipsis;
 * the first column, the name that one types, last of all. */
void listing_print(const struct listing *table, FILE *out);

/* The width to fit into: COLUMNS where it is a positive number, else that of the terminal behind `out`, else 0
 * (no limit). */
size_t listing_width(FILE *out);

void listing_reset(struct listing *table);

#endif
