#ifndef BOX_CLI_COMMANDS_H
#define BOX_CLI_COMMANDS_H

#include "cli/command.h"

#include <stddef.h>

/* The command table (commands.def) and what can be read off its rows. */

/* All rows, ended by NULL, in table order. */
const struct command *const *commands_all(void);

/* The row that the words name: the longest name wins, so that "image list" is one command. `ret_used` is the number of
 * words that make up the name. ERR_USAGE names the nearest command, or the members of the group. */
int commands_find(const char *const *words, const struct command **ret_command, size_t *ret_used, struct error *err);

/* True where `word` is the first word of a group such as "image" and no command by itself. */
bool commands_is_group(const char *word);

/* All options of a command: its own, those that its flags bring (--json, --force), those of every command. Ended by
 * NULL. */
#define COMMANDS_TABLES 5
void commands_options(const struct command *command, const struct option_row *ret_tables[COMMANDS_TABLES]);

/* The options of every command: the last table of commands_options(). */
const struct option_row *commands_common(void);

/* How many arguments the row's `arguments` ask for, before a `--`; SIZE_MAX is no limit. */
void commands_arity(const struct command *command, size_t *ret_least, size_t *ret_most);

/* The word of the row's `arguments` at `index` without its dots and brackets: "BOX". The caller frees. */
char *commands_argument(const struct command *command, size_t index);

/* "box exec BOX -- CMD...". The caller frees. */
char *commands_usage(const struct command *command);

#endif
