#ifndef BOX_CLI_COMMAND_H
#define BOX_CLI_COMMAND_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "cli/option.h"

#include <stdbool.h>
#include <stdio.h>

struct box;
struct client;
struct context;

/* How to add a command: write src/cli/command_NAME.c that exports `const struct command command_NAME`, add one line to
 * commands.def and one to meson.build. Nothing else knows of it: dispatch, help, man page, completions read the row. */

/* Preconditions and traits: checked by dispatch, before run(), in this order. */
enum command_flag {
    NEEDS_ROOT = 1 << 0,     /* effective uid 0 */
    NEEDS_BOX = 1 << 1,      /* the first argument names a box: `context->box` is it. An instance without the tag is
                                "no such box". One request. */
    NEEDS_RUNNING = 1 << 2,  /* with NEEDS_BOX: and it runs */
    NEEDS_STOPPED = 1 << 3,  /* with NEEDS_BOX: and it is stopped */
    NEEDS_TERMINAL = 1 << 4, /* stdin and stdout are a terminal */
    TAKES_REST = 1 << 5,     /* words after `--` go to `context->rest` untouched; elsewhere `--` only ends the options */
    TAKES_JSON = 1 << 6,     /* has --json; sets `context->json` */
    DESTRUCTIVE = 1 << 7,    /* has --force; call confirm() (confirm.h) before the act */
    CANCELLABLE = 1 << 8,    /* cancel_install() before run(): Ctrl-C is seen by waiting code, which cleans up */
    HIDDEN = 1 << 9,         /* in no listing; for units and the build */
};

/* Where the general help lists it. */
enum command_section {
    SECTION_DAILY,  /* minting and using boxes */
    SECTION_IMAGES, /* templates and images */
    SECTION_HOST,   /* the host's stack */
    SECTION_OTHER,
};

/* One command: a row of the table. */
struct command {
    const char *name;      /* "exec", or two words for a member of a group: "image build" */
    enum command_section section;
    const char *arguments; /* "BOX", "[NAME]", "BOX...", "BOX -- CMD...", "": dispatch counts by it, the
                              completions offer by it (BOX, TEMPLATE, IMAGE, FILE, DIR) */
    const char *summary;   /* one line for the listing: no capital, no final full stop */
    const char *help;      /* paragraphs for `box help NAME`, at most 78 columns, ends with a newline; may be NULL */
    const struct option_row *options; /* its own ones, ended by an empty row; may be NULL */
    unsigned flags;
    /* 0 or -1 with `err`. A command that passes another's exit status on sets `context->status` and returns 0.
     * Results go to `context->out`, all else through `context->narrator`. */
    int (*run)(struct context *context, struct error *err);
    const char *also;      /* what people type for it elsewhere, "ls ps": only to suggest it; may be NULL */
    const char *instead;   /* the command that takes the argument which this one does not: "info" for list; may be NULL */
};

/* What a command runs with. All borrowed; lives until the process ends. */
struct context {
    const struct command *command;
    struct argv arguments;      /* the words that are no options, counted by the row's `arguments` */
    struct argv rest;           /* TAKES_REST: the words after `--` */
    struct option_set options;  /* ask with option_given/option_text/option_number(&context->options, ...) */
    struct narrator *narrator;  /* never NULL; with --quiet only warnings are shown */
    bool json, quiet, verbose, force;
    struct box *box;            /* NEEDS_BOX, else NULL */
    FILE *out;                  /* stdout; flushed and checked by main */
    int status;                 /* exit status where run() returns 0 */
    struct client *client;      /* ask with context_client() */
};

/* The connection to the daemon, opened on first use, closed by main. Borrowed. With --verbose each request is told. */
int context_client(struct context *context, struct client **ret_client, struct error *err);

/* The argument at `index`, or NULL where there are fewer. Borrowed. */
const char *context_argument(const struct context *context, size_t index);

/* Prints a value to `context->out`, indented, with a final newline. Borrows it. */
void context_print_json(struct context *context, const json_t *value);

#endif
