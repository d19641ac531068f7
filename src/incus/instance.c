/* Instances: read, listed, created, changed, snapshotted, deleted.
 * Not for: knowing which of them is a box. */
#include "incus/instance.h"

#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"
#include "incus/operation.h"

/* A list that is none would be read as an empty one further up. */
static int get_array(struct client *client, const char *path, json_t **ret_array, struct error *err)
{
    CLEANUP(json_freep) json_t *array = NULL;
    if (client_get(client, path, &array, err) < 0) {
        return -1;
    }
    if (!json_is_array(array)) {
        return error_set(err, ERR_PROTOCOL, "the answer of Incus to GET %s is not a list", path);
    }
    *ret_array = steal(&array);
    return 0;
}

int instance_get(struct client *client, const char *name, json_t **ret_instance, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    return client_get(client, path, ret_instance, err);
}

int instance_get_tagged(struct client *client, const char *name, json_t **ret_instance, char **ret_etag,
                        struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    return client_get_tagged(client, path, ret_instance, ret_etag, err);
}

int instance_list(struct client *client, const char *filter, json_t **ret_array, struct error *err)
{
    CLEANUP(freep) char *encoded = filter ? text_url_encode(filter) : NULL;
    CLEANUP(freep)
    char *path = xasprintf("/1.0/instances?recursion=1%s%s", encoded ? "&filter=" : "", encoded ? encoded : "");
    return get_array(client, path, ret_array, err);
}

int instance_state(struct client *client, const char *name, json_t **ret_state, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/state");
    return client_get(client, path, ret_state, err);
}

int instance_console(struct client *client, const char *name, struct buffer *ret_text, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/console?type=log");
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    const struct call call = {.method = "GET", .path = path};
    if (call_send_raw(client, &call, &http, err) < 0) {
        return error_wrap(err, "cannot read the console of %s", name);
    }
    *ret_text = http.body;
    http.body = (struct buffer){0};
    return 0;
}

int instance_create(struct client *client, const json_t *body, int64_t budget, struct narrator *narrator,
                    struct error *err)
{
    return operation_run(client, "POST", "/1.0/instances", body, budget, narrator, err);
}

int instance_patch(struct client *client, const char *name, const json_t *body, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    return operation_run(client, "PATCH", path, body, 0, NULL, err);
}

int instance_put(struct client *client, const char *name, const char *etag, const json_t *body, int64_t budget,
                 struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    CLEANUP(freep) char *condition = xasprintf("If-Match: %s", etag ? etag : "");
    const char *const headers[] = {condition, NULL};
    const struct call call = {
        .method = "PUT", .path = path, .body = body, .headers = text_is_empty(etag) ? NULL : headers};
    CLEANUP(operation_freep) struct operation *operation = NULL;
    if (operation_send(client, &call, &operation, err) < 0) {
        return -1;
    }
    return operation_wait(operation, budget, NULL, NULL, err);
}

int instance_change_state(struct client *client, const char *name, const char *action, int timeout, bool force,
                          int64_t budget, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/state");
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:i, s:b}", "action", action, "timeout", timeout, "force", force);
    return operation_run(client, "PUT", path, body, budget, narrator, err);
}

int instance_delete(struct client *client, const char *name, int64_t budget, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    return operation_run(client, "DELETE", path, NULL, budget, NULL, err);
}

int instance_rename(struct client *client, const char *name, const char *new_name, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    CLEANUP(json_freep) json_t *body = json_pack("{s:s}", "name", new_name);
    return operation_run(client, "POST", path, body, 0, NULL, err);
}

int instance_snapshot_list(struct client *client, const char *name, json_t **ret_array, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/snapshots?recursion=1");
    return get_array(client, path, ret_array, err);
}

int instance_snapshot_create(struct client *client, const char *name, const char *snapshot, int64_t budget,
                             struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "/snapshots");
    CLEANUP(json_freep) json_t *body = json_pack("{s:s, s:b}", "name", snapshot, "stateful", 0);
    return operation_run(client, "POST", path, body, budget, narrator, err);
}

int instance_snapshot_restore(struct client *client, const char *name, const char *snapshot, int64_t budget,
                              struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *path = call_path("instances", name, "");
    CLEANUP(json_freep) json_t *body = json_pack("{s:s, s:b}", "restore", snapshot, "stateful", 0);
    return operation_run(client, "PUT", path, body, budget, narrator, err);
}

int instance_snapshot_delete(struct client *client, const char *name, const char *snapshot, int64_t budget,
                             struct error *err)
{
    CLEANUP(freep) char *encoded = text_url_encode(snapshot);
    CLEANUP(freep) char *rest = xasprintf("/snapshots/%s", encoded);
    CLEANUP(freep) char *path = call_path("instances", name, rest);
    return operation_run(client, "DELETE", path, NULL, budget, NULL, err);
}
