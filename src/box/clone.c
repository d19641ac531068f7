/* Copies of boxes: the request, the contract, the stamp of a birth of its own.
 * Not for the identity within the guest (identity.c), nor for its boot (birth.c). */
#include "box/clone.h"

#include "base/argv.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/birth.h"
#include "box/contract.h"
#include "box/identity.h"
#include "box/name.h"
#include "box/reduce.h"
#include "box/tag.h"
#include "incus/instance.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <stdlib.h>

#define COPY_BUDGET (20 * 60 * 1000) /* a pool that does not copy on write copies all */
#define PUT_BUDGET  60000

struct clone {
    struct client *client;
    const struct clone_request *request;
    struct narrator *narrator;
    struct birth birth;
    const json_t *object; /* what is copied, as the daemon has it */
    char *path;           /* "a" or "a/one" */
};

static void clone_reset(struct clone *clone)
{
    free(clone->path);
    birth_reset(&clone->birth);
}

static void put(json_t *config, const char *key, const char *value)
{
    (void)json_object_set_new(config, key, json_string(value ? value : ""));
}

/* A copy inherits each key that the request does not name; an empty one is as good as none until clone_reduce(). */
json_t *clone_body(const char *name, const char *path, const json_t *object, const json_t *config,
                   struct argv *ret_stripped)
{
    const struct reduce_options options = {.fresh = true};
    CLEANUP(json_freep) json_t *reduced = reduce_body(object, &options, ret_stripped);
    json_t *all = json_object(), *devices = json_object(), *value;
    const char *key;

    json_object_foreach(json_object_get(object, "config"), key, value)
    {
        if (text_starts_with(key, "volatile.")) {
            continue;
        }
        json_t *kept = json_path(reduced, "config", key, NULL);

        (void)json_object_set_new(all, key, kept ? json_incref(kept) : json_string(""));
    }
    json_object_foreach(json_object_get(object, "devices"), key, value)
    {
        json_t *kept = json_path(reduced, "devices", key, NULL);

        (void)json_object_set_new(devices, key, kept ? json_incref(kept) : json_pack("{s:s}", "type", "none"));
    }
    (void)json_object_update(all, (json_t *)config);
    json_t *body =
        json_pack("{s:s, s:[s], s:o, s:o, s:{s:s, s:s, s:b}}", "name", name, "profiles", STACK_PROFILE, "config", all,
                  "devices", devices, "source", "type", "copy", "source", path, "instance_only", 1);

    if (!body) {
        abort();
    }
    return body;
}

int clone_reduce(struct client *client, const char *name, struct error *err)
{
    CLEANUP(json_freep) json_t *copy = NULL;
    CLEANUP(argv_reset) struct argv stripped = {0};
    CLEANUP(freep) char *etag = NULL;
    const struct reduce_options options = {.fresh = true};
    json_t *value;
    const char *key;
    void *next;

    if (instance_get_tagged(client, name, &copy, &etag, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep) json_t *body = reduce_body(copy, &options, &stripped);
    json_t *config = json_object_get(body, "config");

    /* The daemon's notes on a copy are its own, made a moment ago. */
    json_object_foreach(json_object_get(copy, "config"), key, value)
    {
        if (text_starts_with(key, "volatile.")) {
            (void)json_object_set(config, key, value);
        }
    }
    json_object_foreach_safe(config, next, key, value)
    {
        if (text_is_empty(json_string_value(value))) {
            (void)json_object_del(config, key);
        }
    }
    return reduce_differs(copy, body) ? instance_put(client, name, etag, body, PUT_BUDGET, err) : 0;
}

static int check_source(struct clone *clone, struct error *err)
{
    const struct clone_request *request = clone->request;
    CLEANUP(argv_reset) struct argv deviations = {0};
    const struct box *source = request->source;

    if (source->state) {
        error_set(err, ERR_STATE, "%s is incomplete (%s): a copy of it would be, too", source->name,
                  source->reason ? source->reason : source->state);
        return error_remedy(err, "box rm %s, then mint it anew", source->name);
    }
    if (!tag_is_box(clone->object)) {
        return error_set(err, ERR_CONTRACT, "%s is of an instance that was no box then", clone->path);
    }
    contract_check(clone->object, &deviations);
    if (deviations.count == 0 || request->strip) {
        return 0;
    }
    CLEANUP(freep) char *list = argv_join(&deviations, "; ");

    error_set(err, ERR_CONTRACT, "%s is off the isolation contract: %s", clone->path, list);
    return error_remedy(err, "a clone without that: box new %s --from %s --strip", request->name, clone->path);
}

/* The birth of the copy, and nothing of its source's. */
static json_t *make_stamp(const struct clone *clone)
{
    static const char *const cleared[] = {TAG_REASON, TAG_SEED, TAG_IMPORTED_FIRST, TAG_IMPORTED_LAST,
                                          TAG_IMPORTED_COUNT};
    const struct clone_request *request = clone->request;
    CLEANUP(freep) char *origin = xasprintf("clone of %s", clone->path);
    json_t *config = json_object();
    char created[21];

    clock_format_now(created);
    put(config, TAG_KEY, "1");
    put(config, TAG_STATE, TAG_STATE_MINTING);
    put(config, TAG_MINT, clone->birth.id);
    put(config, TAG_SCHEMA, "1");
    put(config, TAG_VERSION, request->version);
    put(config, TAG_CREATED, created);
    put(config, TAG_MODE, clone->birth.vm ? "vm" : "container");
    put(config, TAG_ORIGIN, request->template ? "warm mint" : origin);
    put(config, TAG_USER, clone->birth.user);
    if (request->template) {
        put(config, TAG_TEMPLATE, request->template->name);
        put(config, TAG_DIGEST, request->template->digest);
        put(config, "boot.autostart", request->template->autostart ? "true" : "false");
    }
    /* Of the box as it is and not of a snapshot, which may have come from somewhere else (import.c). */
    if (tag_value(clone->object, TAG_LOGIN) || tag_value(request->source->instance, TAG_LOGIN)) {
        put(config, TAG_LOGIN, tag_value(request->source->instance, TAG_LOGIN));
    }
    /* cloud-init of an image that knows no such key goes by the instance's name. */
    if (!tag_value(clone->object, TAG_INSTANCE_ID)) {
        put(config, TAG_INSTANCE_ID, request->source->name);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(cleared); i++) {
        if (tag_value(clone->object, cleared[i])) {
            put(config, cleared[i], "");
        }
    }
    return config;
}

/* A seed's limits are those of whoever asked for it: each is the request's, or none. */
static void set_limits(const struct clone *clone, json_t *config, json_t *devices)
{
    const struct clone_request *request = clone->request;
    const struct limits *limits = &request->limits;
    json_t *root = json_object_get(devices, "root");

    if (limits->cpu || request->template) {
        put(config, "limits.cpu", limits->cpu);
    }
    if (limits->memory || request->template) {
        put(config, "limits.memory", limits->memory);
    }
    if (!root && limits->disk) {
        root = json_pack("{s:s, s:s, s:o}", "type", "disk", "path", "/", "pool",
                         json_incref(json_path(clone->object, "expanded_devices", "root", "pool", NULL)));
        (void)json_object_set_new(devices, "root", root);
    }
    if (limits->disk) {
        (void)json_object_set_new(root, "size", json_string(limits->disk));
    } else if (root && request->template) {
        (void)json_object_del(root, "size");
    }
}

static void tell(const struct clone *clone, const struct argv *stripped)
{
    for (size_t i = 0; i < stripped->count; i++) {
        narrate_warn(clone->narrator, "left out, off the contract: %s", stripped->items[i]);
    }
    reduce_tell_own(clone->object, clone->narrator);
}

static int create(void *context, struct error *err)
{
    struct clone *clone = context;
    const struct clone_request *request = clone->request;
    CLEANUP(json_freep) json_t *stamp = make_stamp(clone);
    CLEANUP(argv_reset) struct argv stripped = {0};
    CLEANUP(json_freep) json_t *body = clone_body(request->name, clone->path, clone->object, stamp, &stripped);

    set_limits(clone, json_object_get(body, "config"), json_object_get(body, "devices"));
    tell(clone, &stripped);
    if (request->template) {
        narrate_step(clone->narrator, "creating %s from the seed of %s", request->name, request->template->name);
    } else {
        narrate_step(clone->narrator, "copying %s to %s", clone->path, request->name);
    }
    if (instance_create(clone->client, body, COPY_BUDGET, clone->narrator, err) < 0) {
        return error_wrap(err, "cannot copy %s to %s", clone->path, request->name);
    }
    if (clone_reduce(clone->client, request->name, err) < 0) {
        return error_wrap(err, "cannot put %s on the contract", request->name);
    }
    if (!clone->birth.vm && identity_renew(clone->client, request->name, request->name,
                                           tag_value(clone->object, TAG_INSTANCE_ID), err) < 0) {
        return -1;
    }
    narrate_done(clone->narrator, "%s", "");
    return 0;
}

static int require_watcher(struct error *err)
{
    if (arm_watcher_runs()) {
        return 0;
    }
    error_set(err, ERR_STATE, "the watcher that lets boxes speak does not run: a box would have no network");
    return error_remedy(err, "sudo box setup-host (or: systemctl start " STACK_UNIT ")");
}

int clone_run(struct client *client, const struct clone_request *request, struct narrator *narrator,
              struct box **ret_box, struct error *err)
{
    const struct box *source = request->source;
    CLEANUP(clone_reset)
    struct clone clone = {
        .client = client,
        .request = request,
        .narrator = narrator,
        .object = request->snapshot ? request->snapshot->object : source->instance,
        .path = request->snapshot ? xasprintf("%s/%s", source->name, request->snapshot->label) : xstrdup(source->name),
    };
    const char *user = request->template ? request->template->user : source->user;

    clone.birth = (struct birth){.client = client,
                                 .narrator = narrator,
                                 .name = request->name,
                                 .vm = source->vm,
                                 .renew = source->vm,
                                 .lenient = !request->template,
                                 .user = user ? user : "root",
                                 .limits = &request->limits,
                                 .budget = request->budget};
    if (name_check_new(request->name, err) < 0 || check_source(&clone, err) < 0 ||
        birth_check_free(&clone.birth, err) < 0 || require_watcher(err) < 0 || birth_begin(&clone.birth, err) < 0) {
        return -1;
    }
    return birth_run(&clone.birth, create, &clone, ret_box, err);
}
