/* Phase M: a box of the older generation moves onto boxnet with all that it is, and that generation's stack goes.
 * Not for: how a box is moved; the drill calls `box migrate-host`, as its user would. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/rehome.h"
#include "box/tag.h"
#include "drill/legacy.h"
#include "drill/phases.h"
#include "drill/siegecraft.h"
#include "incus/instance.h"
#include "stack/dismantle.h"
#include "stack/names.h"

#include <string.h>

enum { MEMORY_CEILING = 1 << 20 };

/* What the box was before it moved: each trial is a process of its own, so it lies in a file of the run's. */
static char *memory_path(const struct trial *trial)
{
    return xasprintf("%s/migration.json", trial->ground->directory);
}

static int look(struct trial *trial, json_t **ret_instance, struct error *err)
{
    struct client *client;

    return trial_client(trial, &client, err) < 0
               ? -1
               : instance_get(client, ground_fact(trial->ground, "older.name"), ret_instance, err);
}

static int look_at_snapshot(struct trial *trial, json_t **ret_snapshot, struct error *err)
{
    CLEANUP(freep)
    char *path = xasprintf("/1.0/instances/%s/snapshots/" LEGACY_SNAPSHOT, ground_fact(trial->ground, "older.name"));
    struct client *client;

    return trial_client(trial, &client, err) < 0 ? -1 : client_get(client, path, ret_snapshot, err);
}

static int remember(struct trial *trial, struct error *err)
{
    CLEANUP(freep) char *path = memory_path(trial);
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(json_freep) json_t *snapshot = NULL;

    if (look(trial, &instance, err) < 0 || look_at_snapshot(trial, &snapshot, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *memory = json_pack("{s:O, s:O}", "instance", instance, "snapshot", snapshot);
    CLEANUP(freep) char *text = json_write(memory, 0);

    return fd_write_file(path, text, strlen(text), 0600, err);
}

/* Before and now; false with the trial not judged. */
static bool recall(struct trial *trial, const char *what, json_t **ret_before, json_t **ret_now)
{
    CLEANUP(freep) char *path = memory_path(trial);
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(json_freep) json_t *memory = NULL;
    struct error err = {0};

    if (fd_read_file(path, MEMORY_CEILING, &text, &err) < 0 ||
        json_parse(text.data, text.length, path, &memory, &err) < 0 ||
        (text_equal(what, "snapshot") ? look_at_snapshot(trial, ret_now, &err) : look(trial, ret_now, &err)) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    *ret_before = json_incref(json_object_get(memory, what));
    return true;
}

static void say_if(struct trial *trial, bool holds, const char *so, const char *otherwise)
{
    trial_say(trial, holds ? VERDICT_HOLDS : VERDICT_BROKEN, "%s", holds ? so : otherwise);
}

static void claim_lay(struct trial *trial)
{
    struct error err = {0};

    if (legacy_lay(trial, &err) < 0 || remember(trial, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        trial_say(trial, VERDICT_HOLDS, "it runs, with an address of " LEGACY_SUBNET);
    }
}

static void claim_known(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(json_freep) json_t *shown = NULL;
    struct error err = {0};

    if (!siegecraft_box(trial, "info {older.name} --json", &result)) {
        return;
    }
    if (json_parse(result.output.data ? result.output.data : "", result.output.length, "info", &shown, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool off = json_array_size(json_object_get(shown, "deviations")) > 0;

    if (!text_equal(json_text(shown, "user"), TAG_OLDER_USER)) {
        trial_say(trial, VERDICT_BROKEN, "its user is %s",
                  json_text(shown, "user") ? json_text(shown, "user") : "unknown");
    } else {
        say_if(trial, off, "its user is " TAG_OLDER_USER ", and it is called off the contract",
               "it is called on the contract");
    }
}

/* The argument is "STATUS|WORD|COMMAND": it is refused with that status and word, and the box is what it was. */
static void claim_refused(struct trial *trial)
{
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *after = NULL;
    char *rest = copy;
    int wanted = *strsep(&rest, "|") - '0';
    const char *unfilled = strsep(&rest, "|");
    CLEANUP(freep) char *word = NULL;
    struct error err = {0};

    if (ground_fill(trial->ground, unfilled, &word, &err) < 0 || look(trial, &before, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    if (!siegecraft_box(trial, rest, &result)) {
        return;
    }
    if (look(trial, &after, &err) < 0 || !json_equal(before, after)) {
        error_reset(&err);
        trial_say(trial, VERDICT_BROKEN, "the box is not what it was");
    } else if (result.status != wanted) {
        trial_say(trial, VERDICT_BROKEN, "exit status %d", result.status);
    } else {
        say_if(trial, strstr(result.errors.data ? result.errors.data : "", word) != NULL,
               "refused, and it says what to do", "refused, without a word of what to do");
    }
}

/* On the older network it reached this host: what it no longer reaches afterwards was in its reach. */
static bool reaches_host(struct trial *trial, const char *role, const char *address)
{
    CLEANUP(freep) char *probe = xasprintf("older: connect %s {port} --echo --timeout 1500", address);
    CLEANUP(reply_reset) struct reply reply = {0};
    CLEANUP(reply_reset) struct reply heard = {0};
    CLEANUP(error_reset) struct error err = {0};
    struct trial_probe *listener;

    if (trial_listen(trial, "host: listen tcp --echo --count 0 --timeout 8000", &listener, &err) < 0) {
        return false;
    }
    bool arrived = trial_probe(trial, role, probe, &reply, &err) == 0 && json_truth(reply.evidence, "echo");

    trial_stop(listener);
    (void)trial_finish(trial, "listener", listener, &heard, NULL);
    return arrived;
}

static void claim_move(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (!reaches_host(trial, "control", LEGACY_GATEWAY)) {
        trial_say(trial, VERDICT_NOT_JUDGED,
                  "the control failed: on the older network it does not reach this host either");
        return;
    }
    if (!siegecraft_box(trial, "migrate-host --yes --box {older.name}", &result)) {
        return;
    }
    if (result.status != 0 || !strstr(result.output.data ? result.output.data : "", "moved: ")) {
        trial_say(trial, VERDICT_BROKEN, "exit status %d", result.status);
    } else if (reaches_host(trial, "attack", "{gateway}")) {
        trial_say(trial, VERDICT_BROKEN, "it moved, and reaches this host");
    } else {
        trial_say(trial, VERDICT_HOLDS, "it moved, and no longer reaches this host");
    }
}

/* The argument lists configuration keys of its own, apart by blanks: each is what it was. */
static void claim_kept(struct trial *trial)
{
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *now = NULL;
    char *rest = copy;

    if (!recall(trial, "instance", &before, &now)) {
        return;
    }
    for (char *key; (key = strsep(&rest, " "));) {
        const char *was = tag_value(before, key), *is = tag_value(now, key);

        trial_note(trial, key, json_pack("{s:s?, s:s?}", "before", was, "after", is));
        if (!was) {
            trial_say(trial, VERDICT_NOT_JUDGED, "it had no %s before", key);
            return;
        }
        if (!text_equal(was, is)) {
            trial_say(trial, VERDICT_BROKEN, "%s is not what it was", key);
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "as before");
}

static void claim_snapshot(struct trial *trial)
{
    static const char *const parts[] = {"config", "devices", "created_at"};
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *now = NULL;

    if (!recall(trial, "snapshot", &before, &now)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        if (!json_equal(json_object_get(before, parts[i]), json_object_get(now, parts[i]))) {
            trial_say(trial, VERDICT_BROKEN, "its %s is not what it was", parts[i]);
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "as before");
}

static void claim_setting(struct trial *trial)
{
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *now = NULL;

    if (recall(trial, "instance", &before, &now)) {
        say_if(trial, text_equal(tag_value(now, LEGACY_KEY), LEGACY_VALUE), "it is the box's own now",
               "what its profile set is lost");
    }
}

static void claim_work(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(error_reset) struct error err = {0};
    const char *const words[] = {"cat", LEGACY_WORK, NULL};
    CLEANUP(freep) char *wanted = xasprintf("%s\n", ground_fact(trial->ground, "run"));

    if (trial_command(trial, "older", words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        say_if(trial, result.status == 0 && text_equal(result.output.data, wanted), "as before",
               "its file is not what it was");
    }
}

/* On the contract as the daemon has it now, running, with no word of the move. */
static void judge_contract(struct trial *trial)
{
    CLEANUP(json_freep) json_t *now = NULL;
    CLEANUP(argv_reset) struct argv deviations = {0};
    struct error err = {0};

    if (look(trial, &now, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    contract_check(now, &deviations);
    CLEANUP(freep) char *list = argv_join(&deviations, "; ");

    if (deviations.count > 0) {
        trial_say(trial, VERDICT_BROKEN, "%s", list);
    } else if (rehome_is_under_way(now)) {
        trial_say(trial, VERDICT_BROKEN, "its move is called unfinished");
    } else {
        trial_say(trial, VERDICT_HOLDS, STACK_PROFILE " alone, one NIC on " STACK_NETWORK);
    }
}

static void claim_runs(struct trial *trial)
{
    CLEANUP(json_freep) json_t *now = NULL;
    struct error err = {0};

    if (look(trial, &now, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        say_if(trial, text_equal(json_text(now, "status"), "Running"), "it runs, as before",
               "it does not run any more");
    }
}

static void claim_address(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(json_freep) json_t *shown = NULL;
    CLEANUP(reply_reset) struct reply reply = {0};
    struct error err = {0};

    if (!siegecraft_box(trial, "info {older.name} --json", &result) ||
        !siegecraft_probe(trial, "attack", "older: interfaces", &reply)) {
        return;
    }
    if (json_parse(result.output.data ? result.output.data : "", result.output.length, "info", &shown, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    CLEANUP(freep) char *held = json_write(reply.evidence, 0);
    CLEANUP(freep) char *quoted = xasprintf("\"%s\"", json_text(shown, "ipv4") ? json_text(shown, "ipv4") : "?");

    if (strstr(held, "\"10.87.0.")) {
        trial_say(trial, VERDICT_BROKEN, "it still holds an address of the older network");
    } else if (!strstr(held, quoted)) {
        trial_say(trial, VERDICT_BROKEN, "it does not hold the address that it was given");
    } else {
        say_if(trial, json_truth(shown, "armed"), "it holds the one that it was given, and is armed",
               "it is not armed");
    }
}

static void claim_again(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *after = NULL;
    struct error err = {0};

    if (look(trial, &before, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    if (!siegecraft_box(trial, "migrate-host --box {older.name}", &result)) {
        return;
    }
    if (look(trial, &after, &err) < 0 || !json_equal(before, after)) {
        error_reset(&err);
        trial_say(trial, VERDICT_BROKEN, "the box is not what it was");
    } else {
        say_if(trial, result.status == 0 && strstr(result.output.data ? result.output.data : "", "unchanged: "),
               "unchanged", "it does not say that nothing was to be done");
    }
}

/* As a run leaves it that was killed after the move: the older stack stays meanwhile, and the next run ends it. */
static void claim_ended(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result retiring = {0};
    CLEANUP(process_result_reset) struct process_result ending = {0};
    CLEANUP(json_freep) json_t *body = rehome_note_body(true);
    struct client *client;
    struct error err = {0};

    if (trial_client(trial, &client, &err) < 0 ||
        instance_patch(client, ground_fact(trial->ground, "older.name"), body, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    if (!siegecraft_box(trial, "migrate-host --yes --retire-legacy", &retiring) ||
        !siegecraft_box(trial, "migrate-host --yes --box {older.name}", &ending)) {
        return;
    }
    if (retiring.status != 1 || ending.status != 0) {
        trial_say(trial, VERDICT_BROKEN, "retiring ended with %d, the move with %d", retiring.status, ending.status);
    } else {
        judge_contract(trial);
    }
}

static void claim_retired(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(argv_reset) struct argv left = {0};
    struct client *client;
    struct error err = {0};

    if (!siegecraft_box(trial, "migrate-host --yes --retire-legacy", &result)) {
        return;
    }
    if (trial_client(trial, &client, &err) < 0 ||
        dismantle_list(client, DISMANTLE_OLDER, STORAGE_KEPT, NULL, &left, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    CLEANUP(freep) char *list = argv_join(&left, ", ");

    if (left.count > 0) {
        trial_say(trial, VERDICT_BROKEN, "left: %s", list);
    } else {
        say_if(trial, result.status == 0, "nothing of it is left", "all of it is gone, and it is called a failure");
    }
}

static void claim_restored(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (!siegecraft_box(trial, "restore --force {older.name} " LEGACY_SNAPSHOT, &result)) {
        return;
    }
    if (result.status != 0) {
        trial_say(trial, VERDICT_BROKEN, "`box restore` ended with %d", result.status);
    } else {
        judge_contract(trial);
    }
}

/* What has to be so before the rest says anything: each in its turn, for the move ends what comes before it. */
#define FIRST(id, text, function, ...)                                                                                 \
    {                                                                                                                  \
        id, text, .run = function, .flags = CLAIM_FIRST | CLAIM_ALONE, __VA_ARGS__                                     \
    }
#define ROW(id, text, function, ...)                                                                                   \
    {                                                                                                                  \
        id, text, .run = function, .flags = CLAIM_ALONE, __VA_ARGS__                                                   \
    }
#define TRY " --timeout 1500"

static const struct claim claims[] = {
    {"M01", "A box of the older generation runs on that generation's network", .run = claim_lay, .budget = 180000,
     .flags = CLAIM_FIRST | CLAIM_ALONE},
    FIRST("M02", "It is a box, with that generation's user, and called off the contract", claim_known),
    FIRST("M03", "It does not start as if it were a box on boxnet", claim_refused,
          .argument = "1|migrate-host --box|start {older.name}"),
    FIRST("M04", "What runs in it is not interrupted unasked", claim_refused,
          .argument = "2|--yes|migrate-host --box {older.name}"),
    FIRST("M05", "The older stack is not retired while a box is on it", claim_refused,
          .argument = "1|{older.name}|migrate-host --yes --retire-legacy"),
    FIRST("M06", "It moves, and no longer reaches this host as it did", claim_move, .budget = 120000),
    ROW("M07", "Its tag is what it was", claim_kept, .argument = TAG_OLDER),
    ROW("M08", "Its identity is what it was: uuid, MAC, image", claim_kept,
        .argument = "volatile.uuid volatile." STACK_NIC ".hwaddr volatile.base_image"),
    ROW("M09", "What was on its disk is there", claim_work),
    ROW("M10", "Its snapshot is untouched", claim_snapshot),
    ROW("M11", "What its profile set stays set", claim_setting),
    ROW("M12", "It runs again, as before", claim_runs),
    ROW("M13", "It is on the contract", judge_contract),
    ROW("M14", "It holds an address of boxnet and none of the older network, and is armed", claim_address),
    {"M15", "It reaches the public internet by address", .expect = EXPECT_REACHABLE,
     .attack = "older: connect {web} {web.port}" TRY, .control = "host: connect {web} {web.port}" TRY,
     .flags = CLAIM_ALONE},
    {"M16", "It resolves public names", .expect = EXPECT_REACHABLE, .attack = "older: resolve {public.name}" TRY,
     .flags = CLAIM_ALONE},
    {"M17", "It does not reach another box over TCP", "14", "port isolation, the bridge's forward drop, F1",
     EXPECT_SILENCE, "older: connect {peer.ip} {port}" TRY, "host: connect {peer.ip} {port} --echo" TRY,
     "peer: listen tcp --echo", .flags = CLAIM_ALONE},
    {"M18", "It does not reach another box over UDP", "14", "port isolation, the bridge's forward drop, F1",
     EXPECT_SILENCE, "older: udp {peer.ip} {port} --count 2 --timeout 700",
     "host: udp {peer.ip} {port} --count 2 --timeout 700", "peer: listen udp --echo", .flags = CLAIM_ALONE},
    ROW("M19", "Moving it again changes nothing", claim_again),
    ROW("M20", "A move that was cut off keeps the older stack, and the next run ends it", claim_ended, .budget = 90000),
    ROW("M21", "The older stack goes, all of it", claim_retired, .budget = 60000),
    ROW("M22", "An older snapshot comes back on the contract, though its network is gone", claim_restored,
        .budget = 60000),
};

const struct claim_table migration_table = {
    .phase = PHASE_MIGRATION,
    .title = "a box of the older generation moves onto boxnet, and that generation's stack goes",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 25000,
};
