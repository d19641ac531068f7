/* Removing a box, and what a failed mint has left.
 * Not for asking first (src/cli). The tag is looked at again immediately before: between a question and its answer
 * another instance may have taken the name. */
#include "box/remove.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "incus/instance.h"

#include <poll.h>
#include <string.h>

#define STOP_BUDGET         60000  /* milliseconds for a kill */
#define BUSY_PAUSE_MS       100    /* milliseconds between two requests to a busy one */
#define OPERATION_UNDER_WAY 200    /* status codes below it are of operations that have not ended */
#define BUSY_BUDGET_MS      60000  /* milliseconds that what the daemon still does may take */
#define DELETE_BUDGET       600000 /* milliseconds: a pool that is no copy-on-write one deletes file by file */

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

static bool concerns(const json_t *operation, const char *path)
{
    json_t *resource;
    size_t i, length = strlen(path);

    json_array_foreach(json_path(operation, "resources", "instances", NULL), i, resource)
    {
        const char *text = json_string_value(resource);

        if (text && strncmp(text, path, length) == 0 && (text[length] == '\0' || text[length] == '?')) {
            return true;
        }
    }
    return false;
}

/* The path of an operation that the daemon still runs on that instance, pending and cancelling ones too; NULL where
 * there is none. The daemon lists them by their state. */
static char *operation_under_way(const json_t *operations, const char *name)
{
    CLEANUP(freep) char *path = xasprintf("/1.0/instances/%s", name);
    const char *state;
    json_t *group, *operation;
    size_t i;

    json_object_foreach((json_t *)operations, state, group)
    {
        json_array_foreach(group, i, operation)
        {
            const char *id = json_text(operation, "id");

            if (id && json_number(operation, "status_code", 0) < OPERATION_UNDER_WAY && concerns(operation, path)) {
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
        CLEANUP(freep) char *path = operation_under_way(operations, name);

        if (!path) {
            return 0;
        }
        CLEANUP(freep) char *wait = xasprintf("%s/wait?timeout=10", path);

        /* However it ends: the next look tells. */
        (void)client_get(client, wait, NULL, NULL);
    }
    return error_set(err, ERR_TIMEOUT, "the daemon is still busy with %s after %d s", name, BUSY_BUDGET_MS / 1000);
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

/* One attempt. 1: removed; 0: gone already; -1: failed. */
static int attempt(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int found = look_again(client, box, &instance, err);

    if (found > 0 && stop_and_delete(client, instance, box->name, narrator, err) < 0) {
        return -1;
    }
    return found;
}

/* The daemon refuses while another of its operations has the instance: a start, a mint that another `new` is at. Such
 * an operation ends; then it is tried again. */
static bool is_busy(const struct error *err)
{
    return err->code == ERR_REFUSED_BY_INCUS && strstr(err->message, "is busy running");
}

/* After a refusal: 0 where it is worth another try, else -1 with the refusal (or a Ctrl-C) in `err`. A cancelled operation
 * is off the daemon's list before the daemon lets go of the instance, and nothing tells when it does: hence the pause. */
static int wait_to_retry(struct client *client, const char *name, int64_t deadline, struct narrator *narrator,
                         struct error *refusal, struct error *err)
{
    struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};

    if (!is_busy(refusal) || clock_left(deadline) == 0) {
        return error_move(err, refusal);
    }
    if (wait_while_busy(client, name, err) < 0) {
        return -1;
    }
    (void)poll(&cancel, 1, BUSY_PAUSE_MS);
    narrate_tick(narrator);
    return cancel_check(err);
}

int remove_box(struct client *client, const struct box *box, struct narrator *narrator, struct error *err)
{
    int64_t deadline = clock_deadline(BUSY_BUDGET_MS);

    narrate_step(narrator, "removing the box %s", box->name);
    while (true) {
        CLEANUP(error_reset) struct error refusal = {0};
        int result = attempt(client, box, narrator, &refusal);

        if (result >= 0) {
            narrate_done(narrator, result > 0 ? "removed" : "it was gone already");
            return 0;
        }
        if (wait_to_retry(client, box->name, deadline, narrator, &refusal, err) < 0) {
            return error_wrap(err, "removing the box %s", box->name);
        }
    }
}

/* One attempt. 1: removed; 0: there is nothing of that mint; -1: failed. */
static int attempt_minted(struct client *client, const char *name, const char *mint_id, struct narrator *narrator,
                          struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int found = look(client, name, &instance, err);

    if (found > 0 && (!tag_is_box(instance) || !text_equal(tag_value(instance, TAG_MINT), mint_id))) {
        return 0;
    }
    if (found > 0 && stop_and_delete(client, instance, name, narrator, err) < 0) {
        return -1;
    }
    return found;
}

int remove_minted(struct client *client, const char *name, const char *mint_id, struct narrator *narrator,
                  bool *ret_removed, struct error *err)
{
    int64_t deadline = clock_deadline(BUSY_BUDGET_MS);

    if (wait_while_busy(client, name, err) < 0) {
        return -1;
    }
    while (true) {
        CLEANUP(error_reset) struct error refusal = {0};
        int result = attempt_minted(client, name, mint_id, narrator, &refusal);

        if (result >= 0) {
            *ret_removed = result > 0;
            return 0;
        }
        if (wait_to_retry(client, name, deadline, narrator, &refusal, err) < 0) {
            return -1;
        }
    }
}

int remove_instance(struct client *client, const char *name, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (wait_while_busy(client, name, err) < 0) {
        return -1;
    }
    int found = look(client, name, &instance, err);

    return found <= 0 ? found : stop_and_delete(client, instance, name, narrator, err);
}
