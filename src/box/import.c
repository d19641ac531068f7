/* A box from a file that somebody else may have made: imported under another name, reduced, given an identity, and only
 * then a box. Not for looking into the file first: artifact.c. */
#include "box/import.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/birth.h"
#include "box/contract.h"
#include "box/identity.h"
#include "box/name.h"
#include "box/reduce.h"
#include "box/remove.h"
#include "box/snapshot.h"
#include "box/tag.h"
#include "incus/backup.h"
#include "incus/instance.h"
#include "stack/names.h"

#include <stdlib.h>

#define PUT_BUDGET 60000

struct import {
    struct client *client;
    const struct import_request *request;
    struct narrator *narrator;
    struct birth birth; /* for its id and the question whether the name is free */
    char *temporary;    /* name until it is a box */
    char *pool;
};

static void import_reset(struct import *import)
{
    free(import->temporary);
    free(import->pool);
    birth_reset(&import->birth);
}

static int find_pool(struct import *import, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    const char *pool = NULL;

    if (client_get(import->client, "/1.0/profiles/" STACK_PROFILE, &profile, &cause) == 0) {
        pool = json_string_value(json_path(profile, "devices", "root", "pool", NULL));
    } else if (cause.code != ERR_NOT_FOUND) {
        return error_move(err, &cause);
    }
    if (!pool) {
        error_set(err, ERR_STATE, "this host is not set up for boxes");
        return error_remedy(err, "sudo box setup-host");
    }
    import->pool = xstrdup(pool);
    return 0;
}

/* Snapshots cannot be changed: one that is off the contract, or whose label could not be named, goes. */
static int drop_snapshots(struct import *import, struct error *err)
{
    struct snapshot *snapshots = NULL;
    size_t count = 0;
    int result = 0;

    if (snapshot_list(import->client, import->temporary, &snapshots, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count && result == 0; i++) {
        CLEANUP(argv_reset) struct argv deviations = {0};

        contract_check(snapshots[i].object, &deviations);
        if (snapshot_check_label(snapshots[i].label, NULL) < 0) {
            argv_push(&deviations, "its label is none");
        }
        if (deviations.count > 0) {
            CLEANUP(freep) char *list = argv_join(&deviations, "; ");

            narrate_warn(import->narrator, "left out, the snapshot %s: %s", snapshots[i].label, list);
            result = instance_snapshot_delete(import->client, import->temporary, snapshots[i].label, PUT_BUDGET, err);
        }
    }
    snapshot_list_free(snapshots, count);
    return result;
}

static void stamp(const struct import *import, const json_t *instance, json_t *body)
{
    char now[21];
    uint64_t count = 0;
    const char *former = tag_value(instance, TAG_IMPORTED_COUNT);

    clock_format_now(now);
    (void)text_parse_number(former ? former : "", 0, 1000000, &count);
    CLEANUP(freep) char *number = xasprintf("%llu", (unsigned long long)count + 1);

    /* As if it were a copy: then the image's templates give it an identity of its own. */
    reduce_set(body, "volatile.apply_template", "copy");
    reduce_set(body, TAG_KEY, "1");
    reduce_set(body, TAG_STATE, TAG_STATE_MINTING);
    reduce_set(body, TAG_REASON, NULL);
    reduce_set(body, TAG_SEED, NULL);
    reduce_set(body, TAG_LOGIN, NULL); /* a stranger's command, in box's own words */
    reduce_set(body, TAG_MINT, import->birth.id);
    reduce_set(body, TAG_MODE, import->request->artifact->vm ? "vm" : "container");
    reduce_set(body, TAG_IMPORTED_COUNT, number);
    reduce_set(body, TAG_IMPORTED_LAST, now);
    if (!tag_value(instance, TAG_IMPORTED_FIRST)) {
        reduce_set(body, TAG_IMPORTED_FIRST, now);
    }
}

/* What the daemon made of the file is what counts; what the file says of itself was a claim. */
static int reduce(struct import *import, char **ret_instance_id, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(freep) char *etag = NULL;
    CLEANUP(argv_reset) struct argv stripped = {0};
    const struct reduce_options options = {.fresh = true, .pool = import->pool};

    if (instance_get_tagged(import->client, import->temporary, &instance, &etag, err) < 0) {
        return -1;
    }
    if (!tag_is_box(instance)) {
        return error_set(err, ERR_CONTRACT, "%s holds an instance of Incus that is no box", import->request->path);
    }
    CLEANUP(json_freep) json_t *body = reduce_body(instance, &options, &stripped);

    for (size_t i = 0; i < stripped.count; i++) {
        narrate_warn(import->narrator, "taken away, off the contract: %s", stripped.items[i]);
    }
    reduce_tell_own(instance, import->narrator);
    stamp(import, instance, body);
    if (instance_put(import->client, import->temporary, etag, body, PUT_BUDGET, err) < 0) {
        return error_wrap(err, "cannot put it on the contract");
    }
    const char *id = tag_value(instance, TAG_INSTANCE_ID);

    *ret_instance_id = id ? xstrdup(id) : NULL;
    return drop_snapshots(import, err);
}

/* The last look before it gets its name. */
static int check(struct import *import, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(argv_reset) struct argv deviations = {0};

    if (instance_get(import->client, import->temporary, &instance, err) < 0) {
        return -1;
    }
    contract_check(instance, &deviations);
    if (deviations.count > 0) {
        CLEANUP(freep) char *list = argv_join(&deviations, "; ");

        return error_set(err, ERR_CONTRACT, "it cannot be brought onto the contract: %s", list);
    }
    return 0;
}

static int become_a_box(struct import *import, struct error *err)
{
    const struct import_request *request = import->request;
    CLEANUP(freep) char *instance_id = NULL;
    CLEANUP(json_freep) json_t *done = json_pack("{s:{s:s}}", "config", TAG_STATE, "");

    if (reduce(import, &instance_id, err) < 0 || check(import, err) < 0) {
        return -1;
    }
    if (request->artifact->vm) {
        narrate_warn(import->narrator,
                     "a VM's disk cannot be changed from outside: %s starts with the machine-id and SSH "
                     "host keys of its source; its MAC and address are its own",
                     request->name);
    }
    /* Still marked as incomplete. First the name: the daemon looks for what it keeps open of a container by that. */
    if (instance_rename(import->client, import->temporary, request->name, err) < 0) {
        return error_wrap(err, "cannot name it %s", request->name);
    }
    if (!request->artifact->vm && identity_renew(import->client, request->name, request->name, instance_id, err) < 0) {
        return -1;
    }
    return instance_patch(import->client, request->name, done, err);
}

/* Nobody else knows the temporary name; the final one is only touched where it carries this import's id. */
static void clean_up(struct import *import)
{
    CLEANUP(error_reset) struct error cause = {0};
    bool removed = false;

    cancel_mask(true);
    if (remove_instance(import->client, import->temporary, import->narrator, &cause) < 0 ||
        remove_minted(import->client, import->request->name, import->birth.id, import->narrator, &removed, &cause) <
            0) {
        narrate_warn(import->narrator, "cannot clean up: %s. If `box list` shows %s or %s as incomplete: box rm it",
                     cause.message, import->temporary, import->request->name);
    }
    cancel_mask(false);
}

int import_run(struct client *client, const struct import_request *request, struct narrator *narrator,
               struct box **ret_box, struct error *err)
{
    CLEANUP(import_reset)
    struct import import = {.client = client,
                            .request = request,
                            .narrator = narrator,
                            .birth = {.client = client, .narrator = narrator, .name = request->name}};
    CLEANUP(error_reset) struct error cause = {0};

    if (name_check_new(request->name, err) < 0 || birth_check_free(&import.birth, err) < 0 ||
        birth_begin(&import.birth, err) < 0 || find_pool(&import, err) < 0) {
        return -1;
    }
    import.temporary = xasprintf(IMPORT_PREFIX "%s", import.birth.id);
    narrate_step(narrator, "importing %s as %s", request->path, request->name);
    if (backup_import(client, import.temporary, import.pool, request->fd, request->length, narrator, &cause) < 0 ||
        become_a_box(&import, &cause) < 0) {
        clean_up(&import);
        error_wrap(&cause, "cannot import %s", request->path);
        return error_move(err, &cause);
    }
    narrate_done(narrator, "%s", "");
    return box_find(client, request->name, ret_box, err);
}
