/* Files of a guest through the daemon's files API.
 * Not for: running anything in the guest; see exec.c. */
#include "incus/guestfile.h"

#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"

#include <string.h>

static char *file_path(const char *instance, const char *path)
{
    CLEANUP(freep) char *encoded = text_url_encode(path);
    CLEANUP(freep) char *rest = xasprintf("/files?path=%s", encoded);
    return call_path("instances", instance, rest);
}

/* As many symbolic links as Linux itself follows would be patience for a loop; nobody needs more than these. */
#define LINKS 8

/* GETs what `path` leads to: the daemon answers a symbolic link with its absolute target, a directory with JSON. */
static int fetch(struct client *client, const char *instance, const char *path, struct call *call,
                 struct http_answer *ret_http, struct error *err)
{
    CLEANUP(freep) char *at = xstrdup(path);
    call->method = "GET";
    for (int links = 0; links <= LINKS; links++) {
        CLEANUP(freep) char *target = file_path(instance, at);
        CLEANUP(http_answer_reset) struct http_answer http = {0};
        call->path = target;
        if (call_send_raw(client, call, &http, err) < 0) {
            return -1;
        }
        if (!text_equal(http.kind, "symlink")) {
            *ret_http = http;
            http = (struct http_answer){0};
            return 0;
        }
        if (!http.body.data || http.body.data[0] != '/' || strlen(http.body.data) != http.body.length) {
            return error_set(err, ERR_PROTOCOL, "Incus answered a symbolic link without its target");
        }
        free(at);
        at = buffer_steal(&http.body);
    }
    return error_set(err, ERR_SYSTEM, "more than %d symbolic links, one behind the other", LINKS);
}

static int fetch_file(struct client *client, const char *instance, const char *path, struct call *call,
                      struct http_answer *ret_http, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    if (fetch(client, instance, path, call, &http, err) < 0) {
        return error_wrap(err, "cannot read %s of %s", path, instance);
    }
    if (!text_equal(http.kind, "file")) {
        return error_set(err, ERR_SYSTEM, "cannot read %s of %s: it is not a regular file", path, instance);
    }
    *ret_http = http;
    http = (struct http_answer){0};
    return 0;
}

int guestfile_read(struct client *client, const char *instance, const char *path, size_t ceiling,
                   struct buffer *ret_data, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    /* The words of a refusal need room in any case. */
    struct call call = {.ceiling = ceiling > 65536 ? ceiling : 65536};
    if (fetch_file(client, instance, path, &call, &http, err) < 0) {
        return -1;
    }
    if (http.body.length > ceiling) {
        return error_set(err, ERR_SYSTEM, "cannot read %s of %s: it is larger than %zu bytes", path, instance, ceiling);
    }
    *ret_data = http.body;
    http.body = (struct buffer){0};
    return 0;
}

static int push(struct client *client, const char *instance, const char *path, struct call *call,
                const struct guestfile_owner *owner, struct error *err)
{
    CLEANUP(freep) char *target = file_path(instance, path);
    CLEANUP(freep) char *user = xasprintf("X-Incus-uid: %u", owner->user);
    CLEANUP(freep) char *group = xasprintf("X-Incus-gid: %u", owner->group);
    CLEANUP(freep) char *mode = xasprintf("X-Incus-mode: %04o", (unsigned)owner->mode & 07777U);
    /* Without this content type the daemon says success and writes nothing. */
    const char *const headers[] = {"Content-Type: application/octet-stream",
                                   "X-Incus-type: file",
                                   "X-Incus-write: overwrite",
                                   user,
                                   group,
                                   mode,
                                   NULL};
    call->method = "POST";
    call->path = target;
    call->headers = headers;
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (call_send(client, call, &answer, err) < 0) {
        return error_wrap(err, "cannot write %s of %s", path, instance);
    }
    return 0;
}

int guestfile_write(struct client *client, const char *instance, const char *path, const void *data, size_t length,
                    const struct guestfile_owner *owner, struct error *err)
{
    struct call call = {.data = data, .length = length};
    return push(client, instance, path, &call, owner, err);
}

int guestfile_upload(struct client *client, const char *instance, const char *path, int fd, int64_t length,
                     const struct guestfile_owner *owner, struct narrator *narrator, struct error *err)
{
    const struct http_source source = {.fd = fd, .length = length};
    struct call call = {.source = &source, .narrator = narrator};
    return push(client, instance, path, &call, owner, err);
}

int guestfile_download(struct client *client, const char *instance, const char *path, int fd, struct narrator *narrator,
                       struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    struct call call = {.sink = &fd, .narrator = narrator};
    return fetch_file(client, instance, path, &call, &http, err);
}

int guestfile_delete(struct client *client, const char *instance, const char *path, struct error *err)
{
    CLEANUP(freep) char *target = file_path(instance, path);
    CLEANUP(error_reset) struct error failure = {0};
    if (client_request(client, "DELETE", target, NULL, NULL, &failure) == 0) {
        return 0;
    }
    /* Both are 404, and only the words tell an absent file from an absent instance. */
    if (failure.code == ERR_NOT_FOUND && !strstr(failure.message, "nstance not found")) {
        return 0;
    }
    error_move(err, &failure);
    return error_wrap(err, "cannot delete %s of %s", path, instance);
}

int guestfile_list(struct client *client, const char *instance, const char *path, json_t **ret_names, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    struct call call = {0};
    if (fetch(client, instance, path, &call, &http, err) < 0) {
        return error_wrap(err, "cannot list %s of %s", path, instance);
    }
    if (!text_equal(http.kind, "directory")) {
        return error_set(err, ERR_SYSTEM, "cannot list %s of %s: it is not a directory", path, instance);
    }
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (envelope_read(http.status, http.body.data, http.body.length, path, &answer, err) < 0) {
        return -1;
    }
    if (!json_is_array(answer.metadata)) {
        return error_set(err, ERR_PROTOCOL, "the answer of Incus for %s is not a list", path);
    }
    *ret_names = steal(&answer.metadata);
    return 0;
}
