/* Starting and stopping a box, with the contract before and the walls after.
 * Not for creating one (mint.c): its first start is part of the mint. */
#include "box/power.h"

#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/rehome.h"
#include "box/tag.h"
#include "incus/instance.h"
#include "stack/arm.h"
#include "stack/names.h"

#define START_BUDGET 120000 /* milliseconds: on a slow disk a VM takes a while until the daemon says that it runs */
#define FORCE_BUDGET 60000  /* milliseconds for a kill */

int power_wait_armed(struct client *client, const char *name, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_get(client, name, &instance, err) < 0) {
        return -1;
    }
    const char *interface = tag_value(instance, "volatile." STACK_NIC ".host_name");

    if (!interface) {
        return error_set(err, ERR_STATE, "the daemon has made no port on " STACK_NETWORK " for it");
    }
    return arm_wait(interface, tag_value(instance, "volatile." STACK_NIC ".hwaddr"), POWER_ARM_BUDGET, err);
}

/* Brings it to run; says whether anything had to be done. */
static int start(struct client *client, const struct box *box, struct narrator *narrator, bool *ret_started,
                 struct error *err)
{
    *ret_started = !box->running;
    if (box->running) {
        return 0;
    }
    bool frozen = text_equal(box->status, "Frozen");

    narrate_step(narrator, frozen ? "thawing the box %s" : "starting the box %s", box->name);
    if (instance_change_state(client, box->name, frozen ? "unfreeze" : "start", -1, false, START_BUDGET, narrator,
                              err) < 0) {
        return error_wrap(err, "starting the box %s", box->name);
    }
    narrate_done(narrator, "it runs");
    return 0;
}

static int require_contract(const struct box *box, struct error *err)
{
    CLEANUP(argv_reset) struct argv deviations = {0};

    contract_check(box->instance, &deviations);
    if (deviations.count == 0) {
        return 0;
    }
    CLEANUP(freep) char *list = argv_join(&deviations, "; ");
    error_set(err, ERR_CONTRACT, "the box %s is off its isolation contract: %s", box->name, list);
    if (rehome_is_older(box->instance)) {
        return error_remedy(err, "sudo box migrate-host --box %s", box->name);
    }
    return error_remedy(err, "see: box info %s; take it back through the hatch: box incus %s -- ...", box->name,
                        box->name);
}

int power_start(struct client *client, const struct box *box, struct narrator *narrator, bool *ret_started,
                struct error *err)
{
    bool started = false;

    if (require_contract(box, err) < 0) {
        return -1;
    }
    if (box->state) {
        narrate_warn(narrator, "the box %s is incomplete (%s): its set-up did not end", box->name,
                     box->reason ? box->reason : box->state);
    }
    if (start(client, box, narrator, &started, err) < 0) {
        return -1;
    }
    narrate_step(narrator, "waiting for its port to be armed");
    if (power_wait_armed(client, box->name, err) < 0) {
        return error_wrap(err, "the box %s runs, but it has no network", box->name);
    }
    narrate_done(narrator, "armed");
    *ret_started = started;
    return 0;
}

static int force_down(struct client *client, const char *name, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    narrate_step(narrator, "forcing the box %s down", name);
    if (instance_change_state(client, name, "stop", 0, true, FORCE_BUDGET, narrator, &cause) < 0) {
        /* It may have gone down in between, or been removed: that is what was asked for. */
        bool interrupted = cause.code == ERR_INTERRUPTED || cause.code == ERR_NO_DAEMON;

        if (interrupted || cause.code == ERR_NOT_FOUND || instance_get(client, name, &instance, NULL) < 0 ||
            !text_equal(json_text(instance, "status"), "Stopped")) {
            error_wrap(&cause, "forcing the box %s down", name);
            return error_move(err, &cause);
        }
    }
    narrate_done(narrator, "it is down");
    return 0;
}

/* Asks the guest. 1: it went down; 0: it did not, in its time; -1: interrupted, or nobody to ask. */
static int ask_down(struct client *client, const struct box *box, unsigned grace, struct narrator *narrator,
                    struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    int64_t budget = (int64_t)grace * 1000 + FORCE_BUDGET;

    narrate_step(narrator, "asking the box %s to shut down (it has %u s)", box->name, grace);
    if (instance_change_state(client, box->name, "stop", (int)grace, false, budget, narrator, &cause) == 0) {
        narrate_done(narrator, "it is down");
        return 1;
    }
    if (cause.code != ERR_REFUSED_BY_INCUS && cause.code != ERR_TIMEOUT) {
        error_wrap(&cause, "shutting the box %s down", box->name);
        return error_move(err, &cause);
    }
    narrate_done(narrator, "it did not");
    return 0;
}

int power_down(struct client *client, const struct box *box, unsigned grace, struct narrator *narrator,
               bool *ret_stopped, struct error *err)
{
    int asked = 0;

    if (text_equal(box->status, "Stopped")) {
        *ret_stopped = false;
        return 0;
    }
    if (text_equal(box->status, "Frozen")) { /* frozen, it would hear nothing */
        if (instance_change_state(client, box->name, "unfreeze", -1, false, FORCE_BUDGET, narrator, err) < 0) {
            return error_wrap(err, "thawing the box %s", box->name);
        }
    }
    if (grace > 0) {
        asked = ask_down(client, box, grace, narrator, err);
        if (asked < 0) {
            return -1;
        }
    }
    if (asked == 0 && force_down(client, box->name, narrator, err) < 0) {
        return -1;
    }
    *ret_stopped = true;
    return 0;
}
