#ifndef BOX_CLI_TABLE_H
#define BOX_CLI_TABLE_H

#include "base/argv.h"

#include <stdio.h>

/* A table for people: columns aligned by what a terminal shows (wide characters count two), cut to its width (COLUMNS,
 * else the terminal; no limit where the output is no terminal). Cells are sanitised: they may come from a guest.
 *
 *   CLEANUP(table_reset) struct table table = {0};
 *   table_row(&table, "NAME", "STATE", NULL);
 *   table_row(&table, "a", "running", NULL);
 *   table_print(&table, context->out);
 */
struct table {
    struct argv cells; /* row after row */
    size_t columns;    /* set by the first row */
};

/* Adds a row; the list ends with NULL and must have as many cells as the first row. Copies. */
void table_row(struct table *table, const char *cell, ...) __attribute__((sentinel));

/* Prints all rows, the first as heading. Where they are too wide the widest columns are shortened by an ellipsis;
 * the first column, the name that one types, last of all. */
void table_print(const struct table *table, FILE *out);

/* The width to fit into: COLUMNS where it is a positive number, else that of the terminal behind `out`, else 0
 * (no limit). */
size_t table_width(FILE *out);

void table_reset(struct table *table);

#endif
