/* Phase T: what the drill made is gone, and only that.
 * Not for: removing it; see crew.c. */
#include "drill/teardown.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "drill/crew.h"
#include "drill/phases.h"
#include "drill/trial.h"
#include "drill/walls.h"
#include "host/link.h"
#include "incus/instance.h"
#include "stack/arm.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *joined(struct argv *names)
{
    if (names->count > 1) {
        qsort(names->items, names->count, sizeof(*names->items), compare_names);
    }
    return argv_join(names, " ");
}

/* Names of everybody's instances but the drill's, in order; NULL where they cannot be listed. */
static char *other_instances(struct client *client)
{
    CLEANUP(json_freep) json_t *array = NULL;
    CLEANUP(argv_reset) struct argv names = {0};
    const json_t *row;
    size_t at;

    if (instance_list(client, NULL, &array, NULL) < 0) {
        return NULL;
    }
    json_array_foreach(array, at, row)
    {
        /* A mint may leave a seed for the next one: that is box's, not the drill's. */
        if (!text_starts_with(json_text(row, "name"), CREW_PREFIX) && !tag_is_seed(row)) {
            argv_push(&names, json_text(row, "name"));
        }
    }
    return joined(&names);
}

/* Names of the collection ("networks", "profiles"), in order. */
static char *names_of(struct client *client, const char *collection)
{
    CLEANUP(freep) char *path = xasprintf("/1.0/%s", collection);
    CLEANUP(json_freep) json_t *array = NULL;
    CLEANUP(argv_reset) struct argv names = {0};
    const json_t *row;
    size_t at;

    if (client_get(client, path, &array, NULL) < 0) {
        return NULL;
    }
    json_array_foreach(array, at, row)
    {
        const char *url = json_string_value(row);
        /* The links of instances come and go with them. */
        if (url && !strstr(url, "/veth") && !strstr(url, "/tap")) {
            argv_push(&names, url);
        }
    }
    return joined(&names);
}

static char *links_of_host(void)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(argv_reset) struct argv names = {0};
    size_t count;

    if (link_list(&links, &count, NULL) < 0) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!text_equal(links[i].kind, "veth") || !links[i].bridge_port) {
            argv_push(&names, links[i].name);
        }
    }
    return joined(&names);
}

static char *walls_digest(void)
{
    CLEANUP(json_freep) json_t *walls = walls_describe();
    const char *digest = json_text(walls, "digest");

    return digest ? xstrdup(digest) : NULL;
}

static char *watcher_pid(void)
{
    return xasprintf("%d", (int)arm_watcher());
}

/* One fact of this host that must be at the end what it was at the beginning. */
static char *fact_of(struct client *client, const char *name)
{
    if (text_equal(name, "instances")) {
        return other_instances(client);
    }
    if (text_equal(name, "networks") || text_equal(name, "profiles") || text_equal(name, "images")) {
        return names_of(client, name);
    }
    if (text_equal(name, "links")) {
        return links_of_host();
    }
    return text_equal(name, "walls") ? walls_digest() : watcher_pid();
}

void teardown_remember(struct ground *ground, struct client *client)
{
    static const char *const names[] = {"instances", "networks", "profiles", "images", "links", "walls", "watcher"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(freep) char *key = xasprintf("before.%s", names[i]);
        CLEANUP(freep) char *value = fact_of(client, names[i]);
        ground_set(ground, key, value);
    }
}

static void claim_unchanged(struct trial *trial)
{
    CLEANUP(freep) char *key = xasprintf("before.%s", trial->claim->argument);
    CLEANUP(freep) char *after = NULL;
    struct client *client;
    struct error err = {0};
    const char *before = ground_fact(trial->ground, key);

    if (trial_client(trial, &client, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    after = fact_of(client, trial->claim->argument);
    if (!before || !after) {
        trial_say(trial, VERDICT_NOT_JUDGED, "it could not be read");
        return;
    }
    trial_note(trial, "before", json_string(before));
    trial_note(trial, "after", json_string(after));
    bool same = text_equal(before, after);
    trial_say(trial, same ? VERDICT_HOLDS : VERDICT_BROKEN, "%s", same ? "as before" : "not as before");
}

static void claim_nothing_left(struct trial *trial)
{
    CLEANUP(argv_reset) struct argv left = {0};
    struct client *client;
    struct error err = {0};

    if (trial_client(trial, &client, &err) < 0 || crew_leftovers(client, &left, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (left.count > 0) {
        CLEANUP(freep) char *which = argv_join(&left, ", ");
        trial_say(trial, VERDICT_BROKEN, "left: %s", which);
    } else {
        trial_say(trial, VERDICT_HOLDS, "nothing");
    }
}

/* True where /proc/NAME is a process that runs the instrument from the host's path. */
static bool runs_instrument(const struct ground *ground, const char *name)
{
    CLEANUP(freep) char *path = xasprintf("/proc/%s/exe", name);
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    return text_equal(target, ground->instrument) || text_equal(target, ground->guest_program);
}

static void claim_no_process(struct trial *trial)
{
    DIR *directory = opendir("/proc");
    unsigned found = 0;

    if (!directory) {
        trial_say(trial, VERDICT_NOT_JUDGED, "/proc cannot be read");
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        found += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && runs_instrument(trial->ground, entry->d_name);
    }
    (void)closedir(directory);
    trial_say(trial, found ? VERDICT_BROKEN : VERDICT_HOLDS, "%u processes of the instrument", found);
}

static const struct claim claims[] = {
    {"T01", "Nothing that the drill made is left on the daemon", .run = claim_nothing_left},
    {"T02", "Every other instance is still there", .run = claim_unchanged, .argument = "instances"},
    {"T03", "The networks are what they were", .run = claim_unchanged, .argument = "networks"},
    {"T04", "The profiles are what they were", .run = claim_unchanged, .argument = "profiles"},
    {"T05", "The images are what they were", .run = claim_unchanged, .argument = "images"},
    {"T06", "The links of this host are what they were", .run = claim_unchanged, .argument = "links"},
    {"T07", "The rules of the walls are what they were", .run = claim_unchanged, .argument = "walls"},
    {"T08", "The watcher is the same process", .run = claim_unchanged, .argument = "watcher"},
    {"T09", "No process of the instrument runs", .run = claim_no_process},
};

const struct claim_table teardown_table = {
    .phase = PHASE_TEARDOWN,
    .title = "what the drill made is gone, and only that",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 15000,
};
