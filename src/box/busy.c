/* Waiting for what the daemon still does with an instance.
 * Not for what is tried again afterwards: remove.c, birth.c. */
#include "box/busy.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <poll.h>
#include <string.h>

#define PAUSE_MS            100 /* milliseconds between two requests to a busy one */
#define OPERATION_UNDER_WAY 200 /* status codes below it are of operations that have not ended */

bool busy_is(const struct error *err)
{
    return err->code == ERR_REFUSED_BY_INCUS && strstr(err->message, "is busy running");
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

            if (id && json_number(operation, "status_code", 0) < OPERATION_UNDER_WAY &&
                !text_equal(json_text(operation, "class"), "websocket") && concerns(operation, path)) {
                return xasprintf("/1.0/operations/%s", id);
            }
        }
    }
    return NULL;
}

int busy_wait(struct client *client, const char *name, struct error *err)
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

int busy_wait_to_retry(struct client *client, const char *name, int64_t deadline, struct narrator *narrator,
                       struct error *refusal, struct error *err)
{
    struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};

    if (!busy_is(refusal) || clock_left(deadline) == 0) {
        return error_move(err, refusal);
    }
    if (busy_wait(client, name, err) < 0) {
        return -1;
    }
    /* A cancelled operation, and a `new` of a taken name, are off the daemon's list before the daemon lets go of the
     * instance, and nothing tells when it does. */
    (void)poll(&cancel, 1, PAUSE_MS);
    narrate_tick(narrator);
    return cancel_check(err);
}
