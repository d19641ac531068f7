/* Removing a box, and what a failed mint has left.
 * Not for asking first (src/cli). The tag is looked at again immediately before: between a question and its answer
 * another instance may have taken the name. */
#include "box/remove.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "incus/instance.h"

#include <string.h>

#define STOP_BUDGET    60000  /* milliseconds for a kill */
#define BUSY_BUDGET_MS 60000  /* milliseconds that what the daemon still does may take */
#define DELETE_BUDGET  600000 /* milliseconds: a pool that is no copy-on-write one deletes file by file */

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

static int delete (struct client *client, const char *name, struct error *err)
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
    return delete (client, name, err);
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
    if (!tag_is_box(instance) ||
        !text_equal(tag_value(instance, "volatile.uuid"), tag_value(box->instance, "volatile.uuid"))) {
        error_set(err, ERR_STATE, "the name %s belongs to another instance since a moment ago; it was not touched",
                  box->name);
        return error_remedy(err, "box list");
    }
    if (stop_and_delete(client, instance, box->name, narrator, err) < 0) {
        return error_wrap(err, "removing the box %s", box->name);
    }
    narrate_done(narrator, "removed");
    return 0;
}

/* The path of an operation that the daemon still runs on that instance; NULL where there is none. */
static char *running_operation(const json_t *operations, const char *name)
{
    CLEANUP(freep) char *path = xasprintf("/1.0/instances/%s", name);
    json_t *operation, *resource;
    size_t i, j;

    json_array_foreach(json_object_get(operations, "running"), i, operation)
    {
        json_array_foreach(json_path(operation, "resources", "instances", NULL), j, resource)
        {
            const char *text = json_string_value(resource);
            const char *id = json_text(operation, "id");

            if (id && text && strncmp(text, path, strlen(path)) == 0 && strchr("?", text[strlen(path)])) {
                return xasprintf("/1.0/operations/%s", id);
            }
        }
    }
    return NULL;
}

/* A create whose answer never reached us goes on in the daemon, and its instance may not be there yet. */
static int wait_while_busy(struct client *client, const char *name, struct error *err)
{
    int64_t deadline = clock_deadline(BUSY_BUDGET_MS);

    while (clock_left(deadline) != 0) {
        CLEANUP(json_freep) json_t *operations = NULL;

        if (client_get(client, "/1.0/operations?recursion=1", &operations, err) < 0) {
            return -1;
        }
        CLEANUP(freep) char *path = running_operation(operations, name);

        if (!path) {
            return 0;
        }
        CLEANUP(freep) char *wait = xasprintf("%s/wait?timeout=10", path);

        /* However it ends: the next look tells. */
        (void)client_get(client, wait, NULL, NULL);
    }
    return error_set(err, ERR_TIMEOUT, "the daemon is still busy with %s after %d s", name, BUSY_BUDGET_MS / 1000);
}

int remove_minted(struct client *client, const char *name, const char *mint_id, struct narrator *narrator,
                  bool *ret_removed, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (wait_while_busy(client, name, err) < 0) {
        return -1;
    }
    int found = look(client, name, &instance, err);
    if (found < 0) {
        return -1;
    }
    bool ours = found > 0 && tag_is_box(instance) && text_equal(tag_value(instance, TAG_MINT), mint_id);
    if (ours && stop_and_delete(client, instance, name, narrator, err) < 0) {
        return -1;
    }
    *ret_removed = ours;
    return 0;
}
