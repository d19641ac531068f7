/* Backups of instances: made, fetched, dropped, and made into instances again.
 * Not for: judging what is in one; see box/import.c. */
#include "incus/backup.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"
#include "incus/operation.h"

#include <string.h>
#include <time.h>

static char *backup_path(const char *instance, const char *backup, const char *rest)
{
    CLEANUP(freep) char *encoded = text_url_encode(backup);
    CLEANUP(freep) char *tail = xasprintf("/backups/%s%s", encoded, rest);
    return call_path("instances", instance, tail);
}

int backup_create(struct client *client, const char *instance, const char *backup, bool instance_only,
                  const char *compression, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", instance, "/backups");
    char expires[32] = "";
    time_t tomorrow = time(NULL) + 24 * 3600;
    struct tm broken;
    if (gmtime_r(&tomorrow, &broken)) {
        (void)strftime(expires, sizeof(expires), "%Y-%m-%dT%H:%M:%SZ", &broken);
    }
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:b, s:b, s:s}", "name", backup, "expires_at", expires, "instance_only",
                             (int)instance_only, "optimized_storage", 0, "compression_algorithm", compression);
    return operation_run(client, "POST", path, body, 0, narrator, err);
}

int backup_download(struct client *client, const char *instance, const char *backup, int fd, struct narrator *narrator,
                    struct error *err)
{
    CLEANUP(freep) char *path = backup_path(instance, backup, "/export");
    CLEANUP(http_answer_reset) struct http_answer answer = {0};
    const struct call call = {.method = "GET", .path = path, .sink = &fd, .narrator = narrator};
    return call_send_raw(client, &call, &answer, err);
}

/* An operation that the daemon runs on that instance: its path, or NULL. */
static char *running_on(struct client *client, const char *instance)
{
    CLEANUP(json_freep) json_t *operations = NULL;
    CLEANUP(freep) char *path = xasprintf("/1.0/instances/%s", instance);
    json_t *operation, *resource;
    size_t i, j;
    if (client_get(client, "/1.0/operations?recursion=1", &operations, NULL) < 0) {
        return NULL;
    }
    json_array_foreach(json_object_get(operations, "running"), i, operation)
    {
        json_array_foreach(json_path(operation, "resources", "instances", NULL), j, resource)
        {
            const char *text = json_string_value(resource);
            if (text && json_text(operation, "id") && strncmp(text, path, strlen(path)) == 0 &&
                strchr("?", text[strlen(path)])) {
                return xasprintf("/1.0/operations/%s", json_text(operation, "id"));
            }
        }
    }
    return NULL;
}

int backup_discard(struct client *client, const char *instance, const char *backup, int64_t budget, struct error *err)
{
    CLEANUP(freep) char *path = backup_path(instance, backup, "");
    int64_t deadline = clock_deadline(budget);
    for (;;) {
        CLEANUP(error_reset) struct error failure = {0};
        int result = operation_run(client, "DELETE", path, NULL, 0, NULL, &failure);
        if (result < 0 && failure.code != ERR_NOT_FOUND && failure.code != ERR_REFUSED_BY_INCUS) {
            return error_move(err, &failure);
        }
        /* One that is still being made is not there yet, or comes back. */
        CLEANUP(freep) char *running = running_on(client, instance);
        if (!running) {
            return result == 0 || failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
        }
        if (clock_left(deadline) == 0) {
            return error_set(err, ERR_TIMEOUT, "the daemon is still making the backup %s of %s", backup, instance);
        }
        CLEANUP(freep) char *wait = xasprintf("%s/wait?timeout=10", running);
        (void)client_get(client, wait, NULL, NULL);
    }
}

int backup_import(struct client *client, const char *name, const char *pool, int fd, int64_t length,
                  struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *named = xasprintf("X-Incus-name: %s", name);
    CLEANUP(freep) char *pooled = xasprintf("X-Incus-pool: %s", pool);
    const char *const headers[] = {"Content-Type: application/octet-stream", named, pooled, NULL};
    const struct http_source source = {.fd = fd, .length = length};
    const struct call call = {
        .method = "POST", .path = "/1.0/instances", .headers = headers, .source = &source, .narrator = narrator};
    CLEANUP(operation_freep) struct operation *operation = NULL;
    if (operation_send(client, &call, &operation, err) < 0) {
        return -1;
    }
    return operation_wait(operation, 0, narrator, NULL, err);
}
