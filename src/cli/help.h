#ifndef BOX_CLI_HELP_H
#define BOX_CLI_HELP_H

#include "cli/command.h"

/* Help for people, from the rows of the command table. */

/* All commands by section. */
void help_general(FILE *out);

/* Usage, description and flags of one command. */
void help_command(const struct command *command, FILE *out);

/* The members of a group ("image"). */
void help_group(const char *group, FILE *out);

/* "Boxes", "Templates and images", ... */
const char *help_section(enum command_section section);

/* How an option is written: "-i, --stdin", "    --wait S". The caller frees. */
char *help_option(const struct option_row *row);

#endif
