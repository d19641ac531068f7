/* Removing a box, and what a failed mint has left.
 * Not for asking first (src/cli). The tag is looked at again immediately before: between a question and its answer
 * another instance may have taken the name. */
#include "box/remove.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/busy.h"
#include "box/tag.h"
#include "incus/instance.h"

#define STOP_BUDGET   60000  /* milliseconds for a kill */
#define DELETE_BUDGET 600000 /* milliseconds: a pool that is no copy-on-write one deletes file by file */

static int stop(struct client *client, const char *name, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (instance_change_state(client, name, "stop", 0, true, STOP_BUDGET, narrator, &cause) == 0 ||
        cause.code == ERR_NOT_FOUND) {
        return 0;
    }
    /* It may have gone down by itself in between. */
    if (cause.code != ERR_INTERRUPTED && instance_get(client, name, &instance, NULL) == 0 &&
        text_equal(json_text(instance, "status"), "Stopped")) {
        return 0;
    }
    return error_move(err, &cause);
}

static int discard(struct client *client, const char *name, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (instance_delete(client, name, DELETE_BUDGET, &cause) == 0 || cause.code == ERR_NOT_FOUND) {
        return 0;
    }
    return error_move(err, &cause);
}

static int stop_and_delete(struct client *client, const json_t *instance, const char *name, struct narrator *narrator,
                           struct error *err)
{
    if (!text_equal(json_text(instance, "status"), "Stopped") && stop(client, name, narrator, err) < 0) {
        return -1;
    }
    return discard(client, name, err);
}

/* The daemon's object as it is now; 0 where there is none. */
static int look(struct client *client, const char *name, json_t **ret_instance, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (instance_get(client, name, ret_instance, &cause) == 0) {
        return 1;
    }
    return cause.code == ERR_NOT_FOUND ? 0 : error_move(err, &cause);
}

/* What the daemon has under the name of a box: 1 the box, with its state as it is now; 0 nothing any more. */
static int look_again(struct client *client, const struct box *box, json_t **ret_instance, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int found = look(client, box->name, &instance, err);

    if (found <= 0) {
        return found;
    }
    if (!tag_is_box(instance) ||
        !text_equal(tag_value(instance, "volatile.uuid"), tag_value(box->instance, "volatile.uuid"))) {
        error_set(err, ERR_STATE, "its name belongs to another instance since a moment ago; that was not touched");
        return error_remedy(err, "box list");
    }
    *ret_instance = steal(&instance);
    return 1;
}

/* What is to be removed. Which instance that is depends on who asks: one of `box` and `mint_id`, or neither. */
struct removal {
    struct client *client;
    struct narrator *narrator;
    const char *name;
    const struct box *box;
    const char *mint_id;
};

/* 1: that instance is there; 0: it is not. */
static int find(const struct removal *removal, json_t **ret_instance, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (removal->box) {
        return look_again(removal->client, removal->box, ret_instance, err);
    }
    int found = look(removal->client, removal->name, &instance, err);

    if (found > 0 && removal->mint_id &&
        (!tag_is_box(instance) || !text_equal(tag_value(instance, TAG_MINT), removal->mint_id))) {
        return 0;
    }
    *ret_instance = steal(&instance);
    return found;
}

/* One attempt. 1: removed; 0: there is nothing; -1: failed. */
static int attempt(const struct removal *removal, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int found = find(removal, &instance, err);

    if (found > 0 && stop_and_delete(removal->client, instance, removal->name, removal->narrator, err) < 0) {
        return -1;
    }
    return found;
}

static int remove_persistently(const struct removal *removal, struct error *err)
{
    int64_t deadline = clock_deadline(BUSY_BUDGET_MS);

    while (true) {
        CLEANUP(error_reset) struct error refusal = {0};
        int result = attempt(removal, &refusal);

        if (result >= 0) {
            return result;
        }
        if (busy_wait_to_retry(removal->client, removal->name, deadline, removal->narrator, &refusal, err) < 0) {
            return -1;
        }
    }
}

int remove_box(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    const struct removal removal = {.client = client, .narrator = narrator, .name = box->name, .box = box};

    narrate_step(narrator, "removing the box %s", box->name);
    int result = remove_persistently(&removal, err);

    if (result < 0) {
        return error_wrap(err, "removing the box %s", box->name);
    }
    narrate_done(narrator, result > 0 ? "removed" : "it was gone already");
    return 0;
}

int remove_minted(struct client *client, const char *name, const char *mint_id, struct narrator *narrator,
                  bool *ret_removed, struct error *err)
{
    const struct removal removal = {.client = client, .narrator = narrator, .name = name, .mint_id = mint_id};

    /* A create whose answer never reached us goes on in the daemon, and its instance may not be there yet. */
    if (busy_wait(client, name, err) < 0) {
        return -1;
    }
    int result = remove_persistently(&removal, err);

    if (result >= 0) {
        *ret_removed = result > 0;
    }
    return result < 0 ? -1 : 0;
}

int remove_instance(struct client *client, const char *name, struct narrator *narrator, struct error *err)
{
    const struct removal removal = {.client = client, .narrator = narrator, .name = name};

    return busy_wait(client, name, err) < 0 || remove_persistently(&removal, err) < 0 ? -1 : 0;
}
