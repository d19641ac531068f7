/* `box doctor`: is this host fit to mint boxes, and is its isolation live?
 * Not for what is looked at: src/doctor. */
#include "base/memory.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "doctor/doctor.h"
#include "drill/crew.h"
#include "incus/client.h"

#include <unistd.h>

static void print_json(struct context *context, const struct findings *findings)
{
    json_t *array = json_array();
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s?}", "check", finding->check, "finding",
                                                     finding_word(finding->kind), "text", finding->text, "fix",
                                                     finding->kind == FINDING_OK ? NULL : finding->fix));
    }
    CLEANUP(json_freep)
    json_t *value = json_pack("{s:b, s:o}", "healthy", finding_healthy(findings), "findings", array);
    context_print_json(context, value);
}

static void print_findings(struct context *context, const struct findings *findings)
{
    CLEANUP(listing_reset) struct listing table = {0};
    listing_row(&table, "CHECK", "FINDING", "WHAT WAS SEEN", NULL);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        listing_row(&table, finding->check, finding_word(finding->kind), finding->text, NULL);
    }
    listing_print(&table, context->out);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->kind != FINDING_OK && finding->fix != NULL) {
            (void)fprintf(context->out, "%s: %s\n", finding->check, finding->fix);
        }
    }
}

static void conclude(struct context *context, const struct findings *findings)
{
    size_t broken = finding_count(findings, FINDING_BROKEN), missing = finding_count(findings, FINDING_NOT_SET_UP);
    size_t unseen = finding_count(findings, FINDING_UNSEEN);
    if (unseen > 0) {
        narrate_warn(context->narrator, "%zu could not be seen%s", unseen,
                     geteuid() != 0 ? ": sudo box doctor sees more" : "");
    }
    if (broken > 0) {
        narrate_warn(context->narrator, "%zu broken: box doctor --fix repairs what is box's", broken);
    } else if (missing > 0) {
        narrate_note(context->narrator, "this host is not set up for boxes: sudo box setup-host");
    } else {
        narrate_note(context->narrator, "this host is healthy%s", unseen > 0 ? ", as far as can be seen" : "");
    }
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(finding_reset) struct findings findings = {0};
    CLEANUP(error_reset) struct error failure = {0};
    struct client *client = NULL;
    struct doctor_options options = {
        .fix = option_given(&context->options, "fix"),
        .pin_dns = option_given(&context->options, "pin-dns"),
        .leftovers = crew_leftovers,
        .remove_leftovers = crew_remove,
    };
    if ((options.fix || options.pin_dns) && geteuid() != 0) {
        (void)error_set(err, ERR_DENIED, "only root can repair a host");
        return error_remedy(err, "sudo box doctor --fix");
    }
    (void)context_client(context, &client, &failure);
    if (doctor_run(client, &failure, &options, context->narrator, &findings, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, &findings);
    } else {
        print_findings(context, &findings);
        conclude(context, &findings);
    }
    context->status = finding_healthy(&findings) ? 0 : 1;
    return 0;
}

static const struct option_row options[] = {
    {.name = "fix", .kind = OPTION_FLAG, .help = "repair what is box's, then look again"},
    {.name = "pin-dns",
     .kind = OPTION_FLAG,
     .help = "pin boxes to the resolvers of BOX_DNS, or the usual ones, whatever they are pinned to"},
    {0},
};

const struct command command_doctor = {
    .name = "doctor",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "judge this host from the kernel, the daemon and the boxes; repair what is box's",
    .help = "Four findings: ok; broken, with the one command that repairs it; not set up,\n"
            "which is no damage; not seen, for want of root or of a daemon. Exit status 1\n"
            "where something is broken or not set up. What may only be on its way is looked\n"
            "at twice.\n"
            "\n"
            "--fix converges the stack as setup-host does, removes what an aborted drill\n"
            "left, says what it changed, and looks again. It touches no box and nothing\n"
            "that is somebody else's.\n",
    .options = options,
    .flags = TAKES_JSON | CANCELLABLE,
    .run = run,
    .also = "check diagnose status",
};
