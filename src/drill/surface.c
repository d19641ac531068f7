/* Phase B: every command and every refusal, driven as a user would: box itself, as a child process.
 * Not for: isolation. What is claimed here is what the command line promises. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "drill/crew.h"
#include "drill/phases.h"
#include "drill/trial.h"
#include "incus/instance.h"
#include "stack/names.h"

#include <regex.h>
#include <string.h>

enum { OPERATION_MS = 30000 };

/* Driving box -------------------------------------------------------------------------------------------------------
 */

static int drive(struct trial *trial, const struct argv *words, struct process_result *ret_result, struct error *err)
{
    CLEANUP(argv_reset) struct argv argv = {0};

    argv_push(&argv, trial->ground->program);
    argv_push_all(&argv, (const char *const *)words->items);
    for (size_t i = 0; i < words->count; i++) {
        /* Whatever this is, a refusal that fails to refuse may make it. */
        if (text_starts_with(words->items[i], CREW_PREFIX) && !strchr(words->items[i], '/') &&
            crew_note("instance", words->items[i], err) < 0) {
            return -1;
        }
    }
    return trial_command(trial, "host", (const char *const *)argv.items, ret_result, err);
}

/* Splits "new --name {box.name}" and fills the facts in. */
static int drive_text(struct trial *trial, const char *text, struct process_result *ret_result, struct error *err)
{
    CLEANUP(freep) char *line = xasprintf("host: %s", text);
    CLEANUP(freep) char *place = NULL;
    CLEANUP(argv_reset) struct argv words = {0};

    return ground_expand(trial->ground, line, &place, &words, err) < 0 ? -1 : drive(trial, &words, ret_result, err);
}

static bool matches(const char *pattern, const struct buffer *text)
{
    regex_t expression;

    if (regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB | REG_ICASE | REG_NEWLINE) != 0) {
        return false;
    }
    int result = regexec(&expression, text->data ? text->data : "", 0, NULL, 0);
    regfree(&expression);
    return result == 0;
}

static bool is_unknown(const struct process_result *result)
{
    return result->status == 2 && matches("unknown command|no such command|no command", &result->errors);
}

/* The declared form: argument is "STATUS|STREAM|PATTERN|WORDS", where STREAM is out, err or -, and PATTERN an extended
 * regular expression without a bar. */
static void claim_command(struct trial *trial)
{
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    char *rest = copy;
    const char *status = strsep(&rest, "|");
    const char *stream = strsep(&rest, "|");
    const char *unfilled = strsep(&rest, "|");
    CLEANUP(freep) char *pattern = NULL;
    uint64_t wanted = 0;

    if (!rest || !text_parse_number(status, 0, 255, &wanted)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the row is malformed");
        return;
    }
    if (ground_fill(trial->ground, unfilled, &pattern, &err) < 0 || drive_text(trial, rest, &result, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool says =
        text_equal(stream, "-") || matches(pattern, text_equal(stream, "out") ? &result.output : &result.errors);
    if ((uint64_t)result.status == wanted && says && (wanted == 0 || result.output.length == 0)) {
        trial_say(trial, VERDICT_HOLDS, "exit status %d%s", result.status,
                  text_equal(stream, "-") ? "" : ", and it says so");
    } else if (is_unknown(&result)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "this box has no such command");
    } else if ((uint64_t)result.status != wanted) {
        trial_say(trial, VERDICT_BROKEN, "the exit status is %d, not %d", result.status, (int)wanted);
    } else if (!says) {
        trial_say(trial, VERDICT_BROKEN, "std%s does not say \"%s\"", stream, pattern);
    } else {
        trial_say(trial, VERDICT_BROKEN, "a refusal wrote to stdout");
    }
}

/* What a mint makes ---------------------------------------------------------------------------------------------------
 */

static void claim_minted(struct trial *trial)
{
    const char *name = ground_fact(trial->ground, "box.name");
    const char *ms = ground_fact(trial->ground, "box.mint.ms");

    if (name && ms) {
        trial_note(trial, "mint", json_pack("{s:s, s:s}", "box", name, "ms", ms));
        trial_say(trial, VERDICT_HOLDS, "%s was ready after %s ms", name, ms);
    } else {
        trial_say(trial, VERDICT_NOT_JUDGED, "no box could be minted: see the notes");
    }
}

static json_t *minted_instance(struct trial *trial)
{
    const char *name = ground_fact(trial->ground, "box.name");
    struct client *client;
    struct error err = {0};
    json_t *instance = NULL;

    if (!name) {
        trial_say(trial, VERDICT_NOT_JUDGED, "no box could be minted");
    } else if (trial_client(trial, &client, &err) < 0 || instance_get(client, name, &instance, &err) < 0) {
        trial_not_judged(trial, &err);
    }
    return instance;
}

static void claim_stamp(struct trial *trial)
{
    CLEANUP(json_freep) json_t *instance = minted_instance(trial);

    if (!instance) {
        return;
    }
    const char *key = trial->claim->argument;
    const char *value = tag_value(instance, key);
    trial_note(trial, key, value ? json_string(value) : json_null());
    if (text_equal(key, TAG_STATE)) {
        trial_say(trial, value ? VERDICT_BROKEN : VERDICT_HOLDS, "%s",
                  value ? "a finished box is marked incomplete" : "complete");
    } else if (text_equal(key, TAG_KEY)) {
        trial_say(trial, text_equal(value, "1") ? VERDICT_HOLDS : VERDICT_BROKEN, "%s is %s", key,
                  value ? value : "absent");
    } else if (text_equal(key, TAG_TEMPLATE)) {
        trial_say(trial, text_equal(value, ground_fact(trial->ground, "template")) ? VERDICT_HOLDS : VERDICT_BROKEN,
                  "%s is %s", key, value ? value : "absent");
    } else {
        trial_say(trial, value ? VERDICT_HOLDS : VERDICT_BROKEN, "%s is %s", key, value ? value : "absent");
    }
}

static void claim_profile(struct trial *trial)
{
    CLEANUP(json_freep) json_t *instance = minted_instance(trial);

    if (!instance) {
        return;
    }
    const json_t *profiles = json_object_get(instance, "profiles");
    trial_note(trial, "profiles", json_deep_copy(profiles));
    bool alone =
        json_array_size(profiles) == 1 && text_equal(json_string_value(json_array_get(profiles, 0)), STACK_PROFILE);
    trial_say(trial, alone ? VERDICT_HOLDS : VERDICT_BROKEN, "%s",
              alone ? STACK_PROFILE " alone" : "another profile is there");
}

/* No device but the profile's NIC and a root disk, nothing privileged, nothing raw. */
static void claim_contract(struct trial *trial)
{
    CLEANUP(json_freep) json_t *instance = minted_instance(trial);
    const char *key;
    json_t *value;

    if (!instance) {
        return;
    }
    json_object_foreach(json_object_get(instance, "expanded_devices"), key, value)
    {
        const char *type = json_text(value, "type");
        bool nic = text_equal(key, STACK_NIC) && text_equal(json_text(value, "network"), STACK_NETWORK);
        bool root =
            text_equal(type, "disk") && text_equal(json_text(value, "path"), "/") && !json_text(value, "source");
        if (!nic && !root) {
            trial_say(trial, VERDICT_BROKEN, "it carries the device %s", key);
            return;
        }
    }
    json_object_foreach(json_object_get(instance, "expanded_config"), key, value)
    {
        if (text_starts_with(key, "raw.") ||
            (text_equal(key, "security.privileged") && text_equal(json_string_value(value), "true"))) {
            trial_say(trial, VERDICT_BROKEN, "it carries %s", key);
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "one NIC on " STACK_NETWORK ", one root disk, nothing privileged, nothing raw");
}

/* Inside a box, with a shell: holds where the words end with status 0. */
static void claim_inside(struct trial *trial)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    const char *const words[] = {"sh", "-c", trial->claim->argument, NULL};

    if (trial_command(trial, "box", words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        trial_say(trial, result.status == 0 ? VERDICT_HOLDS : VERDICT_BROKEN, "the check in the box ended with %d",
                  result.status);
    }
}

/* The boundary --------------------------------------------------------------------------------------------------------
 */

static int make_foreign(struct trial *trial, const char *name, struct error *err)
{
    struct client *client;
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:s, s:s, s:s}}, s:[], s:{s:s}}", "name", name, "type",
                             "container", "config", CREW_TAG, ground_fact(trial->ground, "run"), "devices", "root",
                             "type", "disk", "path", "/", "pool", STACK_POOL, "profiles", "source", "type", "none");

    return trial_client(trial, &client, err) < 0 ? -1 : instance_create(client, body, OPERATION_MS, NULL, err);
}

/* A command against an instance that is nobody's box must call it "no such box", and leave it standing as it was. */
static void claim_boundary(struct trial *trial)
{
    CLEANUP(freep)
    char *name = xasprintf(CREW_PREFIX "theirs-%s-%s", trial->claim->id, ground_fact(trial->ground, "run"));
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(json_freep) json_t *before = NULL;
    CLEANUP(json_freep) json_t *after = NULL;
    CLEANUP(argv_reset) struct argv words = {0};
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    struct client *client;
    char *rest = copy;

    for (char *word; (word = strsep(&rest, " "));) {
        argv_push(&words, text_equal(word, "{theirs}") ? name : word);
    }
    if (make_foreign(trial, name, &err) < 0 || trial_client(trial, &client, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    if (instance_get(client, name, &before, &err) < 0 || drive(trial, &words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (is_unknown(&result)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "this box has no such command");
    } else if (instance_get(client, name, &after, &err) < 0) {
        trial_say(trial, VERDICT_BROKEN, "it is gone: %s", err.message);
    } else if (!json_equal(before, after)) {
        trial_say(trial, VERDICT_BROKEN, "it was changed");
    } else if (result.status != 1 || !matches("no such box", &result.errors)) {
        trial_say(trial, VERDICT_BROKEN, "exit status %d, and not the words \"no such box\"", result.status);
    } else {
        trial_say(trial, VERDICT_HOLDS, "no such box; it stands untouched");
    }
    (void)instance_delete(client, name, OPERATION_MS, NULL);
}

/* A template of the user's own that says what no template may say. */
static void claim_bad_template(struct trial *trial)
{
    CLEANUP(freep) char *directory = xasprintf("%s/template-%s/bad", trial->ground->directory, trial->claim->id);
    CLEANUP(freep) char *parent = xasprintf("%s/template-%s", trial->ground->directory, trial->claim->id);
    CLEANUP(freep) char *path = xasprintf("%s/box.env", directory);
    CLEANUP(freep) char *data = xasprintf("%s/user-data.yaml", directory);
    CLEANUP(freep) char *words = xasprintf("new --name drill-never-{run} --template bad --template-dir %s", parent);
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    const char *content = trial->claim->argument;

    if (fd_make_directories(directory, 0700, &err) < 0 ||
        fd_write_file(path, content, strlen(content), 0600, &err) < 0 ||
        fd_write_file(data, "#cloud-config\n", 14, 0600, &err) < 0 || drive_text(trial, words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (result.status == 0) {
        trial_say(trial, VERDICT_BROKEN, "it was accepted");
    } else if (!matches("box\\.env:[0-9]+", &result.errors)) {
        trial_say(trial, VERDICT_BROKEN, "the refusal names no file and line");
    } else {
        trial_say(trial, VERDICT_HOLDS, "refused, naming file and line");
    }
}

/* The life of a box
 * ----------------------------------------------------------------------------------------------------- */

static bool step(struct trial *trial, const char *words)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (drive_text(trial, words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    if (is_unknown(&result)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "this box has no such command: %s", words);
        return false;
    }
    if (result.status != 0) {
        trial_say(trial, VERDICT_BROKEN, "`box %s` ended with %d", words, result.status);
        return false;
    }
    return true;
}

/* The argument is a list of command lines, a semicolon between them: each must succeed. */
static void claim_life(struct trial *trial)
{
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    char *rest = copy;

    for (char *words; (words = strsep(&rest, ";"));) {
        if (!step(trial, words)) {
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "each step succeeded");
}

static void claim_exec_bytes(struct trial *trial)
{
    static const char *const sent[] = {"$HOME", "", "a\nb", ";", "*", "\xc3\xa9", "two words", NULL};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(buffer_reset) struct buffer wanted = {0};
    CLEANUP(argv_reset) struct argv words = {0};
    const char *name = ground_fact(trial->ground, "box.name");

    if (!name) {
        trial_say(trial, VERDICT_NOT_JUDGED, "no box could be minted");
        return;
    }
    argv_push(&words, "exec");
    argv_push(&words, name);
    argv_push(&words, "--");
    argv_push(&words, "printf");
    argv_push(&words, "[%s]");
    argv_push_all(&words, sent);
    for (size_t i = 0; sent[i]; i++) {
        buffer_append_format(&wanted, "[%s]", sent[i]);
    }
    if (drive(trial, &words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        bool same =
            result.output.length == wanted.length && memcmp(result.output.data, wanted.data, wanted.length) == 0;
        trial_say(trial, same && result.status == 0 ? VERDICT_HOLDS : VERDICT_BROKEN, "%s",
                  same ? "every argument arrived as it was" : "an argument was changed on its way");
    }
}

#define REFUSES "2|err|"

static const struct claim claims[] = {
    {"B01", "A mint ends with a box that is ready", .run = claim_minted, .flags = CLAIM_FIRST},
    {"B02", "A box carries the tag", .run = claim_stamp, .argument = TAG_KEY},
    {"B03", "A box carries the name of its template", .run = claim_stamp, .argument = TAG_TEMPLATE},
    {"B04", "A box carries the name of its user", .run = claim_stamp, .argument = TAG_USER},
    {"B05", "A finished box is not marked as incomplete", .run = claim_stamp, .argument = TAG_STATE},
    {"B06", "A box knows the version that minted it", .run = claim_stamp, .argument = TAG_VERSION},
    {"B07", "A box has the profile of boxes alone", .run = claim_profile},
    {"B08", "A box is on the contract: one NIC, one disk, nothing privileged, nothing raw", .run = claim_contract},
    {"B09", "The blank template brings no agent", .run = claim_inside,
     .argument = "! command -v claude && ! command -v codex && ! command -v node"},
    {"B10", "A box carries no credential of the host", .run = claim_inside,
     .argument = "! env | grep -Eiq 'token|secret|api_?key|ssh_auth' && ! ls /root/.ssh/id_* /home/*/.ssh/id_* "
                 "2>/dev/null | grep -q ."},
    {"B11", "The user of a box may become root without a password", .run = claim_command,
     .argument = "0|out|^0|exec {box.name} -- sudo -n id -u"},
    {"B12", "exec lands in the template's user", .run = claim_command,
     .argument = "0|out|^{box.user}$|exec {box.name} -- id -un"},
    {"B13", "exec hands arguments on byte for byte", .run = claim_exec_bytes},
    {"B14", "exec hands the exit status on", .run = claim_command,
     .argument = "2|-||exec {box.name} -- grep -q x /no/such-file"},
    {"B15", "An unknown command in a box is 127", .run = claim_command,
     .argument = "127|-||exec {box.name} -- no-such-program"},
    {"B16", "list shows the box", .run = claim_command, .argument = "0|out|{box.name}|list"},
    {"B17", "list --json shows the box", .run = claim_command,
     .argument = "0|out|\"name\": \"{box.name}\"|list --json"},
    {"B18", "info shows the box", .run = claim_command, .argument = "0|out|{box.name}|info {box.name}"},
    {"B19", "templates lists blank", .run = claim_command, .argument = "0|out|blank|templates"},
    {"B20", "image list works", .run = claim_command, .argument = "0|-||image list"},
    {"B21", "version says which box this is", .run = claim_command, .argument = "0|out|^box [0-9]|version"},
    {"B22", "help lists the commands", .run = claim_command, .argument = "0|out|exec|help"},
    {"B23", "help of a command describes it", .run = claim_command, .argument = "0|out|exec|help exec"},
    {"B24", "A typo is refused with the nearest command", .run = claim_command,
     .argument = REFUSES "did you mean: box list|lsit"},
    {"B25", "An unknown option is refused", .run = claim_command, .argument = REFUSES "--frobnicate|list --frobnicate"},
    {"B26", "A missing argument is refused", .run = claim_command, .argument = REFUSES "box|info"},
    {"B27", "A name that breaks the rule is refused", .run = claim_command,
     .argument = REFUSES "name|new --name -bad- --template blank"},
    {"B28", "A name of digits alone is refused", .run = claim_command,
     .argument = REFUSES "name|new --name 123 --template blank"},
    {"B29", "An unknown template is refused", .run = claim_command,
     .argument = "1|err|no-such|new --name drill-never-{run} --template no-such"},
    {"B30", "A name that is taken is refused", .run = claim_command,
     .argument = "1|err|there is a box|new --name {box.name} --template blank"},
    {"B31", "A box that is not there is \"no such box\"", .run = claim_command,
     .argument = "1|err|no such box|info drill-nobody"},
    {"B32", "rm without a terminal and without --force refuses", .run = claim_command,
     .argument = REFUSES "--force|rm {box.name}"},
    {"B33", "A template that names a network is refused", .run = claim_bad_template,
     .argument = "BOX_NETWORK=\"lan\"\n"},
    {"B34", "A template that is no KEY=\"value\" is refused", .run = claim_bad_template, .argument = "BOX_CPU=$(id)\n"},
    {"B35", "A template with a duplicate key is refused", .run = claim_bad_template,
     .argument = "BOX_CPU=\"1\"\nBOX_CPU=\"2\"\n"},
    {"B36", "A template with CRLF is refused or read without a stray \\r", .run = claim_bad_template,
     .argument = "BOX_CPU=\"1\r\"\r\n"},
    {"B37", "down refuses an instance that is nobody's box", .run = claim_boundary, .argument = "down {theirs}"},
    {"B38", "rm --force refuses an instance that is nobody's box", .run = claim_boundary,
     .argument = "rm --force {theirs}"},
    {"B39", "The hatch refuses an instance that is nobody's box", .run = claim_boundary,
     .argument = "incus {theirs} -- info"},
    {"B40", "exec refuses an instance that is nobody's box", .run = claim_boundary,
     .argument = "exec {theirs} -- true"},
    {"B41", "start refuses an instance that is nobody's box", .run = claim_boundary, .argument = "start {theirs}"},
    {"B42", "The hatch announces the command that it runs", .run = claim_command,
     .argument = "0|err|incus|incus {box.name} -- config get {} user.box"},
    {"B43", "The hatch warns where it may leave the contract", .run = claim_command,
     .argument = "0|err|contract|incus {spare.name} -- config set {} user.box.drill-note=1"},
    {"B44", "A box goes down and comes back", .run = claim_life,
     .argument = "down {spare.name};start {spare.name};exec {spare.name} -- true", .budget = 90000,
     .flags = CLAIM_ALONE},
    {"B45", "A running box cannot be renamed, and the refusal says how", .run = claim_command,
     .argument = "1|err|down|rename {box.name} drill-never-{run}"},
    {"B46", "A snapshot is taken, and a clone is made from it", .run = claim_life,
     .argument = "snapshot {spare.name} drill;new --name drill-clone-{run} --from {spare.name}/drill;rm --force "
                 "drill-clone-{run}",
     .budget = 120000, .flags = CLAIM_ALONE},
    {"B47", "The walls are shown", .run = claim_command, .argument = "0|out|watcher|firewall show"},
};

const struct claim_table surface_table = {
    .phase = PHASE_SURFACE,
    .title = "every command and every refusal",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 30000,
};
