/* `box drill`: the rehearsal of the whole tool, its consent, and where its report goes.
 * Not for: what is claimed and how it is judged; see src/drill. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "drill/answers.h"
#include "drill/claim.h"
#include "drill/drill.h"
#include "drill/page.h"
#include "drill/rehearsal.h"
#include "drill/verdict.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#define PHASES "ABCDEMT"

static const struct option_row options[] = {
    {.name = "host", .kind = OPTION_FLAG, .help = "drill this host: boxes are made on it and removed again"},
    {.name = "lab", .kind = OPTION_FLAG, .help = "drill in a lab of its own; this host is not touched"},
    {.name = "yes", .kind = OPTION_FLAG, .help = "do not ask before drilling this host"},
    {.name = "phase", .kind = OPTION_TEXT, .value = "LETTERS", .help = "only these phases: A B C D E M T"},
    {.name = "claim", .kind = OPTION_TEXT, .value = "ID,...", .help = "only these claims and their phases' baselines"},
    {.name = "template", .kind = OPTION_TEXT, .value = "TEMPLATE", .help = "of the boxes that are made (blank)"},
    {.name = "container", .kind = OPTION_FLAG, .help = "make containers, also where this host runs VMs"},
    {.name = "wait",
     .kind = OPTION_NUMBER,
     .value = "S",
     .minimum = 10,
     .maximum = 86400,
     .help = "seconds that each box may take to be made (300)"},
    {.name = "keep-boxes", .kind = OPTION_FLAG, .help = "leave the boxes for a look; the next drill removes them"},
    {.name = "json", .kind = OPTION_TEXT, .value = "FILE", .help = "write the report as JSON"},
    {.name = "report", .kind = OPTION_TEXT, .value = "FILE", .help = "write the report as one HTML page"},
    {.name = "answers", .kind = OPTION_FLAG, .help = "print the block to paste, instead of the summary"},
    {.name = "damage",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "run this program before the attacks: is it noticed?"},
    {.name = "strict", .kind = OPTION_FLAG, .help = "a claim that was not judged fails the drill as well"},
    {.name = "list", .kind = OPTION_FLAG, .help = "print the claims and do nothing else"},
    {0},
};

static int list_claims(struct context *context)
{
    for (size_t i = 0; claim_tables[i]; i++) {
        (void)fprintf(context->out, "%c  %s\n", claim_tables[i]->phase, claim_tables[i]->title);
        for (size_t j = 0; j < claim_tables[i]->count; j++) {
            (void)fprintf(context->out, "   %-5s %s\n", claim_tables[i]->claims[j].id, claim_tables[i]->claims[j].text);
        }
    }
    return 0;
}

/* The phases of the listed claims; NULL with `err` for an id that is none. */
static char *phases_of(const char *list, struct error *err)
{
    CLEANUP(freep) char *copy = xstrdup(list);
    CLEANUP(buffer_reset) struct buffer phases = {0};
    char *rest = copy;

    for (char *id; (id = strsep(&rest, ","));) {
        const struct claim_table *table = NULL;
        if (!claim_find(id, &table)) {
            (void)error_set(err, ERR_USAGE, "there is no claim \"%s\"", id);
            (void)error_remedy(err, "box drill --list");
            return NULL;
        }
        buffer_append_format(&phases, "%c", table->phase);
    }
    return buffer_steal(&phases);
}

/* The phases asked for: letters, in any order. NULL with `err` for anything else. */
static char *read_phases(const struct context *context, struct error *err)
{
    const char *given = option_text(&context->options, "phase");
    const char *list = option_text(&context->options, "claim");

    if (list) {
        return phases_of(list, err);
    }
    CLEANUP(freep) char *phases = xstrdup(given ? given : PHASES);
    for (char *at = phases; *at; at++) {
        *at = (char)toupper((unsigned char)*at);
        if (!strchr(PHASES, *at)) {
            (void)error_set(err, ERR_USAGE, "\"%s\" names no phases: letters of " PHASES, given);
            return NULL;
        }
    }
    if (!*phases) {
        (void)error_set(err, ERR_USAGE, "--phase names no phase");
        return NULL;
    }
    return steal(&phases);
}

/* Consent: the drill makes and restarts things on a host that others may use. */
static int ask(struct context *context, struct error *err)
{
    if (option_given(&context->options, "yes")) {
        return 0;
    }
    if (!isatty(STDIN_FILENO)) {
        (void)error_set(err, ERR_USAGE,
                        "the drill makes boxes, a network and a profile on this host, and attacks it from "
                        "them; without a terminal it cannot ask");
        return error_remedy(err, "say so with --yes, or drill in a lab: box drill --lab");
    }
    return confirm(context, err,
                   "drill this host: make boxes, a network and a profile on it, attack it from them, stop the "
                   "watcher for some seconds, and remove what was made");
}

static void pass_on(const struct context *context, const char *phases, struct argv *arguments)
{
    static const char *const texts[] = {"claim", "damage", "template", NULL};

    argv_push_format(arguments, "--phase=%s", phases);
    for (size_t i = 0; texts[i]; i++) {
        const char *value = option_text(&context->options, texts[i]);
        if (value) {
            argv_push_format(arguments, "--%s=%s", texts[i], value);
        }
    }
}

static int write_files(const struct context *context, const json_t *report, struct error *err)
{
    const char *json = option_text(&context->options, "json");
    const char *page = option_text(&context->options, "report");
    CLEANUP(freep) char *text = json_write(report, JSON_INDENT(1));
    CLEANUP(buffer_reset) struct buffer html = {0};

    if (json && fd_write_file(json, text, strlen(text), 0600, err) < 0) {
        return error_wrap(err, "writing the report");
    }
    if (page) {
        page_write(report, &html);
        if (fd_write_file(page, html.data, html.length, 0600, err) < 0) {
            return error_wrap(err, "writing the report");
        }
    }
    return 0;
}

static int drill(struct context *context, const char *phases, json_t **ret_report, struct error *err)
{
    struct drill_options chosen = {
        .phases = phases,
        .claims = option_text(&context->options, "claim"),
        .damage = option_text(&context->options, "damage"),
        .template_name = option_text(&context->options, "template"),
        .container = option_given(&context->options, "container"),
        .mint_budget = (int64_t)option_number(&context->options, "wait", 0) * 1000,
        .keep_boxes = option_given(&context->options, "keep-boxes"),
    };
    CLEANUP(argv_reset) struct argv arguments = {0};
    struct client *client = NULL;
    bool here = option_given(&context->options, "host");

    if (!here && !option_given(&context->options, "lab")) {
        /* A host that carries the stack is what its owner means; elsewhere nothing is touched. */
        here = context_client(context, &client, NULL) == 0 && drill_host_is_set_up(client);
    }
    if (!here) {
        pass_on(context, phases, &arguments);
        return rehearsal_run(&arguments, context->narrator, ret_report, err);
    }
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    if (!drill_host_is_set_up(client)) {
        (void)error_set(err, ERR_STATE, "this host is not set up for boxes");
        return error_remedy(err, "box setup-host, or drill in a lab: box drill --lab");
    }
    return ask(context, err) < 0 ? -1 : drill_run(client, &chosen, context->narrator, ret_report, err);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(json_freep) json_t *report = NULL;
    CLEANUP(freep) char *phases = NULL;
    unsigned counts[4];

    if (option_given(&context->options, "list")) {
        return list_claims(context);
    }
    if (option_given(&context->options, "host") && option_given(&context->options, "lab")) {
        return error_set(err, ERR_USAGE, "--host and --lab exclude each other");
    }
    if (!(phases = read_phases(context, err))) {
        return -1;
    }
    if (geteuid() != 0) {
        (void)error_set(err, ERR_DENIED, "the drill reads the firewall and sends raw frames: it needs root");
        return error_remedy(err, "sudo box drill");
    }
    if (drill(context, phases, &report, err) < 0 || write_files(context, report, err) < 0) {
        return -1;
    }
    CLEANUP(freep)
    char *text = option_given(&context->options, "answers") ? answers_write(report) : answers_summary(report);
    (void)fprintf(context->out, "%s", text);
    drill_counts(report, counts);
    context->status = verdict_exit_status(counts, option_given(&context->options, "strict"));
    return 0;
}

const struct command command_drill = {
    .name = "drill",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "rehearse everything and measure the isolation",
    .help = "Mints real boxes, drives every command, attacks the isolation from inside the\n"
            "boxes and from this host, and removes what it made. Each claim ends as HOLDS,\n"
            "BROKEN, NOT JUDGED (its control failed, or this host lacks something) or\n"
            "SKIPPED; only HOLDS is a pass. Exit status 0: claims were judged and none is\n"
            "broken.\n"
            "\n"
            "On a host that is set up it drills that host, after asking (--yes: without);\n"
            "elsewhere, or with --lab, it brings a lab up and drills in there.\n"
            "\n"
            "    box drill --lab --report drill.html\n"
            "    box drill --host --phase C\n"
            "    box drill --list\n",
    .options = options,
    .flags = CANCELLABLE,
    .run = run,
    .also = "test verify check",
};
