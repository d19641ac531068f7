#ifndef BOX_CLI_COMPLETION_H
#define BOX_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* Completion scripts for shells, from the rows of the command table: commands, flags, and, by asking
 * `box complete KIND`, the names of boxes, templates and images. */

/* Prints the script for "bash", "zsh" or "fish"; false for another shell. */
bool completion_print(const char *shell, FILE *out);

#endif
