/* Operations: started, waited for by long-poll under a budget, their progress told, cancelled on the way out.
 * Not for: the shape of their metadata; who starts one knows. */
#include "incus/operation.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "incus/call.h"

#include <limits.h>

#define PROGRESS_EVERY 1000 /* milliseconds: as often as the daemon refreshes it */
#define CANCEL_BUDGET  5000
#define CEILING        ((size_t)64 * 1024 * 1024)

struct operation {
    struct client *client;
    char *path;       /* NULL: the daemon did it at once */
    json_t *metadata; /* the operation's own */
};

int operation_send(struct client *client, const struct call *call, struct operation **ret_operation, struct error *err)
{
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (call_send(client, call, &answer, err) < 0) {
        return -1;
    }
    struct operation *operation = xcalloc(1, sizeof(*operation));
    operation->client = client;
    if (answer.operation) {
        operation->path = steal(&answer.operation);
        operation->metadata = json_incref(json_object_get(answer.metadata, "metadata"));
    } else {
        /* Some versions answer at once what others answer with an operation. */
        operation->metadata = steal(&answer.metadata);
    }
    *ret_operation = operation;
    return 0;
}

int operation_start(struct client *client, const char *method, const char *path, const json_t *body,
                    struct operation **ret_operation, struct error *err)
{
    return operation_send(client, &(struct call){.method = method, .path = path, .body = body}, ret_operation, err);
}

void operation_free(struct operation *operation)
{
    if (!operation) {
        return;
    }
    free(operation->path);
    json_decref(operation->metadata);
    free(operation);
}

const char *operation_path(const struct operation *operation)
{
    return operation->path;
}

const json_t *operation_metadata(const struct operation *operation)
{
    return operation->metadata;
}

int operation_wait_begin(struct operation *operation, struct http_transfer **ret_transfer, struct error *err)
{
    CLEANUP(freep) char *path = xasprintf("%s/wait?timeout=-1", operation->path);
    CLEANUP(freep) char *target = call_target(operation->client, path);
    const struct http_request request = {.method = "GET", .target = target, .ceiling = CEILING};
    return http_begin(client_http(operation->client), &request, ret_transfer, err);
}

int operation_wait_end(struct operation *operation, struct http_transfer *transfer, json_t **ret_metadata,
                       struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    if (http_result(transfer, &http, err) < 0) {
        return -1;
    }
    return envelope_outcome(http.status, http.body.data, http.body.length, ret_metadata, err);
}

/* The question how far it is, on a connection of its own: the long-poll says nothing until the end. */
struct progress {
    struct http_transfer *transfer; /* in flight, or NULL */
    int64_t next;
};

static void follow_progress(struct operation *operation, struct progress *progress, struct narrator *narrator)
{
    if (!progress->transfer) {
        if (clock_now() >= progress->next) {
            CLEANUP(freep) char *target = call_target(operation->client, operation->path);
            const struct http_request request = {.method = "GET", .target = target, .ceiling = CEILING};
            (void)http_begin(client_http(operation->client), &request, &progress->transfer, NULL);
            progress->next = clock_now() + PROGRESS_EVERY;
        }
        return;
    }
    if (!http_ended(progress->transfer)) {
        return;
    }
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    CLEANUP(envelope_reset) struct envelope answer = {0};
    /* An operation that just ended may be gone: the long-poll tells that story. */
    if (http_result(progress->transfer, &http, NULL) == 0 &&
        envelope_read(http.status, http.body.data, http.body.length, operation->path, &answer, NULL) == 0) {
        CLEANUP(freep) char *text = envelope_progress(json_object_get(answer.metadata, "metadata"));
        if (text) {
            narrate_progress(narrator, "%s", text);
        }
    }
    http_abandon(steal(&progress->transfer));
}

static int next_timeout(int64_t deadline, const struct narrator *narrator)
{
    int left = clock_left(deadline);
    return narrator && (left < 0 || left > NARRATE_TICK_MS) ? NARRATE_TICK_MS : left;
}

static int wait_until(struct operation *operation, struct http_transfer *transfer, int64_t budget,
                      struct narrator *narrator, struct error *err)
{
    int64_t deadline = clock_deadline(budget > 0 ? budget : -1), next_tick = clock_now() + NARRATE_TICK_MS;
    struct progress progress = {.next = clock_now() + PROGRESS_EVERY};
    int result = 0;
    while (result == 0 && !http_ended(transfer)) {
        if (cancel_check(err) < 0) {
            result = -1;
            break;
        }
        if (clock_left(deadline) == 0) {
            result = error_set(err, ERR_TIMEOUT, "Incus is not done after %lld s", (long long)((budget + 500) / 1000));
            break;
        }
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};
        result = http_step(client_http(operation->client), &cancel, 1, next_timeout(deadline, narrator), err);
        if (result == 0 && narrator) {
            if (clock_now() >= next_tick) {
                narrate_tick(narrator);
                next_tick = clock_now() + NARRATE_TICK_MS;
            }
            follow_progress(operation, &progress, narrator);
        }
    }
    http_abandon(progress.transfer);
    return result;
}

int operation_wait(struct operation *operation, int64_t budget, struct narrator *narrator, json_t **ret_metadata,
                   struct error *err)
{
    if (!operation->path) {
        if (ret_metadata) {
            *ret_metadata = json_incref(operation->metadata);
        }
        return 0;
    }
    CLEANUP(http_abandonp) struct http_transfer *transfer = NULL;
    if (operation_wait_begin(operation, &transfer, err) < 0 ||
        wait_until(operation, transfer, budget, narrator, err) < 0) {
        return -1;
    }
    return operation_wait_end(operation, transfer, ret_metadata, err);
}

int operation_look(struct operation *operation, json_t **ret_metadata, struct error *err)
{
    CLEANUP(json_freep) json_t *whole = NULL;
    if (!operation->path) {
        *ret_metadata = json_incref(operation->metadata);
        return 0;
    }
    if (client_get(operation->client, operation->path, &whole, err) < 0) {
        return -1;
    }
    *ret_metadata = json_incref(json_object_get(whole, "metadata"));
    return 0;
}

void operation_cancel(struct operation *operation)
{
    if (!operation->path) {
        return;
    }
    const struct call call = {.method = "DELETE", .path = operation->path, .budget = CANCEL_BUDGET, .deaf = true};
    CLEANUP(envelope_reset) struct envelope answer = {0};
    (void)call_send(operation->client, &call, &answer, NULL);
}

int operation_run(struct client *client, const char *method, const char *path, const json_t *body, int64_t budget,
                  struct narrator *narrator, struct error *err)
{
    CLEANUP(operation_freep) struct operation *operation = NULL;
    if (operation_start(client, method, path, body, &operation, err) < 0) {
        return -1;
    }
    CLEANUP(error_reset) struct error failure = {0};
    if (operation_wait(operation, budget, narrator, NULL, &failure) == 0) {
        return 0;
    }
    if (failure.code == ERR_TIMEOUT || failure.code == ERR_INTERRUPTED) {
        operation_cancel(operation);
    }
    return error_move(err, &failure);
}
