/* One call of the API: a request made of its pieces, sent, its envelope opened, its time told.
 * Not for: what the metadata mean; nor for waiting for operations. */
#include "incus/call.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

#define CEILING ((size_t)64 * 1024 * 1024)

char *call_target(const struct client *client, const char *path)
{
    const char *project = client_project(client);
    if (!project) {
        return xstrdup(path);
    }
    CLEANUP(freep) char *encoded = text_url_encode(project);
    return xasprintf("%s%cproject=%s", path, strchr(path, '?') ? '&' : '?', encoded);
}

char *call_path(const char *noun, const char *name, const char *rest)
{
    CLEANUP(freep) char *encoded = text_url_encode(name);
    return xasprintf("/1.0/%s/%s%s", noun, encoded, rest);
}

static int exchange(struct client *client, const struct call *call, struct http_answer *ret_answer, struct error *err)
{
    CLEANUP(freep) char *target = call_target(client, call->path);
    CLEANUP(freep) char *body = call->body ? json_write(call->body, JSON_COMPACT) : NULL;
    const char *headers[16];
    size_t count = 0;
    if (body) {
        headers[count++] = "Content-Type: application/json";
    }
    for (const char *const *header = call->headers; header && *header && count + 1 < ARRAY_LENGTH(headers); header++) {
        headers[count++] = *header;
    }
    headers[count] = NULL;
    const struct http_request request = {
        .method = call->method,
        .target = target,
        .headers = headers,
        .data = body ? body : call->data,
        .length = body ? strlen(body) : call->length,
        .source = call->source,
        .parts = call->parts,
        .part_count = call->part_count,
        .sink = call->sink,
        .ceiling = call->ceiling ? call->ceiling : CEILING,
    };
    const struct http_patience patience = {
        .budget = call->budget,
        .idle = call->long_poll ? 0 : client_patience(client),
        .narrator = call->narrator ? call->narrator : client_narrator(client),
        .deaf = call->deaf,
    };
    int64_t start = clock_now();
    int result = http_exchange(client_http(client), &request, &patience, ret_answer, err);
    if (client_traced(client)) {
        CLEANUP(freep)
        char *line = xasprintf("%s %s: %d, %lld ms", call->method, target, result == 0 ? ret_answer->status : 0,
                               (long long)(clock_now() - start));
        client_tell(client, line);
    }
    return result;
}

int call_send(struct client *client, const struct call *call, struct envelope *ret_envelope, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    if (exchange(client, call, &http, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *what = xasprintf("%s %s", call->method, call->path);
    return envelope_read(http.status, http.body.data, http.body.length, what, ret_envelope, err);
}

int call_send_raw(struct client *client, const struct call *call, struct http_answer *ret_answer, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    if (exchange(client, call, &http, err) < 0) {
        return -1;
    }
    if (http.status / 100 != 2) {
        CLEANUP(freep) char *what = xasprintf("%s %s", call->method, call->path);
        CLEANUP(envelope_reset) struct envelope answer = {0};
        if (envelope_read(http.status, http.body.data, http.body.length, what, &answer, err) < 0) {
            return -1;
        }
        return error_set(err, ERR_PROTOCOL, "Incus answered HTTP %d to %s", http.status, what);
    }
    *ret_answer = http;
    http = (struct http_answer){0};
    return 0;
}
