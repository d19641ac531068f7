/* A mint from beginning to end: what to make, the instance, its first boot, the verdict, and the cleanup behind itself.
 * Not for the request's shape (mintbody.c), nor for judging a guest (ready.c). */
#include "box/mint.h"

#include "base/argv.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/imagesource.h"
#include "box/mintbody.h"
#include "box/name.h"
#include "box/power.h"
#include "box/ready.h"
#include "box/remove.h"
#include "box/tag.h"
#include "incus/instance.h"
#include "incus/server.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CREATE_BUDGET_LOCAL_MS  (3 * 60 * 1000)
#define CREATE_BUDGET_SERVER_MS (20 * 60 * 1000)
#define START_BUDGET_MS         60000
#define AGENT_BUDGET_MS         (3 * 60 * 1000)
#define MINT_ID_BYTES           8

struct mint {
    struct client *client;
    const struct mint_request *request;
    struct narrator *narrator;
    char id[2 * MINT_ID_BYTES + 1];
    bool vm;
    char *pool;
    struct imagesource source;
    struct ready_user user;
};

static void mint_reset(struct mint *mint)
{
    free(mint->pool);
    free(mint->user.home);
    imagesource_reset(&mint->source);
}

static int make_id(struct mint *mint, struct error *err)
{
    unsigned char bytes[MINT_ID_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return error_set_errno(err, errno, "cannot get random bytes");
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        static const char digits[] = "0123456789abcdef";

        mint->id[2 * i] = digits[bytes[i] >> 4];
        mint->id[2 * i + 1] = digits[bytes[i] & 15];
    }
    return 0;
}

/* Why this host runs no VM; NULL where it does. */
static const char *vm_obstacle(const struct server *server)
{
    if (access("/dev/kvm", F_OK) < 0) {
        return "this host has no /dev/kvm";
    }
    return server->drives_vms ? NULL : "this host's Incus has no VM driver";
}

static int choose_kind(struct mint *mint, struct error *err)
{
    CLEANUP(server_reset) struct server server = {0};
    const struct mint_request *request = mint->request;

    if (server_get(mint->client, &server, err) < 0) {
        return -1;
    }
    const char *obstacle = vm_obstacle(&server);

    if (request->template->require_vm && request->kind == MINT_CONTAINER) {
        return error_set(err, ERR_USAGE, "the template %s requires a VM", request->template->name);
    }
    if (obstacle && (request->kind == MINT_VM || request->template->require_vm)) {
        error_set(err, ERR_STATE, "a VM cannot be minted: %s%s%s", obstacle,
                  request->kind == MINT_VM ? "" : ", and it is required by the template ",
                  request->kind == MINT_VM ? "" : request->template->name);
        return request->kind == MINT_VM ? error_remedy(err, "box new %s --container (weaker isolation)", request->name)
                                        : -1;
    }
    mint->vm = !obstacle && request->kind != MINT_CONTAINER;
    if (!mint->vm && request->kind == MINT_ANY) {
        narrate_warn(mint->narrator, "%s: %s becomes a container, which shares the host's kernel: weaker isolation "
                                     "than a VM",
                     obstacle, request->name);
    }
    return 0;
}

static int not_set_up(struct error *err)
{
    error_set(err, ERR_STATE, "this host is not set up for boxes");
    return error_remedy(err, "sudo box setup-host");
}

/* The pool is the profile's: an override of the root disk has to name it again. */
static int find_pool(struct mint *mint, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (client_get(mint->client, "/1.0/profiles/" STACK_PROFILE, &profile, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? not_set_up(err) : error_move(err, &cause);
    }
    const char *pool = json_string_value(json_path(profile, "devices", "root", "pool", NULL));

    if (!pool || !json_path(profile, "devices", STACK_NIC, NULL)) {
        return not_set_up(err);
    }
    mint->pool = xstrdup(pool);
    if (!arm_watcher_runs()) {
        error_set(err, ERR_STATE, "the watcher that lets boxes speak does not run: a box would have no network");
        return error_remedy(err, "sudo box setup-host (or: systemctl start " STACK_UNIT ")");
    }
    return 0;
}

static int refuse_taken(const char *name, const json_t *instance, struct error *err)
{
    const char *state = tag_value(instance, TAG_STATE);

    if (!tag_is_box(instance)) {
        error_set(err, ERR_EXISTS, "the name %s is taken by an instance of Incus that is no box", name);
        return error_remedy(err, "choose another name");
    }
    if (state) {
        error_set(err, ERR_EXISTS, "there is a box %s already, and it is incomplete (%s)", name, state);
        return error_remedy(err, "box rm %s, then mint it anew", name);
    }
    error_set(err, ERR_EXISTS, "there is a box %s already", name);
    return error_remedy(err, "box shell %s, or choose another name", name);
}

static int check_free(struct mint *mint, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (instance_get(mint->client, mint->request->name, &instance, &cause) == 0) {
        return refuse_taken(mint->request->name, instance, err);
    }
    return cause.code == ERR_NOT_FOUND ? 0 : error_move(err, &cause);
}

/* A mint that was refused may have been beaten to the name: then what is there is another's. */
static bool lost_the_name(struct mint *mint, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_get(mint->client, mint->request->name, &instance, NULL) < 0 ||
        text_equal(tag_value(instance, TAG_MINT), mint->id)) {
        return false;
    }
    refuse_taken(mint->request->name, instance, err);
    return true;
}

static int prepare(struct mint *mint, struct error *err)
{
    const struct mint_request *request = mint->request;

    if (check_free(mint, err) < 0 || choose_kind(mint, err) < 0 || find_pool(mint, err) < 0 ||
        imagesource_find(mint->client, request->template->image, mint->vm, &mint->source, err) < 0) {
        return -1;
    }
    narrate_note(mint->narrator, "the image is %s", mint->source.description);
    return make_id(mint, err);
}

static int create(struct mint *mint, struct error *err)
{
    char created[21];
    const struct mintbody body = {
        .request = mint->request,
        .vm = mint->vm,
        .mint_id = mint->id,
        .created = created,
        .pool = mint->pool,
        .fingerprint = mint->source.fingerprint,
        .server = mint->source.server,
        .server_alias = mint->source.alias,
    };

    clock_format_now(created);
    CLEANUP(json_freep) json_t *value = mintbody_make(&body);

    narrate_step(mint->narrator, "creating the %s %s from the template %s", mint->vm ? "VM" : "container",
                 mint->request->name, mint->request->template->name);
    if (instance_create(mint->client, value, body.fingerprint ? CREATE_BUDGET_LOCAL_MS : CREATE_BUDGET_SERVER_MS,
                        mint->narrator, err) < 0) {
        if (body.server && err && err->code != ERR_INTERRUPTED && err->code != ERR_EXISTS) {
            (void)imagesource_remedy(mint->request->template->image, mint->vm, err);
        }
        return error_wrap(err, "cannot create %s", mint->request->name);
    }
    narrate_done(mint->narrator, "%s", "");
    return 0;
}

static int start(struct mint *mint, struct error *err)
{
    const char *name = mint->request->name;

    narrate_step(mint->narrator, "starting it");
    if (instance_change_state(mint->client, name, "start", -1, false, START_BUDGET_MS, mint->narrator, err) < 0) {
        return error_wrap(err, "cannot start %s", name);
    }
    if (power_wait_armed(mint->client, name, err) < 0) {
        return error_wrap(err, "%s started, but the walls do not let it speak", name);
    }
    narrate_done(mint->narrator, "it may speak");
    return 0;
}

/* A VM's agent comes up some way into the boot; nothing tells when. A container can be entered at once. */
static int wait_for_agent(struct mint *mint, struct error *err)
{
    const int64_t deadline = clock_deadline(AGENT_BUDGET_MS);

    while (mint->vm) {
        CLEANUP(json_freep) json_t *state = NULL;
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};

        if (cancel_check(err) < 0 || instance_state(mint->client, mint->request->name, &state, err) < 0) {
            return -1;
        }
        if (json_number(state, "processes", -1) > 0) {
            break;
        }
        if (clock_left(deadline) == 0) {
            return error_set(err, ERR_TIMEOUT, "the guest does not answer after %d s", AGENT_BUDGET_MS / 1000);
        }
        (void)poll(&cancel, 1, NARRATE_TICK_MS);
        narrate_tick(mint->narrator);
    }
    return 0;
}

/* What the guest's kernel knows of its limits is the fact; what the daemon accepted was a claim. */
static void tell_limits(const struct mint *mint, const struct ready_report *report)
{
    const struct limits *limits = &mint->request->limits;
    bool memory = limits->memory && (text_is_empty(report->memory) || text_equal(report->memory, "max"));
    bool cpu = limits->cpu && text_is_empty(report->cpus);

    if (!mint->vm && (memory || cpu)) {
        narrate_warn(mint->narrator, "this host cannot enforce %s%s%s: its kernel hands no such cgroup controller down",
                     memory ? "limits.memory" : "", memory && cpu ? " and " : "", cpu ? "limits.cpu" : "");
    }
}

/* What went wrong in the guest: kept as the box's reason, and as the error. */
static int fail_guest(struct error *err, char *reason)
{
    CLEANUP(freep) char *owned = reason;

    return error_set(err, ERR_STATE, "%s", owned);
}

static void show_log(const struct mint *mint, const struct ready_report *report)
{
    CLEANUP(freep) char *log = text_sanitise(report->log, strlen(report->log));

    for (char *line = log, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        narrate_warn(mint->narrator, "  its log: %s", line + strspn(line, " "));
    }
}

static int judge(struct mint *mint, const struct ready_report *report, struct error *err)
{
    CLEANUP(argv_reset) struct argv warnings = {0};
    char *reason = NULL;

    if (!ready_cloud_applied(report, &warnings, &reason) ||
        !ready_usable(report, mint->request->template->user, &mint->user, &reason)) {
        show_log(mint, report);
        return fail_guest(err, reason);
    }
    for (size_t i = 0; i < warnings.count; i++) {
        narrate_warn(mint->narrator, "cloud-init warns: %s", warnings.items[i]);
    }
    tell_limits(mint, report);
    return 0;
}

static int wait_until_usable(struct mint *mint, struct error *err)
{
    const struct mint_request *request = mint->request;
    CLEANUP(ready_reset) struct ready_report report = {0};
    CLEANUP(error_reset) struct error cause = {0};

    narrate_note(mint->narrator, "to watch it: incus exec %s -- tail -n +1 -F /var/log/cloud-init-output.log",
                 request->name);
    narrate_step(mint->narrator, "waiting for its first boot and cloud-init (at most %lld s)",
                 (long long)(request->budget / 1000));
    if (wait_for_agent(mint, err) < 0) {
        return -1;
    }
    if (ready_collect(mint->client, request->name, request->template->user, request->budget, mint->narrator, &report,
                      &cause) < 0) {
        if (cause.code == ERR_TIMEOUT) {
            return error_set(err, ERR_TIMEOUT, "its first boot was not done after %lld s",
                             (long long)(request->budget / 1000));
        }
        return error_move(err, &cause);
    }
    if (cancel_check(err) < 0 || judge(mint, &report, err) < 0) {
        return -1;
    }
    narrate_done(mint->narrator, "%s", "");
    return 0;
}

static int patch_config(struct mint *mint, json_t *config, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:o}", "config", config);

    return instance_patch(mint->client, mint->request->name, body, err);
}

/* Reads it back: that the box is complete is said only when the daemon says so. */
static int finish(struct mint *mint, struct box **ret_box, struct error *err)
{
    CLEANUP(freep) char *uid = xasprintf("%lld", (long long)mint->user.uid);
    CLEANUP(freep) char *gid = xasprintf("%lld", (long long)mint->user.gid);
    CLEANUP(box_freep) struct box *box = NULL;
    /* An empty value takes a key away. */
    json_t *config = json_pack("{s:s, s:s, s:s, s:s, s:s}", TAG_STATE, "", TAG_REASON, "", TAG_UID, uid, TAG_GID, gid,
                               TAG_HOME, mint->user.home);

    CLEANUP(box_freep) struct box *before = NULL;

    if (box_find(mint->client, mint->request->name, &before, err) < 0 ||
        box_find_address(mint->client, before, err) < 0) {
        json_decref(config);
        return -1;
    }
    if (!before->ipv4) {
        json_decref(config);
        return error_set(err, ERR_STATE, "it got no address from " STACK_NETWORK);
    }
    if (patch_config(mint, config, err) < 0 || box_find(mint->client, mint->request->name, &box, err) < 0) {
        return -1;
    }
    box->ipv4 = steal(&before->ipv4);
    *ret_box = steal(&box);
    return 0;
}

/* Before the guest has booted, and on Ctrl-C at any moment, there is nothing worth keeping. */
static void clean_up(struct mint *mint, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    const char *name = mint->request->name;
    bool removed = false;

    cancel_mask(true);
    narrate_step(mint->narrator, "cleaning up");
    if (remove_minted(mint->client, name, mint->id, mint->narrator, &removed, &cause) < 0) {
        narrate_warn(mint->narrator, "cannot clean up: %s. If `box list` shows %s as incomplete: box rm %s",
                     cause.message, name, name);
    } else {
        narrate_done(mint->narrator, removed ? "%s is removed" : "nothing of %s was left", name);
        if (err && err->code == ERR_TIMEOUT) {
            (void)error_remedy(err, "nothing is left of it, so trying again is safe");
        }
    }
    cancel_mask(false);
}

/* What has booted may tell what went wrong: it is kept and marked. Where even that fails, TAG_STATE_MINTING stays on it. */
static int keep_failed(struct mint *mint, struct error *err)
{
    const char *name = mint->request->name;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *reason = text_sanitise(err->message, strlen(err->message));
    json_t *config = json_pack("{s:s, s:s}", TAG_STATE, TAG_STATE_FAILED, TAG_REASON, reason);

    if (!config) {
        abort();
    }
    if (patch_config(mint, config, &cause) < 0) {
        narrate_warn(mint->narrator, "cannot mark %s as failed: %s", name, cause.message);
    }
    error_wrap(err, "%s is kept, but incomplete", name);
    return error_remedy(err, "look into it (box shell %s; incus exec %s -- less /var/log/cloud-init-output.log), or "
                             "remove it: box rm %s",
                        name, name, name);
}

int mint_run(struct client *client, const struct mint_request *request, struct narrator *narrator,
             struct box **ret_box, struct error *err)
{
    CLEANUP(mint_reset) struct mint mint = {.client = client, .request = request, .narrator = narrator};
    CLEANUP(error_reset) struct error cause = {0};

    if (name_check(request->name, err) < 0 || prepare(&mint, err) < 0) {
        return -1;
    }
    if (create(&mint, &cause) < 0 || start(&mint, &cause) < 0) {
        if ((cause.code != ERR_REFUSED_BY_INCUS && cause.code != ERR_EXISTS) || !lost_the_name(&mint, &cause)) {
            clean_up(&mint, &cause);
        }
        return error_move(err, &cause);
    }
    if (wait_until_usable(&mint, &cause) < 0 || finish(&mint, ret_box, &cause) < 0) {
        if (cause.code == ERR_INTERRUPTED) {
            clean_up(&mint, &cause);
        } else {
            keep_failed(&mint, &cause);
        }
        return error_move(err, &cause);
    }
    return 0;
}
