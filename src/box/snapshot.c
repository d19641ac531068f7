/* Snapshots: taken, listed, removed, and gone back to with the contract held.
 * Not for copies of one: clone.c. */
#include "box/snapshot.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/power.h"
#include "box/reduce.h"
#include "box/tag.h"
#include "incus/call.h"
#include "incus/instance.h"
#include "stack/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_MAXIMUM  63
#define TAKE_BUDGET    (10 * 60 * 1000) /* a pool that does not copy on write copies all */
#define RESTORE_BUDGET (10 * 60 * 1000)
#define PUT_BUDGET     60000

int snapshot_check_label(const char *label, struct error *err)
{
    size_t length = strlen(label);
    bool valid = length >= 1 && length <= LABEL_MAXIMUM && isalnum((unsigned char)label[0]) &&
                 strspn(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;

    if (valid) {
        return 0;
    }
    CLEANUP(freep) char *shown = text_sanitise(label, strnlen(label, LABEL_MAXIMUM + 1));

    return error_set(err, ERR_USAGE,
                     "'%s' cannot be a snapshot's label: 1 to 63 letters, digits and . _ -, a letter or digit first",
                     shown);
}

static void fill(struct snapshot *snapshot, json_t *object)
{
    const char *name = json_text(object, "name");
    const char *created = json_text(object, "created_at");
    const char *slash = name ? strrchr(name, '/') : NULL;

    *snapshot = (struct snapshot){.label = xstrdup(slash  ? slash + 1
                                                   : name ? name
                                                          : ""),
                                  .object = json_incref(object)};
    if (!created || !clock_parse(created, &snapshot->created)) {
        snapshot->created = 0;
    }
}

void snapshot_reset(struct snapshot *snapshot)
{
    free(snapshot->label);
    json_decref(snapshot->object);
    *snapshot = (struct snapshot){0};
}

void snapshot_list_free(struct snapshot *snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snapshot_reset(&snapshots[i]);
    }
    free(snapshots);
}

static int compare_age(const void *a, const void *b)
{
    const struct snapshot *left = a, *right = b;

    if (left->created != right->created) {
        return left->created < right->created ? -1 : 1;
    }
    return strcmp(left->label, right->label);
}

int snapshot_list(struct client *client, const char *name, struct snapshot **ret_snapshots, size_t *ret_count,
                  struct error *err)
{
    CLEANUP(json_freep) json_t *array = NULL;
    json_t *object;
    size_t i;

    if (instance_snapshot_list(client, name, &array, err) < 0) {
        return -1;
    }
    struct snapshot *snapshots = xcalloc(json_array_size(array) + 1, sizeof(*snapshots));

    json_array_foreach(array, i, object)
    {
        fill(&snapshots[i], object);
    }
    qsort(snapshots, json_array_size(array), sizeof(*snapshots), compare_age);
    *ret_snapshots = snapshots;
    *ret_count = json_array_size(array);
    return 0;
}

static int not_there(const char *name, const char *label, struct error *err)
{
    error_set(err, ERR_NOT_FOUND, "the box %s has no snapshot %s", name, label);
    return error_remedy(err, "which it has: box info %s", name);
}

int snapshot_find(struct client *client, const char *name, const char *label, struct snapshot *ret_snapshot,
                  struct error *err)
{
    CLEANUP(json_freep) json_t *object = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *encoded = text_url_encode(label);
    CLEANUP(freep) char *rest = xasprintf("/snapshots/%s", encoded);
    CLEANUP(freep) char *path = call_path("instances", name, rest);

    if (snapshot_check_label(label, err) < 0) {
        return -1;
    }
    if (client_get(client, path, &object, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? not_there(name, label, err) : error_move(err, &cause);
    }
    fill(ret_snapshot, object);
    return 0;
}

int snapshot_take(struct client *client, const char *name, const char *label, struct narrator *narrator,
                  struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (snapshot_check_label(label, err) < 0) {
        return -1;
    }
    narrate_step(narrator, "taking the snapshot %s of %s", label, name);
    if (instance_snapshot_create(client, name, label, TAKE_BUDGET, narrator, &cause) < 0) {
        if (cause.code == ERR_EXISTS) {
            error_set(err, ERR_EXISTS, "the box %s has a snapshot %s already", name, label);
            return error_remedy(err, "box snapshot rm %s %s, or choose another label", name, label);
        }
        error_wrap(&cause, "cannot take the snapshot %s of %s", label, name);
        return error_move(err, &cause);
    }
    narrate_done(narrator, "%s", "");
    return 0;
}

int snapshot_remove(struct client *client, const char *name, const char *label, struct narrator *narrator,
                    struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (snapshot_check_label(label, err) < 0) {
        return -1;
    }
    narrate_step(narrator, "removing the snapshot %s of %s", label, name);
    if (instance_snapshot_delete(client, name, label, TAKE_BUDGET, &cause) < 0) {
        if (cause.code == ERR_NOT_FOUND) {
            return not_there(name, label, err);
        }
        error_wrap(&cause, "cannot remove the snapshot %s of %s", label, name);
        return error_move(err, &cause);
    }
    narrate_done(narrator, "removed");
    return 0;
}

static bool copies_on_write(struct client *client, const struct box *box, char **ret_driver)
{
    static const char *const cheap[] = {"btrfs", "zfs", "lvm", "lvmcluster", "ceph"};
    CLEANUP(json_freep) json_t *pool = NULL;
    const char *name = json_string_value(json_path(box->instance, "expanded_devices", "root", "pool", NULL));
    CLEANUP(freep) char *path = call_path("storage-pools", name ? name : "", "");

    if (!name || client_get(client, path, &pool, NULL) < 0 || !json_text(pool, "driver")) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(cheap); i++) {
        if (text_equal(json_text(pool, "driver"), cheap[i])) {
            return true;
        }
    }
    *ret_driver = xstrdup(json_text(pool, "driver"));
    return false;
}

bool snapshot_is_cheap(struct client *client, const struct box *box)
{
    CLEANUP(freep) char *driver = NULL;

    return copies_on_write(client, box, &driver);
}

bool snapshot_mark(struct client *client, const struct box *box, const char *mark, struct narrator *narrator)
{
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *driver = NULL;

    if (!copies_on_write(client, box, &driver)) {
        narrate_note(narrator, "no mark %s is made: the pool is %s, which would copy the whole disk", mark,
                     driver ? driver : "of an unknown kind");
        return false;
    }
    if (text_equal(mark, SNAPSHOT_BOOTSTRAPPED)) {
        (void)instance_snapshot_delete(client, box->name, mark, TAKE_BUDGET, NULL);
    }
    if (instance_snapshot_create(client, box->name, mark, TAKE_BUDGET, NULL, &cause) < 0) {
        narrate_warn(narrator, "the mark %s could not be made: %s", mark, cause.message);
        return false;
    }
    return true;
}

/* What box itself put on the instance, and what the user gave it since: never rolled back. */
static bool stays(const char *key)
{
    return text_starts_with(key, "user.box") || text_equal(key, TAG_OLDER) || text_starts_with(key, "limits.") ||
           text_starts_with(key, "boot.") || text_starts_with(key, "volatile.");
}

static void keep_config(const json_t *present, json_t *body, struct narrator *narrator)
{
    json_t *config = json_object_get(body, "config"), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(config, next, key, value)
    {
        if (stays(key) && !text_starts_with(key, "volatile.") && !json_path(present, "config", key, NULL)) {
            if (!text_starts_with(key, "user.")) {
                narrate_note(narrator, "kept as it was: %s stays unset", key);
            }
            (void)json_object_del(config, key);
        }
    }
    json_object_foreach(json_object_get(present, "config"), key, value)
    {
        /* A snapshot that came by import has the MAC of another machine. */
        if (text_starts_with(key, "volatile." STACK_NIC ".")) {
            (void)json_object_set(config, key, value);
        }
        if (!stays(key) || text_starts_with(key, "volatile.") || json_equal(json_object_get(config, key), value)) {
            continue;
        }
        if (!text_starts_with(key, "user.")) {
            narrate_note(narrator, "kept as it was: %s=%s", key, json_string_value(value));
        }
        (void)json_object_set(config, key, value);
    }
}

/* Doors and pins are of the present: a door that was closed since must not open again. */
static void keep_devices(const json_t *restored, json_t *body, struct narrator *narrator)
{
    json_t *devices = json_object_get(body, "devices"), *then = json_object_get(restored, "devices"), *device;
    const char *name;

    json_object_foreach(then, name, device)
    {
        if (!json_object_get(devices, name)) {
            narrate_note(narrator, "not brought back: the device %s of the snapshot", name);
        }
    }
    json_object_foreach(devices, name, device)
    {
        if (!json_equal(device, json_object_get(then, name))) {
            narrate_note(narrator, "kept as it was: the device %s", name);
        }
    }
}

/* The snapshot's configuration where it is the guest's own, the present's where it is box's or the host's. */
static int reassert(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *restored = NULL;
    CLEANUP(argv_reset) struct argv stripped = {0};
    CLEANUP(argv_reset) struct argv present_stripped = {0};
    CLEANUP(freep) char *etag = NULL;
    const struct reduce_options options = {0};

    if (instance_get_tagged(client, box->name, &restored, &etag, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *body = reduce_body(restored, &options, &stripped);
    CLEANUP(json_freep) json_t *present = reduce_body(box->instance, &options, &present_stripped);

    (void)json_object_set(body, "devices", json_object_get(present, "devices"));
    for (size_t i = 0; i < stripped.count; i++) {
        narrate_warn(narrator, "taken away, off the contract: %s", stripped.items[i]);
    }
    for (size_t i = 0; i < present_stripped.count; i++) {
        if (!argv_contains(&stripped, present_stripped.items[i])) {
            narrate_warn(narrator, "taken away, off the contract: %s", present_stripped.items[i]);
        }
    }
    keep_config(box->instance, body, narrator);
    keep_devices(restored, body, narrator);
    return reduce_differs(restored, body) ? instance_put(client, box->name, etag, body, PUT_BUDGET, err) : 0;
}

static int stop_for(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    bool stopped = false;

    return power_down(client, box, 0, narrator, &stopped, err);
}

static int start_again(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    CLEANUP(box_freep) struct box *now = NULL;
    bool started = false;

    if (box_find(client, box->name, &now, err) < 0 || power_start(client, now, narrator, &started, err) < 0) {
        return error_wrap(err, "%s is restored, but not running again", box->name);
    }
    return 0;
}

int snapshot_restore(struct client *client, const struct box *box, const struct snapshot *snapshot,
                     struct narrator *narrator, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    bool was_running = !text_equal(box->status, "Stopped");

    if (!tag_is_box(snapshot->object)) {
        error_set(err, ERR_CONTRACT, "the snapshot %s is of an instance that was no box then", snapshot->label);
        return error_remedy(err, "box snapshot rm %s %s", box->name, snapshot->label);
    }
    /* Incus would start a running one again by itself, with whatever configuration the snapshot has. */
    if (was_running && stop_for(client, box, narrator, err) < 0) {
        return -1;
    }
    narrate_step(narrator, "going back to the snapshot %s of %s", snapshot->label, box->name);
    cancel_mask(true);
    int result = instance_snapshot_restore(client, box->name, snapshot->label, RESTORE_BUDGET, narrator, &cause);
    if (result == 0) {
        result = reassert(client, box, narrator, &cause);
    }
    cancel_mask(false);
    if (result < 0) {
        error_wrap(&cause, "cannot restore %s to %s", box->name, snapshot->label);
        if (!cause.remedy) {
            error_remedy(&cause, "it is stopped; try again: box restore %s %s --force", box->name, snapshot->label);
        }
        return error_move(err, &cause);
    }
    narrate_done(narrator, "%s", "");
    return was_running ? start_again(client, box, narrator, err) : 0;
}
