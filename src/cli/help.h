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

/* The commands that people see, section by section: `title` ("Boxes", "This host") comes before the first of its own. */
typedef void help_title(const char *title, FILE *out);
typedef void help_row(const struct command *command, FILE *out);
void help_sections(help_title *title, help_row *row, FILE *out);

/* How an option is written: "-i, --stdin", "    --wait S". The caller frees. */
char *help_option(const struct option_row *row);

#endif
