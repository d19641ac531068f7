/* What the drill makes for itself on a daemon: minting it, knowing it again, removing it, and only it.
 * Not for: how a box is minted. The drill calls `box new`, as its user would. */
#include "drill/crew.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "box/busy.h"
#include "box/remove.h"
#include "box/tag.h"
#include "drill/pool.h"
#include "drill/restricted.h"
#include "incus/guestfile.h"
#include "incus/instance.h"
#include "incus/operation.h"
#include "stack/names.h"
#include "stack/table.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BOXES = 4, PROBE_CEILING = 4 << 20 };

static const char *const roles[MOST_BOXES] = {"box", "peer", "spare", "other"};

/* The names that drills wrote down: one empty file each, so that trials side by side never lose one. */
#define MADE_DIRECTORY CREW_DIRECTORY "/made"

static char *note_path(const char *kind, const char *name)
{
    return xasprintf("%s/%s.%s", MADE_DIRECTORY, kind, name);
}

int crew_note(const char *kind, const char *name, struct error *err)
{
    CLEANUP(freep) char *path = note_path(kind, name);

    if (strchr(name, '/')) {
        return error_set(err, ERR_USAGE, "\"%s\" is no name", name);
    }
    if (fd_make_directories(MADE_DIRECTORY, 0700, err) < 0 || fd_write_file(path, "", 0, 0600, err) < 0) {
        return error_wrap(err, "noting what the drill makes");
    }
    return 0;
}

static bool is_noted(const char *kind, const char *name)
{
    CLEANUP(freep) char *path = note_path(kind, name);

    return !strchr(name, '/') && access(path, F_OK) == 0;
}

static void forget_all(void)
{
    DIR *directory = opendir(MADE_DIRECTORY);

    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
        }
    }
    if (directory) {
        (void)closedir(directory);
    }
}

/* Minting --------------------------------------------------------------------------------------------------------- */

struct mint {
    const struct ground *ground;
    char name[64];
    const char *template_name;
    bool container;
    int64_t budget;
    char *log;
};

static void write_line(void *context, const char *line)
{
    int fd = *(const int *)context;

    (void)fd_write_all(fd, line, strlen(line), NULL);
    (void)fd_write_all(fd, "\n", 1, NULL);
}

/* What `box new` said was wrong: the last line that begins as its errors do. */
static json_t *complaint_of(const struct buffer *errors)
{
    CLEANUP(freep) char *said = text_sanitise(errors->data ? errors->data : "", errors->length);
    const char *last = "it said nothing";
    char *rest = said;

    for (char *line; (line = strsep(&rest, "\n"));) {
        if (text_starts_with(line, "box: ")) {
            last = line + strlen("box: ");
        }
    }
    return json_string(last);
}

/* In a process of its own: `box new`, its narration line by line into the log. */
static json_t *mint_one(void *context)
{
    const struct mint *mint = context;
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(fd_closep) int log = open(mint->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const char *const words[] = {mint->ground->program,
                                 "new",
                                 "--name",
                                 mint->name,
                                 "--template",
                                 mint->template_name,
                                 mint->container ? "--container" : NULL,
                                 NULL};
    /* One that outlived its drill would go on to create what the drill's cleanup no longer finds. */
    struct process_options options = {.budget = mint->budget, .mortal = true, .line = write_line, .context = &log};

    if (process_run(words, &options, &result, &err) < 0) {
        return json_pack("{s:s}", "error", err.message);
    }
    return result.status == 0 ? json_object() : json_pack("{s:o}", "error", complaint_of(&result.errors));
}

struct minting {
    struct ground *ground;
    struct client *client;
    struct mint *mints;
    const char *id;
    struct narrator *narrator;
    struct argv *failures;
};

static void tag(struct client *client, const char *name, const char *id)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:{s:s}}", "config", CREW_TAG, id);
    /* Its name is noted already: a tag that cannot be set loses nothing. */
    (void)instance_patch(client, name, body, NULL);
}

static void minted(void *context, size_t index, const json_t *answer, const char *why, int64_t ms)
{
    struct minting *minting = context;
    struct mint *mint = &minting->mints[index];
    CLEANUP(error_reset) struct error err = {0};
    const char *problem = answer ? json_text(answer, "error") : why;

    tag(minting->client, mint->name, minting->id);
    if (!problem && (ground_learn_box(minting->ground, minting->client, roles[index], mint->name, &err) < 0 ||
                     crew_equip(minting->ground, minting->client, mint->name, &err) < 0)) {
        problem = err.message;
    }
    CLEANUP(freep) char *key = xasprintf("%s.mint.ms", roles[index]);
    CLEANUP(freep) char *took = xasprintf("%lld", (long long)ms);
    ground_set(minting->ground, key, took);
    if (problem) {
        argv_push_format(minting->failures, "%s was not minted: %s (log: %s)", mint->name, problem, mint->log);
        narrate_warn(minting->narrator, "%s: %s", mint->name, problem);
    } else {
        narrate_progress(minting->narrator, "%s is ready after %.1f s", mint->name, (double)ms / 1000);
    }
}

int crew_mint(struct ground *ground, struct client *client, const char *id, unsigned count, const char *template_name,
              bool container, int64_t budget, struct narrator *narrator, struct argv *ret_failures, struct error *err)
{
    struct mint mints[MOST_BOXES] = {0};
    struct pool_job jobs[MOST_BOXES] = {0};
    struct minting minting = {ground, client, mints, id, narrator, ret_failures};
    int result = 0;
    size_t failed_before = ret_failures->count;

    count = count < MOST_BOXES ? count : MOST_BOXES;
    for (unsigned i = 0; i < count && result == 0; i++) {
        (void)snprintf(mints[i].name, sizeof(mints[i].name), CREW_PREFIX "%c-%s", 'a' + (int)i, id);
        mints[i].ground = ground;
        mints[i].template_name = template_name;
        mints[i].container = container;
        mints[i].budget = budget;
        mints[i].log = xasprintf("%s/mint-%s.log", ground->directory, mints[i].name);
        jobs[i] = (struct pool_job){.work = mint_one, .context = &mints[i], .budget = budget + 5000};
        result = crew_note("instance", mints[i].name, err);
    }
    if (result == 0) {
        narrate_step(narrator, "minting %u boxes; logs: %s/mint-*.log", count, ground->directory);
        result = pool_run(jobs, count, count, narrator, minted, &minting, err);
        if (result == 0) {
            narrate_done(narrator, "%u minted", count - (unsigned)(ret_failures->count - failed_before));
        }
    }
    for (unsigned i = 0; i < count; i++) {
        free(mints[i].log);
    }
    return result;
}

int crew_equip(const struct ground *ground, struct client *client, const char *instance, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer program = {0};
    struct guestfile_owner owner = {.mode = 0755};

    if (fd_read_file(ground->instrument, PROBE_CEILING, &program, err) < 0 ||
        guestfile_write(client, instance, ground->guest_program, program.data, program.length, &owner, err) < 0) {
        return error_wrap(err, "putting the instrument into %s", instance);
    }
    return 0;
}

int crew_strip(const struct ground *ground, struct client *client, const char *instance, struct error *err)
{
    return guestfile_delete(client, instance, ground->guest_program, err);
}

/* Removing -------------------------------------------------------------------------------------------------------- */

/* Waits for the creates of noted names that nobody waits for any more: their instances may not be there yet. */
static int settle(struct client *client, struct error *err)
{
    static const char kind[] = "instance.";
    DIR *directory = opendir(MADE_DIRECTORY);
    int result = 0;

    for (struct dirent *entry; result == 0 && directory && (entry = readdir(directory));) {
        if (text_starts_with(entry->d_name, kind)) {
            result = busy_wait(client, entry->d_name + strlen(kind), err);
        }
    }
    if (directory) {
        (void)closedir(directory);
    }
    return result;
}

static int leftover_instances(struct client *client, struct argv *names, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    const json_t *row;
    size_t at;

    if (instance_list(client, NULL, &instances, err) < 0) {
        return -1;
    }
    json_array_foreach(instances, at, row)
    {
        const char *name = json_text(row, "name");
        bool tagged = tag_value(row, CREW_TAG) != NULL;
        /* A name alone never decides: it has to be one that a drill wrote down. */
        if (name && (tagged || (text_starts_with(name, CREW_PREFIX) && is_noted("instance", name)))) {
            argv_push_format(names, "instance %s", name);
        }
    }
    return 0;
}

static void leftover_object(struct client *client, const char *kind, const char *name, struct argv *names)
{
    CLEANUP(freep) char *path = xasprintf("/1.0/%ss/%s", kind, name);
    CLEANUP(json_freep) json_t *object = NULL;

    if (client_get(client, path, &object, NULL) == 0 && json_text(json_object_get(object, "config"), CREW_TAG)) {
        argv_push_format(names, "%s %s", kind, name);
    }
}

/* Those of the older names: a table carries no mark, but a drill that laid them wrote that down. */
static int leftover_tables(struct argv *names, struct error *err)
{
    CLEANUP(argv_reset) struct argv standing = {0};

    if (!is_noted("table", OLDER_NFT_TABLE) || geteuid() != 0) {
        return 0;
    }
    if (table_nft_stands(OLDER_NFT_TABLE, &standing, err) < 0) {
        return -1;
    }
    if (standing.count > 0) {
        argv_push(names, "table " OLDER_NFT_TABLE);
    }
    return 0;
}

int crew_leftovers(struct client *client, struct argv *ret_names, struct error *err)
{
    if (leftover_instances(client, ret_names, err) < 0) {
        return -1;
    }
    leftover_object(client, "profile", CREW_PROFILE, ret_names);
    leftover_object(client, "network", CREW_NETWORK, ret_names);
    leftover_object(client, "network-acl", CREW_ACL, ret_names);
    leftover_object(client, "profile", OLDER_PROFILE, ret_names);
    leftover_object(client, "network", OLDER_NETWORK, ret_names);
    leftover_object(client, "network-acl", OLDER_ACL, ret_names);
    leftover_object(client, "project", RESTRICTED_PROJECT, ret_names);
    return leftover_tables(ret_names, err);
}

static int remove_one(struct client *client, const char *item, struct narrator *narrator, struct error *err)
{
    const char *name = strchr(item, ' ') + 1;

    if (text_starts_with(item, "instance ")) {
        return remove_instance(client, name, narrator, err);
    }
    if (text_starts_with(item, "project ")) {
        return restricted_remove(client, err);
    }
    if (text_equal(item, "table " OLDER_NFT_TABLE)) {
        return table_nft_remove(OLDER_NFT_TABLE, err);
    }
    CLEANUP(freep) char *path = xasprintf("/1.0/%.*ss/%s", (int)(name - item - 1), item, name);
    return client_request(client, "DELETE", path, NULL, NULL, err);
}

int crew_remove(struct client *client, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv names = {0};
    CLEANUP(argv_reset) struct argv left = {0};

    if (settle(client, err) < 0 || crew_leftovers(client, &names, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < names.count; i++) {
        CLEANUP(error_reset) struct error why = {0};
        narrate_progress(narrator, "removing %s", names.items[i]);
        if (remove_one(client, names.items[i], narrator, &why) < 0 && why.code != ERR_NOT_FOUND) {
            narrate_warn(narrator, "%s: %s", names.items[i], why.message);
        }
    }
    if (crew_leftovers(client, &left, err) < 0) {
        return -1;
    }
    if (left.count > 0) {
        CLEANUP(freep) char *which = argv_join(&left, ", ");
        return error_set(err, ERR_STATE, "these could not be removed: %s", which);
    }
    forget_all();
    return 0;
}
