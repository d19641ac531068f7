#ifndef BOX_CLI_OPTION_H
#define BOX_CLI_OPTION_H

#include "base/argv.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,   /* --force */
    OPTION_TEXT,   /* --memory SIZE or --memory=SIZE; any bytes, also empty ones: the command judges them */
    OPTION_NUMBER, /* --wait S: a decimal number within [minimum, maximum], judged by the parser */
};

/* One option of a command. Parsing, help, man page and completions come from this row. An array of them ends with
 * an empty row. */
struct option_row {
    const char *name;           /* "memory" for --memory */
    enum option_kind kind;
    const char *value;          /* what the value is called in help: "SIZE"; NULL for a flag. The words BOX, TEMPLATE,
                                   IMAGE, FILE, DIR also tell the completions what to offer */
    const char *help;           /* one line, no capital, no final full stop */
    uint64_t minimum, maximum;  /* OPTION_NUMBER; 0, 0 means any */
    char letter;                /* 'i' for -i as well; 0: none */
};

/* What was given on a command line, against one array of rows. */
struct option_value {
    const struct option_row *row;
    const char *text; /* borrowed from the command line; NULL for a flag */
    uint64_t number;
};

struct option_set {
    const struct option_row *const *tables; /* NULL-terminated list of arrays of rows; borrowed */
    struct option_value *values;
    size_t count;
};

/* Parses the words after the command. Options may stand anywhere before `--`; each is `--flag=value`, `--flag value`,
 * or `-i`; abbreviations are refused, and a value that starts with `-` must be given with `=`. Other words go to
 * `ret_arguments`; what follows `--` goes to `ret_rest` byte for byte. `*ret_has_rest` tells whether there was a `--`.
 * ERR_USAGE names the word and the nearest known option; the outputs are to be reset in either case. */
int option_parse(const char *const *words, const struct option_row *const *tables, struct option_set *ret_set,
                 struct argv *ret_arguments, struct argv *ret_rest, bool *ret_has_rest, struct error *err);

/* True where the option was given. Asking for a name that no row has aborts: that is a mistake in the program. */
bool option_given(const struct option_set *set, const char *name);

/* The text that was given (the last one, where it was given twice), or NULL. Borrowed. */
const char *option_text(const struct option_set *set, const char *name);

/* The number that was given, or `fallback`. */
uint64_t option_number(const struct option_set *set, const char *name, uint64_t fallback);

void option_reset(struct option_set *set);

#endif
