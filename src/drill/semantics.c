/* Phase A: what box takes for granted about Incus, each sentence asked of the daemon itself.
 * Not for: box's own behaviour; a claim that breaks here says that this Incus answers otherwise. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "drill/crew.h"
#include "drill/phases.h"
#include "drill/trial.h"
#include "host/link.h"
#include "incus/exec.h"
#include "incus/guestfile.h"
#include "incus/instance.h"
#include "incus/operation.h"
#include "incus/server.h"
#include "stack/names.h"

#include <string.h>

enum { OPERATION_MS = 30000 };

/* The connection, or false with the trial not judged. */
static bool ready(struct trial *trial, struct client **ret_client)
{
    struct error err = {0};

    if (trial_client(trial, ret_client, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    return true;
}

static const char *box_name(const struct trial *trial)
{
    return ground_fact(trial->ground, "box.name");
}

/* The instance of the drill's first box, or NULL with the trial not judged. The caller owns it. */
static json_t *first_box(struct trial *trial, struct client **ret_client)
{
    struct error err = {0};
    json_t *instance = NULL;

    if (!box_name(trial)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
    } else if (ready(trial, ret_client) && instance_get(*ret_client, box_name(trial), &instance, &err) < 0) {
        trial_not_judged(trial, &err);
    }
    return instance;
}

/* Of a claim about the drill's first box: false, with the trial not judged, where none could be minted. */
static bool has_box(struct trial *trial)
{
    if (!box_name(trial)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
    }
    return box_name(trial) != NULL;
}

static void holds_if(struct trial *trial, bool holds, const char *otherwise)
{
    if (holds) {
        trial_say(trial, VERDICT_HOLDS, "so it answers");
    } else {
        trial_say(trial, VERDICT_BROKEN, "%s", otherwise);
    }
}

static void claim_tag(struct trial *trial)
{
    struct client *client;
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (instance) {
        holds_if(trial, text_equal(tag_value(instance, TAG_KEY), "1"), "the tag does not read back as \"1\"");
    }
}

static void claim_unset(struct trial *trial)
{
    struct client *client;
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (instance) {
        holds_if(trial, !tag_value(instance, "user.box.never-set"), "a key that was never set has a value");
    }
}

static bool lists(const json_t *array, const char *name)
{
    const json_t *row;
    size_t at;

    json_array_foreach((json_t *)array, at, row)
    {
        if (text_equal(json_text(row, "name"), name)) {
            return true;
        }
    }
    return false;
}

/* An instance that is nobody's box, made and removed around `use`: without a disk image, so it costs nothing. */
static void with_foreign(struct trial *trial, const char *suffix,
                         void (*use)(struct trial *trial, struct client *client, const char *name))
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    const char *id = ground_fact(trial->ground, "run");
    CLEANUP(freep) char *name = xasprintf(CREW_PREFIX "%s-%s", suffix, id);
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:s, s:s, s:s}}, s:[], s:{s:s}}", "name", name, "type",
                             "container", "config", CREW_TAG, id, "devices", "root", "type", "disk", "path", "/",
                             "pool", STACK_POOL, "profiles", "source", "type", "none");

    if (!ready(trial, &client)) {
        return;
    }
    if (instance_create(client, body, OPERATION_MS, NULL, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    use(trial, client, name);
    (void)instance_delete(client, name, OPERATION_MS, NULL);
}

static void use_filter(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep) json_t *array = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_list(client, TAG_FILTER, &array, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool ours = lists(array, box_name(trial));
    bool theirs = lists(array, name);
    trial_note(trial, "listed", json_pack("{s:b, s:b}", "ours", ours, "theirs", theirs));
    if (text_equal(trial->claim->argument, "ours")) {
        holds_if(trial, ours, "the filter leaves a box of ours out");
    } else {
        holds_if(trial, !theirs && ours, "the filter lets an instance through that carries no tag");
    }
}

static void claim_filter(struct trial *trial)
{
    /* That it leaves somebody's out means something only where it finds ours. */
    if (has_box(trial)) {
        with_foreign(trial, trial->claim->argument, use_filter);
    }
}

static void claim_filter_regex(struct trial *trial)
{
    struct client *client;
    CLEANUP(json_freep) json_t *array = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (!has_box(trial) || !ready(trial, &client)) {
        return;
    }
    if (instance_list(client, "config." TAG_KEY " eq .", &array, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool matched = lists(array, box_name(trial));
    holds_if(trial, matched,
             "a dot does not match: this Incus compares by equality, and box's second look is only caution");
}

static void claim_status(struct trial *trial)
{
    struct client *client;
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (instance) {
        trial_note(trial, "status", json_string(json_text(instance, "status")));
        holds_if(trial, text_equal(json_text(instance, "status"), "Running"),
                 "a running box is not called \"Running\"");
    }
}

static void use_stopped(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_get(client, name, &instance, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    holds_if(trial, text_equal(json_text(instance, "status"), "Stopped"), "it is not called \"Stopped\"");
}

static void claim_stopped(struct trial *trial)
{
    with_foreign(trial, "stopped", use_stopped);
}

/* What the daemon must refuse: HOLDS where it does. */
static void must_refuse(struct trial *trial, int result, struct error *err, const char *otherwise)
{
    if (result == 0) {
        trial_say(trial, VERDICT_BROKEN, "%s", otherwise);
        return;
    }
    trial_note(trial, "refusal", json_pack("{s:i, s:s}", "http", err->http, "words", err->message));
    if (err->http == 0 && err->code != ERR_REFUSED_BY_INCUS && err->code != ERR_EXISTS && err->code != ERR_NOT_FOUND) {
        trial_not_judged(trial, err);
        return;
    }
    trial_say(trial, VERDICT_HOLDS, "refused: %s", err->message);
}

static void claim_rename_running(struct trial *trial)
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (!instance) {
        return;
    }
    CLEANUP(freep) char *name = xasprintf("%s-renamed", box_name(trial));
    int result = instance_rename(client, box_name(trial), name, &err);
    if (result == 0) {
        (void)instance_rename(client, name, box_name(trial), NULL);
    }
    must_refuse(trial, result, &err, "a running instance could be renamed");
}

static void use_rename(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(freep) char *other = xasprintf("%s-b", name);
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_rename(client, name, other, &err) < 0 || instance_get(client, other, &instance, &err) < 0 ||
        instance_rename(client, other, name, &err) < 0) {
        trial_say(trial, VERDICT_BROKEN, "%s", err.message);
        return;
    }
    trial_say(trial, VERDICT_HOLDS, "renamed there and back");
}

static void claim_rename_stopped(struct trial *trial)
{
    with_foreign(trial, "rename", use_rename);
}

static void use_snapshot(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep) json_t *array = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_snapshot_create(client, name, "drill-one", OPERATION_MS, NULL, &err) < 0 ||
        instance_snapshot_list(client, name, &array, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    const char *label = json_text(json_array_get(array, 0), "name");
    trial_note(trial, "listing", json_incref(array));
    holds_if(trial, json_array_size(array) == 1 && label && text_ends_with(label, "drill-one"),
             "the list does not hold exactly that snapshot");
}

static void claim_snapshot(struct trial *trial)
{
    with_foreign(trial, "snapshot", use_snapshot);
}

static void use_restore(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep)
    json_t *before =
        json_pack("{s:{s:s}, s:{s:{s:s}}}", "config", "user.drill", "before", "devices", "extra", "type", "none");
    CLEANUP(json_freep) json_t *after = json_pack("{s:{s:s}}", "config", "user.drill", "after");
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_patch(client, name, before, &err) < 0 ||
        instance_snapshot_create(client, name, "back", OPERATION_MS, NULL, &err) < 0 ||
        instance_patch(client, name, after, &err) < 0 ||
        instance_snapshot_restore(client, name, "back", OPERATION_MS, NULL, &err) < 0 ||
        instance_get(client, name, &instance, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool config = text_equal(tag_value(instance, "user.drill"), "before");
    bool devices = json_path(instance, "devices", "extra", NULL) != NULL;
    trial_note(trial, "restored", json_pack("{s:b, s:b}", "config", config, "devices", devices));
    if (text_equal(trial->claim->argument, "config")) {
        holds_if(trial, config, "a restore leaves the configuration as it was");
    } else {
        holds_if(trial, devices, "a restore does not bring the devices back");
    }
}

/* A restore wants a root file system: a copy of the box, which is never started. */
static void claim_restore(struct trial *trial)
{
    CLEANUP(freep)
    char *name = xasprintf(CREW_PREFIX "back-%s-%s", trial->claim->argument, ground_fact(trial->ground, "run"));
    CLEANUP(error_reset) struct error err = {0};
    struct client *client;

    if (!box_name(trial) || !ready(trial, &client)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
        return;
    }
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:{s:s}, s:{s:s, s:s, s:b}}", "name", name, "config", CREW_TAG,
                             ground_fact(trial->ground, "run"), "source", "type", "copy", "source", box_name(trial),
                             "instance_only", 1);
    if (instance_create(client, body, OPERATION_MS, NULL, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    use_restore(trial, client, name);
    (void)instance_delete(client, name, OPERATION_MS, NULL);
}

static void use_copy(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(freep) char *other = xasprintf("%s-copy", name);
    CLEANUP(json_freep) json_t *mark = json_pack("{s:{s:s}}", "config", "user.drill", "kept");
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:{s:s, s:s}}", "name", other, "source", "type", "copy", "source", name);
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_patch(client, name, mark, &err) < 0 || instance_create(client, body, OPERATION_MS, NULL, &err) < 0 ||
        instance_get(client, other, &instance, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        holds_if(trial, text_equal(tag_value(instance, "user.drill"), "kept"), "a copy loses user.* keys");
    }
    (void)instance_delete(client, other, OPERATION_MS, NULL);
}

static void claim_copy(struct trial *trial)
{
    with_foreign(trial, "copy", use_copy);
}

static void claim_absent(struct trial *trial)
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *instance = NULL;

    if (!ready(trial, &client)) {
        return;
    }
    int result = instance_get(client, CREW_PREFIX "nobody-here", &instance, &err);
    if (result < 0 && err.http == 404 && err.code == ERR_NOT_FOUND) {
        trial_say(trial, VERDICT_HOLDS, "404: %s", err.message);
    } else {
        must_refuse(trial, result, &err, "an instance that was never made exists");
    }
}

static void use_twice(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep)
    json_t *body =
        json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s}}, s:[], s:{s:s}}", "name", name, "type", "container", "devices",
                  "root", "type", "disk", "path", "/", "pool", STACK_POOL, "profiles", "source", "type", "none");
    CLEANUP(error_reset) struct error err = {0};

    must_refuse(trial, instance_create(client, body, OPERATION_MS, NULL, &err), &err, "a name could be taken twice");
}

static void claim_twice(struct trial *trial)
{
    with_foreign(trial, "twice", use_twice);
}

static void use_born_tagged(struct trial *trial, struct client *client, const char *name)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error err = {0};

    if (instance_get(client, name, &instance, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    holds_if(trial, text_equal(tag_value(instance, CREW_TAG), ground_fact(trial->ground, "run")),
             "a key of the creating request is not there afterwards");
}

static void claim_born_tagged(struct trial *trial)
{
    with_foreign(trial, "born", use_born_tagged);
}

static void claim_delete_running(struct trial *trial)
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (instance) {
        must_refuse(trial, instance_delete(client, box_name(trial), OPERATION_MS, &err), &err,
                    "a running instance could be deleted");
    }
}

static void claim_lease(struct trial *trial)
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *leases = NULL;
    const char *mac = ground_fact(trial->ground, "box.mac");
    const json_t *row;
    size_t at;

    if (!mac || !ready(trial, &client)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
        return;
    }
    if (server_leases(client, STACK_NETWORK, &leases, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    json_array_foreach(leases, at, row)
    {
        if (text_equal(json_text(row, "hwaddr"), mac)) {
            trial_note(trial, "lease", json_deep_copy(row));
            holds_if(trial, text_equal(json_text(row, "address"), ground_fact(trial->ground, "box.ip")),
                     "the lease of its MAC has another address");
            return;
        }
    }
    trial_say(trial, VERDICT_BROKEN, "no lease carries the MAC of the box");
}

static void claim_port(struct trial *trial)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(error_reset) struct error err = {0};
    const char *port = ground_fact(trial->ground, "box.port");
    size_t count;

    if (!has_box(trial)) {
        return;
    }
    if (link_list(&links, &count, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    const struct link *end = port ? link_find(links, count, port) : NULL;
    const struct link *bridge = link_find(links, count, STACK_NETWORK);
    holds_if(trial, end && bridge && end->master == bridge->index,
             "volatile.eth0.host_name names no port of the boxes' bridge");
}

static void run_in_box(struct trial *trial, const char *const *words, int wanted, const char *otherwise)
{
    struct client *client;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(buffer_reset) struct buffer output = {0};
    int status;

    if (!box_name(trial) || !ready(trial, &client)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
        return;
    }
    struct exec_request request = {.instance = box_name(trial),
                                   .command = words,
                                   .input = -1,
                                   .output = -1,
                                   .errors = -1,
                                   .capture = &output,
                                   .budget = clock_left(trial->deadline)};
    int64_t begun = clock_now();
    if (exec_run(client, &request, &status, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    trial_note(trial, "exec", json_pack("{s:i, s:I}", "status", status, "ms", (json_int_t)(clock_now() - begun)));
    holds_if(trial, status == wanted, otherwise);
}

static void claim_exit(struct trial *trial)
{
    const char *const words[] = {"sh", "-c", "exit 7", NULL};
    run_in_box(trial, words, 7, "exec does not hand the exit status on");
}

static void claim_exit_unknown(struct trial *trial)
{
    const char *const words[] = {"/no/such/program", NULL};
    run_in_box(trial, words, 127, "an unknown command is not 127");
}

static void claim_exit_signal(struct trial *trial)
{
    const char *const words[] = {"sh", "-c", "kill -TERM $$", NULL};
    run_in_box(trial, words, 128 + 15, "death by a signal is not 128+n");
}

static void claim_background(struct trial *trial)
{
    const char *const words[] = {"sh", "-c", "sleep 20 & exit 3", NULL};
    int64_t begun = clock_now();

    run_in_box(trial, words, 3, "the exit status is lost");
    if (trial->verdict == VERDICT_HOLDS && clock_now() - begun > 10000) {
        trial_say(trial, VERDICT_BROKEN, "a child in the background kept the exec open");
    }
}

static void claim_file(struct trial *trial)
{
    static const char content[] = "a\0b\r\n\xff";
    struct client *client;
    struct guestfile_owner owner = {.mode = 0600};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(buffer_reset) struct buffer back = {0};

    if (!box_name(trial) || !ready(trial, &client)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
        return;
    }
    if (guestfile_write(client, box_name(trial), "/var/tmp/drill-file", content, sizeof(content), &owner, &err) < 0 ||
        guestfile_read(client, box_name(trial), "/var/tmp/drill-file", 1024, &back, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    holds_if(trial, back.length == sizeof(content) && memcmp(back.data, content, sizeof(content)) == 0,
             "a file does not come back as it was pushed");
    (void)guestfile_delete(client, box_name(trial), "/var/tmp/drill-file", NULL);
}

static void claim_expanded(struct trial *trial)
{
    struct client *client;
    CLEANUP(json_freep) json_t *instance = first_box(trial, &client);

    if (!instance) {
        return;
    }
    const json_t *nic = json_path(instance, "expanded_devices", STACK_NIC, NULL);
    const char *network = json_text(nic, "network");
    trial_note(trial, "nic", json_deep_copy(nic));
    holds_if(trial, text_equal(network, STACK_NETWORK) && !json_path(instance, "devices", STACK_NIC, NULL),
             "the NIC of the profile is not in expanded_devices alone");
}

static const struct claim claims[] = {
    {"A01", "The tag of a box reads back from its configuration", .run = claim_tag},
    {"A02", "A key that was never set reads empty", .run = claim_unset},
    {"A03", "The list filter selects the boxes of ours", .run = claim_filter, .argument = "ours"},
    {"A04", "The list filter leaves out what carries no tag", .run = claim_filter, .argument = "theirs"},
    {"A05", "The filter's eq is a regular expression, so box compares a second time", .run = claim_filter_regex},
    {"A06", "A running instance is called \"Running\"", .run = claim_status},
    {"A07", "A stopped instance is called \"Stopped\"", .run = claim_stopped},
    {"A08", "A running instance cannot be renamed", .run = claim_rename_running},
    {"A09", "A stopped instance can be renamed", .run = claim_rename_stopped},
    {"A10", "Snapshots are listed by their name", .run = claim_snapshot},
    {"A11", "A restore brings the configuration back", .run = claim_restore, .argument = "config"},
    {"A12", "A restore brings the devices back", .run = claim_restore, .argument = "devices"},
    {"A13", "A copy keeps the user.* keys", .run = claim_copy},
    {"A14", "An instance that does not exist is 404", .run = claim_absent},
    {"A15", "A name cannot be taken twice", .run = claim_twice},
    {"A16", "A key of the creating request is there from the first moment", .run = claim_born_tagged},
    {"A17", "A running instance cannot be deleted", .run = claim_delete_running},
    {"A18", "The leases name a box by its MAC", .run = claim_lease},
    {"A19", "volatile.eth0.host_name names the port on the bridge", .run = claim_port},
    {"A20", "exec hands the exit status on", .run = claim_exit},
    {"A21", "exec of an unknown command is 127", .run = claim_exit_unknown},
    {"A22", "exec that dies by signal n is 128+n", .run = claim_exit_signal},
    {"A23", "exec ends with its command, whatever that left in the background", .run = claim_background,
     .budget = 15000},
    {"A24", "A pushed file comes back byte for byte", .run = claim_file},
    {"A25", "The profile's NIC stands in expanded_devices", .run = claim_expanded},
};

const struct claim_table semantics_table = {
    .phase = PHASE_SEMANTICS,
    .title = "what box takes for granted about Incus",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 40000,
};
