/* Moving a box of the older generation onto boxnet: note, stop, move, start, verify, and back where that fails.
 * Not for what changes in its configuration (rehome.c), nor for removing the older stack (src/stack/dismantle.c). */
#include "box/migrate.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/busy.h"
#include "box/contract.h"
#include "box/power.h"
#include "box/ready.h"
#include "box/rehome.h"
#include "box/tag.h"
#include "incus/exec.h"
#include "incus/instance.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <poll.h>
#include <string.h>

#define PUT_BUDGET    60000  /* milliseconds */
#define START_BUDGET  120000 /* milliseconds: on a slow disk a VM takes a while */
#define READY_BUDGET  180000 /* milliseconds for a boot; it is none of the first */
#define LEASE_BUDGET  30000  /* milliseconds */
#define VM_BUDGET     180000 /* milliseconds for a VM to boot as far as its agent */
#define LEASE_PAUSE   200
#define EGRESS_BUDGET 20000
#define BACK_GRACE    10 /* seconds for the shutdown of a box that goes back */
#define NO_TOOL       44 /* exit status: the guest has nothing to connect with */

/* $1: an address of the internet. What names resolve to is not asked: that was looked at before. */
static const char egress_script[] =
    "PATH=$PATH:/usr/sbin:/sbin:/bin\n"
    "if command -v bash >/dev/null; then exec timeout 8 bash -c \": </dev/tcp/$1/53\"; fi\n"
    "if command -v nc >/dev/null; then exec nc -w 8 \"$1\" 53 </dev/null >/dev/null; fi\n"
    "exit 44\n";

struct move {
    struct client *client;
    struct narrator *narrator;
    const char *name;
    unsigned grace;
    bool ran;
};

enum migrate_stage migrate_stage_of(const struct box *box)
{
    CLEANUP(argv_reset) struct argv deviations = {0};

    if (rehome_is_under_way(box->instance)) {
        return MIGRATE_BEGUN;
    }
    if (rehome_is_older(box->instance)) {
        return MIGRATE_OLDER;
    }
    contract_check(box->instance, &deviations);
    return deviations.count == 0 ? MIGRATE_DONE : MIGRATE_FOREIGN;
}

bool migrate_interrupts(const struct box *box)
{
    enum migrate_stage stage = migrate_stage_of(box);

    return (stage == MIGRATE_OLDER || stage == MIGRATE_BEGUN) && !text_equal(box->status, "Stopped");
}

int migrate_check_host(struct client *client, struct error *err)
{
    static const char *const paths[] = {"/1.0/networks/" STACK_NETWORK, "/1.0/profiles/" STACK_PROFILE};

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        CLEANUP(json_freep) json_t *object = NULL;
        CLEANUP(error_reset) struct error cause = {0};

        if (client_get(client, paths[i], &object, &cause) == 0) {
            continue;
        }
        if (cause.code != ERR_NOT_FOUND) {
            return error_move(err, &cause);
        }
        error_set(err, ERR_STATE, "this host has no " STACK_NETWORK " yet to move boxes to");
        return error_remedy(err, "sudo box setup-host");
    }
    if (!arm_watcher_runs()) {
        error_set(err, ERR_STATE, "no watcher runs: a box on " STACK_NETWORK " would have no network");
        return error_remedy(err, "sudo box setup-host");
    }
    return 0;
}

static int set_note(const struct move *move, json_t *body, struct error *err)
{
    CLEANUP(json_freep) json_t *owned = body;

    return instance_patch(move->client, move->name, owned, err);
}

/* Not power_start(): that one is for boxes on boxnet, and this may be one that goes back. */
static int start_again(const struct move *move, struct error *err)
{
    int64_t deadline = clock_deadline(BUSY_BUDGET_MS);

    while (true) {
        CLEANUP(error_reset) struct error refusal = {0};
        CLEANUP(json_freep) json_t *instance = NULL;

        if (instance_change_state(move->client, move->name, "start", -1, false, START_BUDGET, move->narrator,
                                  &refusal) == 0 ||
            (instance_get(move->client, move->name, &instance, NULL) == 0 &&
             text_equal(json_text(instance, "status"), "Running"))) {
            return 0;
        }
        if (busy_wait_to_retry(move->client, move->name, deadline, move->narrator, &refusal, err) < 0) {
            return -1;
        }
    }
}

static int stop(const struct move *move, unsigned grace, struct error *err)
{
    CLEANUP(box_freep) struct box *box = NULL;
    bool stopped;

    return box_find(move->client, move->name, &box, err) < 0 ||
                   power_down(move->client, box, grace, move->narrator, &stopped, err) < 0
               ? -1
               : 0;
}

/* Going back ------------------------------------------------------------------------------------------------------ */

static int put_back(const struct move *move, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(freep) char *etag = NULL;

    if (instance_get_tagged(move->client, move->name, &instance, &etag, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *body = rehome_undo_body(instance);

    /* Without: it was not moved yet, or is back already. */
    return body ? instance_put(move->client, move->name, etag, body, PUT_BUDGET, err) : 0;
}

static int roll_back(const struct move *move, struct error *err)
{
    if (busy_wait(move->client, move->name, err) < 0 || stop(move, move->grace < BACK_GRACE ? move->grace : BACK_GRACE, err) < 0 ||
        put_back(move, err) < 0 ||
        (move->ran && start_again(move, err) < 0)) {
        return -1;
    }
    return set_note(move, rehome_end_body(), err);
}

/* Whatever was interrupted, going back must work. */
static bool give_up(const struct move *move, struct error *cause)
{
    CLEANUP(error_reset) struct error failure = {0};

    cancel_mask(true);
    narrate_warn(move->narrator, "%s; putting it back where it was", cause->message);
    int result = roll_back(move, &failure);

    if (result == 0) {
        narrate_note(move->narrator, "%s is on the older network again%s", move->name, move->ran ? ", and runs" : "");
    } else {
        narrate_warn(move->narrator, "%s could not be put back: %s", move->name, failure.message);
        (void)error_remedy(cause, "box migrate-host --box %s (it goes on where this stopped)", move->name);
    }
    cancel_mask(false);
    return result == 0;
}

/* Moving ---------------------------------------------------------------------------------------------------------- */

/* The daemon's object and the body that moves it; refusals, before anything is touched. */
static int plan(const struct move *move, json_t **ret_body, char **ret_etag, struct argv *left, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(json_freep) json_t *profile = NULL;
    CLEANUP(freep) char *etag = NULL;
    CLEANUP(argv_reset) struct argv refused = {0};

    if (instance_get_tagged(move->client, move->name, &instance, &etag, err) < 0 ||
        client_get(move->client, "/1.0/profiles/" STACK_PROFILE, &profile, err) < 0) {
        return -1;
    }
    json_t *body = rehome_body(instance, profile, move->ran, left, &refused);

    if (!body) {
        CLEANUP(freep) char *list = argv_join(&refused, "; ");

        error_set(err, ERR_CONTRACT, "the box %s has what no box on " STACK_NETWORK " may have: %s", move->name, list);
        return error_remedy(err, "take that away, then move it: box incus %s -- ...", move->name);
    }
    *ret_body = body;
    *ret_etag = steal(&etag);
    return 0;
}

static int check_movable(const struct move *move, const struct box *box, struct error *err)
{
    CLEANUP(json_freep) json_t *body = NULL;
    CLEANUP(freep) char *etag = NULL;
    CLEANUP(argv_reset) struct argv left = {0};

    if (!box->running && !text_equal(box->status, "Stopped")) {
        error_set(err, ERR_STATE, "the box %s is neither running nor stopped: %s", box->name, box->status);
        return error_remedy(err, "box down %s", box->name);
    }
    return plan(move, &body, &etag, &left, err);
}

static int put_onto_boxnet(const struct move *move, struct error *err)
{
    CLEANUP(json_freep) json_t *body = NULL;
    CLEANUP(freep) char *etag = NULL;
    CLEANUP(argv_reset) struct argv left = {0};

    narrate_step(move->narrator, "moving the box %s onto " STACK_NETWORK, move->name);
    if (plan(move, &body, &etag, &left, err) < 0 ||
        instance_put(move->client, move->name, etag, body, PUT_BUDGET, err) < 0) {
        return error_wrap(err, "moving the box %s", move->name);
    }
    for (size_t i = 0; i < left.count; i++) {
        narrate_warn(move->narrator, "left behind, off the contract: %s", left.items[i]);
    }
    narrate_done(move->narrator, "%s", "");
    return 0;
}

/* Up to the move itself; each piece is passed over where an earlier run has done it. */
static int leave_older(const struct move *move, const struct box *box, struct error *err)
{
    if (!rehome_is_older(box->instance)) {
        return 0;
    }
    if (!rehome_is_under_way(box->instance) && set_note(move, rehome_note_body(move->ran), err) < 0) {
        return error_wrap(err, "noting that the box %s moves", move->name);
    }
    return stop(move, move->grace, err) < 0 || put_onto_boxnet(move, err) < 0 ? -1 : 0;
}

/* Verifying ------------------------------------------------------------------------------------------------------- */

/* 1: it has an address, and can be asked; 0: not yet. A VM's agent comes up some way into the boot. */
static int answers(const struct move *move, struct box *box, struct error *err)
{
    CLEANUP(json_freep) json_t *state = NULL;

    if (box_find_address(move->client, box, err) < 0 ||
        (box->vm && instance_state(move->client, move->name, &state, err) < 0)) {
        return -1;
    }
    return box->ipv4 && (!box->vm || json_number(state, "processes", -1) > 0);
}

static int wait_for_answers(const struct move *move, struct box *box, struct error *err)
{
    int64_t deadline = clock_deadline(box->vm ? VM_BUDGET : LEASE_BUDGET);

    while (true) {
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};
        int found = answers(move, box, err);

        if (found != 0) {
            return found < 0 ? -1 : 0;
        }
        if (clock_left(deadline) == 0) {
            return error_set(err, ERR_STATE,
                             box->ipv4 ? "its agent does not answer" : "it got no address from " STACK_NETWORK);
        }
        (void)poll(&cancel, 1, LEASE_PAUSE);
        narrate_tick(move->narrator);
        if (cancel_check(err) < 0) {
            return -1;
        }
    }
}

/* The first resolver that boxnet is pinned to. The caller frees. */
static char *resolver_of(struct client *client)
{
    static const char key[] = "server=";
    CLEANUP(json_freep) json_t *network = NULL;

    if (client_get(client, "/1.0/networks/" STACK_NETWORK, &network, NULL) == 0) {
        const char *lines = json_text(json_object_get(network, "config"), "raw.dnsmasq");
        const char *found = lines ? strstr(lines, key) : NULL;

        if (found) {
            found += sizeof(key) - 1;
            return xstrndup(found, strcspn(found, "\n"));
        }
    }
    return xstrdup("1.1.1.1");
}

static int check_egress(const struct move *move, struct error *err)
{
    CLEANUP(freep) char *resolver = resolver_of(move->client);
    const char *const command[] = {"/bin/sh", "-c", egress_script, "sh", resolver, NULL};
    struct exec_request request = {.instance = move->name,
                                   .command = command,
                                   .input = -1,
                                   .output = -1,
                                   .errors = -1,
                                   .budget = EGRESS_BUDGET,
                                   .narrator = move->narrator};
    int status = 0;

    if (exec_run(move->client, &request, &status, err) < 0) {
        return -1;
    }
    return status == 0 || status == NO_TOOL ? 0 : error_set(err, ERR_STATE, "it does not reach the internet");
}

/* 1: a person can use it; 0: not, and `*ret_reason` says why. `*ret_hopeless`: waiting changes nothing. */
static int ask_guest(const struct move *move, const struct box *box, bool *ret_hopeless, char **ret_reason,
                     struct error *err)
{
    CLEANUP(ready_reset) struct ready_report report = {0};
    struct ready_user found = {0};
    const char *user = box->user ? box->user : "root";

    if (ready_collect(move->client, move->name, user, READY_BUDGET, move->narrator, &report, err) < 0 ||
        cancel_check(err) < 0) {
        return -1;
    }
    bool usable = ready_usable(&report, user, &found, ret_reason);

    free(found.home);
    *ret_hopeless = !text_equal(report.lands, user);
    return usable;
}

/* The lease that was seen may be one of before: its network may still be coming up. */
static int check_guest(const struct move *move, const struct box *box, struct error *err)
{
    int64_t deadline = clock_deadline(LEASE_BUDGET);

    while (true) {
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};
        CLEANUP(freep) char *reason = NULL;
        bool hopeless = false;
        int usable = ask_guest(move, box, &hopeless, &reason, err);

        if (usable != 0) {
            return usable < 0 ? -1 : 0;
        }
        if (hopeless || clock_left(deadline) == 0) {
            return error_set(err, ERR_STATE, "%s", reason);
        }
        (void)poll(&cancel, 1, LEASE_PAUSE);
    }
}

/* Starts it (power_start judges the contract as the daemon has it now, and waits until it is armed) and asks it. */
static int verify(const struct move *move, struct box **ret_box, struct error *err)
{
    CLEANUP(box_freep) struct box *before = NULL;
    CLEANUP(box_freep) struct box *box = NULL;
    bool started;

    if (box_find(move->client, move->name, &before, err) < 0 ||
        power_start(move->client, before, move->narrator, &started, err) < 0 ||
        box_find(move->client, move->name, &box, err) < 0) {
        return -1;
    }
    narrate_step(move->narrator, "verifying %s on its new leg", move->name);
    if (wait_for_answers(move, box, err) < 0 || check_guest(move, box, err) < 0 || check_egress(move, err) < 0) {
        return error_wrap(err, "the box %s on " STACK_NETWORK, move->name);
    }
    narrate_done(move->narrator, "%s; it resolves names and reaches the internet", box->ipv4);
    *ret_box = steal(&box);
    return 0;
}

static int finish(const struct move *move, struct error *err)
{
    if (!move->ran) {
        narrate_note(move->narrator, "%s was stopped before, and is again", move->name);
        if (stop(move, move->grace, err) < 0) {
            return -1;
        }
    }
    return set_note(move, rehome_end_body(), err);
}

static int move(struct move *move, const struct box *box, bool *ret_rolled_back, struct box **ret_box,
                struct error *err)
{
    CLEANUP(box_freep) struct box *moved = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    move->ran = rehome_is_under_way(box->instance) ? rehome_ran(box->instance) : box->running;
    /* Of a move that began, what stands in the way now is no reason to leave it half-way. */
    if (!rehome_is_under_way(box->instance) && check_movable(move, box, err) < 0) {
        return -1;
    }
    if (leave_older(move, box, &cause) < 0 || verify(move, &moved, &cause) < 0) {
        *ret_rolled_back = give_up(move, &cause);
        return error_move(err, &cause);
    }
    if (finish(move, err) < 0) {
        return error_remedy(err, "box migrate-host --box %s (it is moved and verified; this ends it)", move->name);
    }
    if (ret_box) {
        *ret_box = steal(&moved);
    }
    return 0;
}

int migrate_run(struct client *client, const char *name, unsigned grace, struct narrator *narrator,
                struct box **ret_box, bool *ret_rolled_back, struct error *err)
{
    struct move made = {.client = client, .narrator = narrator, .name = name, .grace = grace};
    CLEANUP(box_freep) struct box *box = NULL;

    *ret_rolled_back = false;
    /* The daemon may still be at what a killed run asked of it. */
    if (busy_wait(client, name, err) < 0 || box_find(client, name, &box, err) < 0) {
        return -1;
    }
    return move(&made, box, ret_rolled_back, ret_box, err);
}
