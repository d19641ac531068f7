/* Removing a box, and what a failed mint has left.
 * Not for asking first (src/cli). The tag is looked at again immediately before: between a question and its answer another
 * instance may have taken the name. */
#include "box/remove.h"

#include "base/cancel.h"
#include "base/text.h"
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

static int delete(struct client *client, const char *name, struct error *err)
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
    return delete(client, name, err);
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

int remove_box(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    narrate_step(narrator, "removing the box %s", box->name);
    int found = look(client, box->name, &instance, err);
    if (found < 0) {
        return error_wrap(err, "removing the box %s", box->name);
    }
    if (found == 0) {
        narrate_done(narrator, "it was gone already");
        return 0;
    }
    if (!tag_is_box(instance) || !text_equal(tag_value(instance, "volatile.uuid"), tag_value(box->instance, "volatile.uuid"))) {
        error_set(err, ERR_STATE, "the name %s belongs to another instance since a moment ago; it was not touched", box->name);
        return error_remedy(err, "box list");
    }
    if (stop_and_delete(client, instance, box->name, narrator, err) < 0) {
        return error_wrap(err, "removing the box %s", box->name);
    }
    narrate_done(narrator, "removed");
    return 0;
}

static int remove_where_stamped(struct client *client, const char *name, const char *mint, struct narrator *narrator,
                                struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int found = look(client, name, &instance, err);

    if (found <= 0) {
        return found;
    }
    if (!tag_is_box(instance) || !text_equal(tag_value(instance, TAG_MINT), mint)) {
        return 0;
    }
    return stop_and_delete(client, instance, name, narrator, err);
}

int remove_leftover(struct client *client, const char *name, const char *mint, struct narrator *narrator,
                    struct error *err)
{
    cancel_mask(true);
    int result = remove_where_stamped(client, name, mint, narrator, err);
    cancel_mask(false);
    return result;
}
