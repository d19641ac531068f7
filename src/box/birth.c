/* From the creating request to a usable box: start, first boot, verdict, and the cleanup behind itself.
 * Not for what is created: mint.c and clone.c; nor for judging a guest: ready.c. */
#include "box/birth.h"

#include "base/argv.h"
#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/busy.h"
#include "box/converge.h"
#include "box/identity.h"
#include "box/power.h"
#include "box/remove.h"
#include "box/tag.h"
#include "box/vmconsole.h"
#include "incus/instance.h"
#include "stack/names.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define START_BUDGET_MS 60000
#define TAKEN_BUDGET_MS 20000
#define AGENT_BUDGET_MS (3 * 60 * 1000)
#define AGENT_SHARE     4
#define YOUNG_S         (15 * 60) /* a mint of the default budget has ended by then */

int birth_begin(struct birth *birth, struct error *err)
{
    unsigned char bytes[BIRTH_ID_SIZE / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return error_set_errno(err, errno, "cannot get random bytes");
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        static const char digits[] = "0123456789abcdef";

        birth->id[2 * i] = digits[bytes[i] >> 4];
        birth->id[2 * i + 1] = digits[bytes[i] & 15];
    }
    return 0;
}

/* True where another mint of it most likely runs: nothing but its age tells that from one that was killed. */
static bool may_be_minted(const json_t *instance)
{
    int64_t created = 0;
    const int64_t now = (int64_t)time(NULL);

    return text_equal(tag_value(instance, TAG_STATE), TAG_STATE_MINTING) &&
           clock_parse(tag_value(instance, TAG_CREATED), &created) && now - created < YOUNG_S;
}

static int refuse_taken(const char *name, const json_t *instance, struct error *err)
{
    const char *state = tag_value(instance, TAG_STATE);

    if (!tag_is_box(instance)) {
        error_set(err, ERR_EXISTS, "the name %s is taken by an instance of Incus that is no box", name);
        return error_remedy(err, "choose another name");
    }
    if (may_be_minted(instance)) {
        error_set(err, ERR_EXISTS, "there is a box %s already: it is being minted right now, or its mint was killed", name);
        return error_remedy(err, "choose another name; where no mint of it runs any more: box rm %s", name);
    }
    if (state) {
        error_set(err, ERR_EXISTS, "there is a box %s already, and it is incomplete (%s)", name, state);
        return error_remedy(err, "box rm %s, then mint it anew", name);
    }
    error_set(err, ERR_EXISTS, "there is a box %s already", name);
    return error_remedy(err, "box shell %s, or choose another name", name);
}

int birth_check_free(struct birth *birth, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (instance_get(birth->client, birth->name, &instance, &cause) == 0) {
        return refuse_taken(birth->name, instance, err);
    }
    return cause.code == ERR_NOT_FOUND ? 0 : error_move(err, &cause);
}

/* A mint that was refused may have been beaten to the name: then what is there is another's. */
static bool lost_the_name(struct birth *birth, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_get(birth->client, birth->name, &instance, NULL) < 0 ||
        text_equal(tag_value(instance, TAG_MINT), birth->id)) {
        return false;
    }
    refuse_taken(birth->name, instance, err);
    return true;
}

/* Another `new` of the name that comes too late holds the daemon's lock on it until it is refused: a start that falls
 * into that moment is refused too. */
static int request_start(struct birth *birth, struct error *err)
{
    int64_t deadline = clock_deadline(TAKEN_BUDGET_MS);

    while (true) {
        CLEANUP(error_reset) struct error refusal = {0};

        if (instance_change_state(birth->client, birth->name, "start", -1, false, START_BUDGET_MS, birth->narrator,
                                  &refusal) == 0) {
            return 0;
        }
        if (busy_wait_to_retry(birth->client, birth->name, deadline, birth->narrator, &refusal, err) < 0) {
            return -1;
        }
    }
}

static int start(struct birth *birth, struct error *err)
{
    const char *name = birth->name;

    narrate_step(birth->narrator, "starting it");
    if (request_start(birth, err) < 0) {
        return error_wrap(err, "cannot start %s", name);
    }
    if (power_wait_armed(birth->client, name, err) < 0) {
        return error_wrap(err, "%s started, but the walls do not let it speak", name);
    }
    narrate_done(birth->narrator, "it may speak");
    return 0;
}

/* Why it is silent, as far as its console tells. */
static int tell_silence(const struct birth *birth, int64_t waited, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(vmconsole_reset) struct vmconsole_verdict verdict = {0};

    (void)instance_console(birth->client, birth->name, &text, NULL);
    vmconsole_judge(text.data ? text.data : "", text.length, &verdict);
    error_set(err, ERR_TIMEOUT, "the guest does not answer after %lld s: %s%s%s%s", (long long)(waited / 1000),
              verdict.cause, verdict.last ? " (last on its console: \"" : "", verdict.last ? verdict.last : "",
              verdict.last ? "\")" : "");
    return verdict.remedy ? error_remedy(err, "%s", verdict.remedy) : -1;
}

/* A VM's agent comes up some way into the boot; nothing tells when. A container can be entered at once. */
static int wait_for_agent(struct birth *birth, struct error *err)
{
    /* Whoever waits longer for the whole has a slower machine, and waits longer for the agent. */
    const int64_t budget =
        birth->budget / AGENT_SHARE > AGENT_BUDGET_MS ? birth->budget / AGENT_SHARE : AGENT_BUDGET_MS;
    const int64_t deadline = clock_deadline(budget);

    while (birth->vm) {
        CLEANUP(json_freep) json_t *state = NULL;
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};

        if (cancel_check(err) < 0 || instance_state(birth->client, birth->name, &state, err) < 0) {
            return -1;
        }
        if (json_number(state, "processes", -1) > 0) {
            break;
        }
        if (clock_left(deadline) == 0) {
            return tell_silence(birth, budget, err);
        }
        (void)poll(&cancel, 1, NARRATE_TICK_MS);
        narrate_tick(birth->narrator);
    }
    return 0;
}

/* What the guest's kernel knows of its limits is the fact; what the daemon accepted was a claim. */
static void tell_limits(const struct birth *birth, const struct ready_report *report)
{
    const struct limits *limits = birth->limits;
    bool memory = limits->memory && (text_is_empty(report->memory) || text_equal(report->memory, "max"));
    bool cpu = limits->cpu && text_is_empty(report->cpus);

    if (!birth->vm && (memory || cpu)) {
        narrate_warn(birth->narrator,
                     "this host cannot enforce %s%s%s: its kernel hands no such cgroup controller down",
                     memory ? "limits.memory" : "", memory && cpu ? " and " : "", cpu ? "limits.cpu" : "");
    }
}

/* What went wrong in the guest: kept as the box's reason, and as the error. */
static int fail_guest(struct error *err, char *reason)
{
    CLEANUP(freep) char *owned = reason;

    return error_set(err, ERR_STATE, "%s", owned);
}

static void show_log(const struct birth *birth, const struct ready_report *report)
{
    CLEANUP(freep) char *log = text_sanitise(report->log, strlen(report->log));

    for (char *line = log, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        narrate_warn(birth->narrator, "  its log: %s", line + strspn(line, " "));
    }
}

static int judge(struct birth *birth, const struct ready_report *report, struct error *err)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    char *reason = NULL;

    if (birth->lenient) {
        if (!ready_usable(report, birth->user, &birth->found, &reason)) {
            narrate_warn(birth->narrator, "%s runs, but %s", birth->name, reason);
            free(reason);
        }
        return 0;
    }
    if (!ready_cloud_applied(report, &warnings, &reason) ||
        !ready_usable(report, birth->user, &birth->found, &reason)) {
        show_log(birth, report);
        return fail_guest(err, reason);
    }
    for (size_t i = 0; i < warnings.count; i++) {
        narrate_warn(birth->narrator, "a warning of its first boot: %s", warnings.items[i]);
    }
    tell_limits(birth, report);
    return 0;
}

static int renew_identity(struct birth *birth, struct error *err)
{
    narrate_note(birth->narrator, "a VM's disk cannot be changed from outside: it takes on its own identity now and "
                                  "boots a second time");
    if (identity_renew_running(birth->client, birth->name, birth->narrator, err) < 0) {
        return -1;
    }
    return wait_for_agent(birth, err);
}

static int wait_until_usable(struct birth *birth, struct error *err)
{
    CLEANUP(ready_reset) struct ready_report report = {0};
    CLEANUP(error_reset) struct error cause = {0};

    if (!birth->lenient) {
        narrate_note(birth->narrator, "to watch it: incus exec %s -- tail -n +1 -F /var/log/cloud-init-output.log",
                     birth->name);
    }
    narrate_step(birth->narrator, "waiting for its first boot%s (at most %lld s)",
                 birth->lenient ? "" : " and cloud-init", (long long)(birth->budget / 1000));
    if (wait_for_agent(birth, err) < 0 || (birth->renew && renew_identity(birth, err) < 0)) {
        return -1;
    }
    if (ready_collect(birth->client, birth->name, birth->user, birth->budget, birth->narrator, &report, &cause) < 0) {
        if (cause.code == ERR_TIMEOUT) {
            return error_set(err, ERR_TIMEOUT, "its first boot was not done after %lld s",
                             (long long)(birth->budget / 1000));
        }
        return error_move(err, &cause);
    }
    if (cancel_check(err) < 0 || judge(birth, &report, err) < 0) {
        return -1;
    }
    narrate_done(birth->narrator, "%s", "");
    return 0;
}

static int patch_config(struct birth *birth, json_t *config, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:o}", "config", config);

    return instance_patch(birth->client, birth->name, body, err);
}

/* An empty value takes a key away. */
static json_t *found_config(const struct birth *birth, const char *state, const char *reason)
{
    json_t *config = json_pack("{s:s, s:s}", TAG_STATE, state, TAG_REASON, reason);

    if (!config) {
        abort();
    }
    if (birth->found.home) {
        CLEANUP(freep) char *uid = xasprintf("%lld", (long long)birth->found.uid);
        CLEANUP(freep) char *gid = xasprintf("%lld", (long long)birth->found.gid);
        CLEANUP(json_freep)
        json_t *found = json_pack("{s:s, s:s, s:s}", TAG_UID, uid, TAG_GID, gid, TAG_HOME, birth->found.home);

        (void)json_object_update(config, found);
    }
    return config;
}

/* Reads it back: that the box is complete is said only when the daemon says so. */
static int finish(struct birth *birth, struct box **ret_box, struct error *err)
{
    CLEANUP(box_freep) struct box *before = NULL;
    CLEANUP(box_freep) struct box *box = NULL;

    if (box_find(birth->client, birth->name, &before, err) < 0 || box_find_address(birth->client, before, err) < 0) {
        return -1;
    }
    if (!before->ipv4 && !birth->lenient) {
        return error_set(err, ERR_STATE, "it got no address from " STACK_NETWORK);
    }
    if (!before->ipv4) {
        narrate_warn(birth->narrator, "%s has no address yet", birth->name);
    }
    if (patch_config(birth, found_config(birth, "", ""), err) < 0 || box_find(birth->client, birth->name, &box, err) < 0) {
        return -1;
    }
    box->ipv4 = steal(&before->ipv4);
    *ret_box = steal(&box);
    return 0;
}

/* Before the guest has booted, and on Ctrl-C at any moment, there is nothing worth keeping. */
static void clean_up(struct birth *birth, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    const char *name = birth->name;
    bool removed = false;

    cancel_mask(true);
    narrate_step(birth->narrator, "cleaning up");
    if (remove_minted(birth->client, name, birth->id, birth->narrator, &removed, &cause) < 0) {
        narrate_warn(birth->narrator, "cannot clean up: %s. If `box list` shows %s as incomplete: box rm %s",
                     cause.message, name, name);
    } else {
        narrate_done(birth->narrator, removed ? "%s is removed" : "nothing of %s was left", name);
        if (err && err->code == ERR_TIMEOUT) {
            (void)error_remedy(err, "nothing is left of it, so trying again is safe");
        }
    }
    cancel_mask(false);
}

/* What has booted may tell what went wrong: it is kept and marked. Where even that fails, TAG_STATE_MINTING stays on
 * it. */
static int keep_failed(struct birth *birth, bool unconverged, struct error *err)
{
    const char *name = birth->name;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *reason = text_sanitise(err->message, strlen(err->message));
    const char *state = unconverged ? TAG_STATE_UNCONVERGED : TAG_STATE_FAILED;

    if (patch_config(birth, found_config(birth, state, reason), &cause) < 0) {
        narrate_warn(birth->narrator, "cannot mark %s as %s: %s", name, state, cause.message);
    }
    error_wrap(err, "%s is kept, but incomplete", name);
    if (unconverged) {
        return converge_remedy(name, birth->template, err);
    }
    return error_remedy(err,
                        "look into it (box shell %s; incus exec %s -- less /var/log/cloud-init-output.log), or "
                        "remove it: box rm %s",
                        name, name, name);
}

static int converge(struct birth *birth, struct error *err)
{
    const struct converge_request request = {.instance = birth->name,
                                             .template = birth->template,
                                             .user = birth->user,
                                             .home = birth->found.home,
                                             .budget = birth->budget};

    return birth->template && birth->template->script ? converge_run(birth->client, &request, birth->narrator, err) : 0;
}

static bool is_lost(struct birth *birth, struct error *cause)
{
    return (cause->code == ERR_REFUSED_BY_INCUS || cause->code == ERR_EXISTS) && lost_the_name(birth, cause);
}

int birth_run(struct birth *birth, int (*create)(void *context, struct error *err), void *context, struct box **ret_box,
              struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (create(context, &cause) < 0 || start(birth, &cause) < 0) {
        if (!is_lost(birth, &cause)) {
            clean_up(birth, &cause);
        }
        return error_move(err, &cause);
    }
    bool usable = wait_until_usable(birth, &cause) == 0;
    bool converged = usable && converge(birth, &cause) == 0;

    if (converged && finish(birth, ret_box, &cause) == 0) {
        return 0;
    }
    if (cause.code == ERR_INTERRUPTED) {
        clean_up(birth, &cause);
    } else {
        keep_failed(birth, usable && !converged, &cause);
    }
    return error_move(err, &cause);
}

void birth_reset(struct birth *birth)
{
    free(birth->found.home);
    birth->found = (struct ready_user){0};
}
