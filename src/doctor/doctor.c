/* One examination of a host, and the repair of what is box's own.
 * A fact that is on its way (a service that restarts, a port that is being armed) is no damage: what the first look
 * finds has to be there at a second one. Not for the looks themselves: look_*.c. */
#include "doctor/doctor.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "doctor/look.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND_LOOK_MS 1200

static void examine(struct client *client, const struct error *failure, const struct doctor_options *options,
                    struct findings *ret_findings)
{
    struct look look = {.client = client, .failure = failure, .options = options};
    struct setup_options setup = {.dns = getenv("BOX_DNS")};
    setup_look(client, &setup, &look.view);
    look_stack(&look);
    look_stack_resolver(&look);
    look_host(&look);
    look_boxes(&look);
    setup_view_reset(&look.view);
    *ret_findings = look.findings;
}

static int examine_twice(struct client *client, const struct error *failure, const struct doctor_options *options,
                         struct narrator *narrator, struct findings *ret_findings, struct error *err)
{
    struct findings findings = {0};
    examine(client, failure, options, &findings);
    if (finding_count(&findings, FINDING_BROKEN) > 0) {
        struct pollfd polled = {.fd = cancel_fd(), .events = POLLIN};
        narrate_progress(narrator, "looking again at what is broken");
        (void)poll(&polled, 1, SECOND_LOOK_MS);
        if (cancel_check(err) < 0) {
            finding_reset(&findings);
            return -1;
        }
        finding_reset(&findings);
        examine(client, failure, options, &findings);
    }
    *ret_findings = findings;
    return 0;
}

static int repair(struct client *client, const struct doctor_options *options, struct narrator *narrator,
                  struct error *err)
{
    CLEANUP(setup_report_reset) struct setup_report report = {0};
    CLEANUP(argv_reset) struct argv drills = {0};
    struct setup_options setup = {.dns = getenv("BOX_DNS"), .fresh_dns = options->pin_dns};
    size_t i;
    const json_t *change;
    if (setup_run(client, &setup, narrator, &report, err) < 0) {
        return error_wrap(err, "cannot repair this host");
    }
    json_array_foreach(report.changes, i, change)
    {
        const char *live = json_text(change, "live"), *want = json_text(change, "want");
        narrate_note(narrator, "repaired %s: %s (%s -> %s)", json_text(change, "object"), json_text(change, "item"),
                     live != NULL ? live : "absent", want != NULL ? want : "absent");
    }
    if (options->leftovers == NULL || options->leftovers(client, &drills, err) < 0 || drills.count == 0) {
        return options->leftovers != NULL && drills.count == 0 && err != NULL && err->code != ERR_NONE ? -1 : 0;
    }
    return options->remove_leftovers(client, narrator, err);
}

int doctor_run(struct client *client, const struct error *failure, const struct doctor_options *options,
               struct narrator *narrator, struct findings *ret_findings, struct error *err)
{
    struct findings findings = {0};
    narrate_step(narrator, "looking at this host");
    if (client != NULL) {
        client_be_patient(client, 5000);
    }
    if (examine_twice(client, failure, options, narrator, &findings, err) < 0) {
        return -1;
    }
    narrate_done(narrator, "looked");
    if ((options->fix && !finding_healthy(&findings)) || options->pin_dns) {
        finding_reset(&findings);
        if (client == NULL) {
            return error_set(err, ERR_NO_DAEMON, "nothing can be repaired while the daemon does not answer");
        }
        client_be_patient(client, 60000);
        if (repair(client, options, narrator, err) < 0 ||
            examine_twice(client, failure, options, narrator, &findings, err) < 0) {
            return -1;
        }
    }
    *ret_findings = findings;
    return 0;
}
