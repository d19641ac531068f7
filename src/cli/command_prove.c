/* `box prove`: one box's isolation, measured, and the receipt.
 * Not for: what is claimed; see src/drill. */
#include "base/fd.h"
#include "base/memory.h"
#include "box/box.h"
#include "cli/command.h"
#include "drill/answers.h"
#include "drill/drill.h"
#include "drill/page.h"
#include "drill/prove.h"
#include "drill/verdict.h"

#include <string.h>

static const struct option_row options[] = {
    {.name = "receipt", .kind = OPTION_TEXT, .value = "FILE", .help = "where the receipt goes (prove-BOX-TIME.json in the current directory)"},
    {.name = "report", .kind = OPTION_TEXT, .value = "FILE", .help = "write it as one HTML page as well"},
    {0},
};

static int write_files(struct context *context, const json_t *report, struct error *err)
{
    const char *page = option_text(&context->options, "report");
    const char *given = option_text(&context->options, "receipt");
    CLEANUP(freep) char *path = given ? xstrdup(given)
                                      : xasprintf("prove-%s-%s.json", context->box->name, json_text(report, "started"));
    CLEANUP(freep) char *text = json_write(report, JSON_INDENT(1));
    CLEANUP(buffer_reset) struct buffer html = {0};

    if (fd_write_file(path, text, strlen(text), 0644, err) < 0) {
        return error_wrap(err, "writing the receipt");
    }
    narrate_note(context->narrator, "receipt: %s", path);
    if (page) {
        page_write(report, &html);
        if (fd_write_file(page, html.data, html.length, 0644, err) < 0) {
            return error_wrap(err, "writing the report");
        }
    }
    return 0;
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(json_freep) json_t *report = NULL;
    struct client *client;
    unsigned counts[4];

    if (context_client(context, &client, err) < 0 ||
        prove_run(client, context->box->name, context->narrator, &report, err) < 0 ||
        write_files(context, report, err) < 0) {
        return -1;
    }
    if (context->json) {
        context_print_json(context, report);
    } else {
        CLEANUP(freep) char *text = answers_summary(report);
        (void)fprintf(context->out, "%s", text);
    }
    drill_counts(report, counts);
    context->status = verdict_exit_status(counts, false);
    return 0;
}

const struct command command_prove = {
    .name = "prove",
    .section = SECTION_HOST,
    .arguments = "BOX",
    .summary = "measure the isolation of one running box, and write a receipt",
    .help = "Attacks the isolation from inside the box, within ten seconds. The box keeps\n"
            "running; the instrument is put in and taken out again, and no other box is\n"
            "touched. The receipt holds the time, the box, the versions, a digest of the\n"
            "walls, and every claim with its evidence. Exit status 0: claims were judged\n"
            "and none is broken.\n"
            "\n"
            "What needs a second box, or disturbs, is measured by the drill alone.\n",
    .options = options,
    .flags = NEEDS_ROOT | NEEDS_BOX | NEEDS_RUNNING | TAKES_JSON | CANCELLABLE,
    .run = run,
};
