/* `box templates check`: judges one template before anybody mints from it.
 * Not for how (box/templatecheck.c), nor for a mint, which judges what came of it. */
#include "base/memory.h"
#include "base/text.h"
#include "box/templatecheck.h"
#include "cli/command.h"
#include "cli/listing.h"

#include <string.h>

static size_t count(const struct templatecheck *check, enum templatecheck_verdict verdict)
{
    size_t found = 0;

    for (size_t row = 0; row < TEMPLATECHECK_ROWS; row++) {
        found += check->rows[row].verdict == verdict;
    }
    return found;
}

/* What a file says may be no UTF-8, and is nothing for a terminal. */
static char *clean(const char *text)
{
    return text_sanitise(text, strlen(text));
}

static void print_json(struct context *context, const struct templatecheck *check)
{
    CLEANUP(freep) char *name = clean(check->name);
    json_t *rows = json_array();

    for (size_t i = 0; i < TEMPLATECHECK_ROWS; i++) {
        CLEANUP(freep) char *detail = clean(check->rows[i].detail);

        (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:s}", "check", check->rows[i].what, "verdict",
                                                    templatecheck_name(check->rows[i].verdict), "detail", detail));
    }
    CLEANUP(json_freep)
    json_t *object = json_pack("{s:s, s:i, s:i, s:o}", "name", name, "faults", (int)count(check, TEMPLATECHECK_FAULT),
                               "not_judged", (int)count(check, TEMPLATECHECK_NOT_JUDGED), "checks", rows);

    context_print_json(context, object);
}

static void print_table(struct context *context, const struct templatecheck *check)
{
    CLEANUP(listing_reset) struct listing table = {0};

    listing_row(&table, "CHECK", "VERDICT", "DETAIL", NULL);
    for (size_t i = 0; i < TEMPLATECHECK_ROWS; i++) {
        listing_row(&table, check->rows[i].what, templatecheck_name(check->rows[i].verdict), check->rows[i].detail,
                    NULL);
    }
    listing_print(&table, context->out);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(templatecheck_reset) struct templatecheck check = {0};
    struct client *client = NULL;

    (void)context_client(context, &client, NULL); /* without a daemon, the files alone are judged */
    if (templatecheck_run(client, context_argument(context, 0), context->narrator, &check, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, &check);
    } else {
        print_table(context, &check);
    }
    (void)fflush(context->out);
    size_t faults = count(&check, TEMPLATECHECK_FAULT), open = count(&check, TEMPLATECHECK_NOT_JUDGED);

    if (open > 0 && faults == 0) {
        narrate_warn(context->narrator, "%zu of %d were not judged", open, TEMPLATECHECK_ROWS);
    }
    if (faults > 0) {
        error_set(err, ERR_STATE, "the template %s cannot be used: %zu of its checks failed", check.name, faults);
        return error_remedy(err, "box help templates");
    }
    return 0;
}

const struct command command_templates_check = {
    .name = "templates check",
    .section = SECTION_IMAGES,
    .arguments = "DIR",
    .summary = "judge a template before anybody mints from it",
    .help = "Each file by itself: kinds, sizes, bytes, keys and values. Then, in a box\n"
            "that is made from its image for that and removed again: whether cloud-init's\n"
            "own schema takes user-data.yaml (no unknown key among others), whether that\n"
            "makes the user of box.env, whether the image has the interpreter of\n"
            "converge.sh, and whether the shell can read that. Files that are none of a\n"
            "template are named; one whose name is nearly right is a fault.\n"
            "\n"
            "What cannot be judged here, for want of a daemon or of the image, is said to\n"
            "be not judged. Exit status 1 where a check failed.\n",
    .flags = TAKES_JSON | CANCELLABLE,
    .run = run,
    .also = "lint validate",
};
