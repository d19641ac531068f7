/* The connection to the daemon as the floors above hold it, and plain requests over it.
 * Not for: answers with an operation; see operation.c. */
#include "incus/client.h"

#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"
#include "incus/daemon.h"

#define PATIENCE 30000 /* milliseconds */

struct client {
    struct http *http;
    char *socket_path;
    char *project;
    int64_t patience;
    struct narrator *narrator;
    void (*trace)(void *context, const char *line);
    void *trace_context;
};

int client_open(struct client **ret_client, struct error *err)
{
    CLEANUP(freep) char *path = daemon_find();
    /* Whether anybody is there; the first request goes over it. */
    int fd = -1;
    if (daemon_connect(path, &fd, err) < 0) {
        return -1;
    }
    const char *project = getenv("INCUS_PROJECT");
    struct client *client = xcalloc(1, sizeof(*client));
    *client = (struct client){.http = http_open(path, fd),
                              .socket_path = steal(&path),
                              .project = text_is_empty(project) ? NULL : xstrdup(project),
                              .patience = PATIENCE};
    *ret_client = client;
    return 0;
}

void client_close(struct client *client)
{
    if (!client) {
        return;
    }
    http_close(client->http);
    free(client->socket_path);
    free(client->project);
    free(client);
}

static int request(struct client *client, const struct call *call, json_t **ret_metadata, struct error *err)
{
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (call_send(client, call, &answer, err) < 0) {
        return -1;
    }
    if (answer.operation) {
        return error_set(err, ERR_PROTOCOL, "Incus answered %s %s with an operation where none was expected",
                         call->method, call->path);
    }
    if (ret_metadata) {
        *ret_metadata = steal(&answer.metadata);
    }
    return 0;
}

int client_request(struct client *client, const char *method, const char *path, const json_t *body,
                   json_t **ret_metadata, struct error *err)
{
    return request(client, &(struct call){.method = method, .path = path, .body = body}, ret_metadata, err);
}

int client_get(struct client *client, const char *path, json_t **ret_metadata, struct error *err)
{
    return client_request(client, "GET", path, NULL, ret_metadata, err);
}

int client_get_tagged(struct client *client, const char *path, json_t **ret_metadata, char **ret_etag,
                      struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    if (call_send_raw(client, &(struct call){.method = "GET", .path = path}, &http, err) < 0) {
        return -1;
    }
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (envelope_read(http.status, http.body.data, http.body.length, path, &answer, err) < 0) {
        return -1;
    }
    *ret_metadata = steal(&answer.metadata);
    *ret_etag = http.etag ? steal(&http.etag) : xstrdup("");
    return 0;
}

int client_put_tagged(struct client *client, const char *path, const char *etag, const json_t *body, struct error *err)
{
    CLEANUP(freep) char *condition = xasprintf("If-Match: %s", etag);
    const char *const headers[] = {condition, NULL};
    const struct call call = {
        .method = "PUT", .path = path, .body = body, .headers = text_is_empty(etag) ? NULL : headers};
    return request(client, &call, NULL, err);
}

void client_trace(struct client *client, void (*trace)(void *context, const char *line), void *context)
{
    client->trace = trace;
    client->trace_context = context;
}

void client_narrate(struct client *client, struct narrator *narrator)
{
    client->narrator = narrator;
}

void client_be_patient(struct client *client, int64_t milliseconds)
{
    client->patience = milliseconds;
}

const char *client_socket(const struct client *client)
{
    return client->socket_path;
}

struct http *client_http(struct client *client)
{
    return client->http;
}

const char *client_project(const struct client *client)
{
    return client->project;
}

int64_t client_patience(const struct client *client)
{
    return client->patience;
}

struct narrator *client_narrator(const struct client *client)
{
    return client->narrator;
}

bool client_traced(const struct client *client)
{
    return client->trace;
}

void client_tell(struct client *client, const char *line)
{
    client->trace(client->trace_context, line);
}
