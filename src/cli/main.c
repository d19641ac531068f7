/* Dispatch: from the words of the command line to a row of the table, its preconditions, its run, the exit status.
 * Not for: what a command does. This is the one place that prints errors and decides the exit status. */
#include "base/cancel.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"
#include "incus/client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* True where the words before any `--` ask for help: that wins over every mistake on the same line. */
static bool asks_for_help(const char *const *words)
{
    for (; *words && strcmp(*words, "--") != 0; words++) {
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0) {
            return true;
        }
    }
    return false;
}

static int check_arguments(const struct context *context, bool has_rest, struct error *err)
{
    const struct command *command = context->command;
    size_t least = 0;
    size_t most = 0;
    commands_arity(command, &least, &most);
    CLEANUP(freep) char *usage = commands_usage(command);
    bool takes_rest = command->flags & TAKES_REST;
    if (context->arguments.count < least) {
        CLEANUP(freep) char *missing = commands_argument(command, context->arguments.count);
        error_set(err, ERR_USAGE, "'box %s' is missing %s", command->name, missing);
        return error_remedy(err, "usage: %s", usage);
    }
    if (context->arguments.count > most) {
        const char *extra = context->arguments.items[most];
        if (takes_rest && !has_rest) {
            error_set(err, ERR_USAGE, "'%s' must stand behind a --", extra);
        } else {
            error_set(err, ERR_USAGE, "'box %s' does not know what to do with '%s'", command->name, extra);
        }
        if (command->instead) {
            return error_remedy(err, "for that: box %s %s", command->instead, extra);
        }
        return error_remedy(err, "usage: %s", usage);
    }
    const char *dashes = strstr(command->arguments ? command->arguments : "", "-- ");
    if (takes_rest && dashes && dashes[3] != '[' && !context->rest.count) {
        error_set(err, ERR_USAGE, "'box %s' is missing what stands behind a --", command->name);
        return error_remedy(err, "usage: %s", usage);
    }
    return 0;
}

static int parse(struct context *context, const char *const *words, const struct option_row *const *tables,
                 struct error *err)
{
    const struct command *command = context->command;
    bool has_rest = false;
    if (option_parse(words, tables, &context->options, &context->arguments, &context->rest, &has_rest, err) < 0) {
        return err->remedy ? -1 : error_remedy(err, "see: box help %s", command->name);
    }
    if (!(command->flags & TAKES_REST)) { /* there `--` only ends the options */
        argv_push_all(&context->arguments, (const char *const *)context->rest.items);
        argv_reset(&context->rest);
    }
    context->quiet = option_given(&context->options, "quiet");
    context->verbose = option_given(&context->options, "verbose");
    context->json = command->flags & TAKES_JSON && option_given(&context->options, "json");
    context->force = command->flags & DESTRUCTIVE && option_given(&context->options, "force");
    return check_arguments(context, has_rest, err);
}

static int check_box(struct context *context, struct error *err)
{
    unsigned flags = context->command->flags;
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0 ||
        box_find(client, context_argument(context, 0), &context->box, err) < 0) {
        return -1;
    }
    const struct box *box = context->box;
    if (flags & NEEDS_RUNNING && !box->running) {
        error_set(err, ERR_STATE, "the box %s is not running (Incus says: %s)", box->name, box->status);
        return error_remedy(err, "start it: box start %s", box->name);
    }
    if (flags & NEEDS_STOPPED && !text_equal(box->status, "Stopped")) {
        error_set(err, ERR_STATE, "the box %s is not stopped (Incus says: %s)", box->name, box->status);
        return error_remedy(err, "stop it: box down %s", box->name);
    }
    return 0;
}

static int check_preconditions(struct context *context, struct error *err)
{
    const struct command *command = context->command;
    if (command->flags & NEEDS_ROOT && geteuid() != 0) {
        error_set(err, ERR_DENIED, "'box %s' must run as root", command->name);
        return error_remedy(err, "sudo box %s", command->name);
    }
    if (command->flags & NEEDS_TERMINAL && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))) {
        error_set(err, ERR_USAGE, "'box %s' needs a terminal on stdin and stdout", command->name);
        return error_remedy(err, "without one: box exec %s -- CMD...", context_argument(context, 0));
    }
    return command->flags & NEEDS_BOX ? check_box(context, err) : 0;
}

static int run(struct context *context, const char *const *words, const struct option_row *const *tables,
               struct console **console, struct error *err)
{
    if (parse(context, words, tables, err) < 0) {
        return -1;
    }
    if (context->quiet) {
        console_close(*console);
        *console = console_open(true);
        context->narrator = console_narrator(*console);
    }
    if (context->command->flags & CANCELLABLE) {
        cancel_install();
    }
    if (check_preconditions(context, err) < 0) {
        return -1;
    }
    return context->command->run(context, err);
}

static void reset(struct context *context)
{
    box_free(context->box);
    client_close(context->client);
    option_reset(&context->options);
    argv_reset(&context->arguments);
    argv_reset(&context->rest);
}

/* Help that is asked for without naming one command: `box`, `box --help`, `box image --help`. */
static bool help_at_large(const char *const *words)
{
    const struct command *member = NULL;
    size_t used = 0;
    if (words[0] && asks_for_help((const char *const[]){words[0], NULL})) {
        help_general(stdout);
        return true;
    }
    if (words[0] && asks_for_help(words) && commands_is_group(words[0]) &&
        commands_find(words, &member, &used, NULL) < 0) {
        help_group(words[0], stdout);
        return true;
    }
    return false;
}

static int dispatch(const char *const *words, struct console **console, int *ret_status, struct error *err)
{
    CLEANUP(reset) struct context context = {.narrator = console_narrator(*console), .out = stdout};
    if (!words[0]) {
        help_general(stderr);
        *ret_status = 2;
        return 0;
    }
    if (help_at_large(words)) {
        return 0;
    }
    static const char *const version_words[] = {"version", NULL};
    if (strcmp(words[0], "--version") == 0) {
        words = version_words;
    }
    if (words[0][0] == '-') {
        error_set(err, ERR_USAGE, "the flag %s must stand behind a command", words[0]);
        return error_remedy(err, "all commands: box help");
    }
    size_t used = 0;
    if (commands_find(words, &context.command, &used, err) < 0) {
        return -1;
    }
    if (asks_for_help(words + used)) {
        help_command(context.command, stdout);
        return 0;
    }
    const struct option_row *tables[COMMANDS_TABLES];
    commands_options(context.command, tables);
    int result = run(&context, words + used, tables, console, err);
    *ret_status = context.status;
    return result;
}

/* What was printed must have arrived: a full disk or a closed stdout is a failure. */
static int flush_results(struct error *err)
{
    bool failed = ferror(stdout);
    errno = 0;
    if (fflush(stdout) == 0 && !failed) {
        return 0;
    }
    return error_set_errno(err, errno ? errno : EIO, "writing to stdout");
}

int main(int argc, char **argv)
{
    fd_secure_standard();
    CLEANUP(console_closep) struct console *console = console_open(false);
    CLEANUP(error_reset) struct error err = {0};
    int status = 0;
    const char *const none[] = {NULL};
    int result = dispatch(argc > 0 ? (const char *const *)argv + 1 : none, &console, &status, &err);
    if (result == 0) {
        result = flush_results(&err);
    } else {
        (void)fflush(stdout);
    }
    if (result < 0) {
        console_error(console, &err);
        status = error_exit_status(&err);
    }
    return status;
}
