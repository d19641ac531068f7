/* The daemon's JSON envelope, the outcome of an operation, its progress: pure functions over what came.
 * Not for: sending anything; see call.c and operation.c. */
#include "incus/envelope.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

#define OPERATIONS "/1.0/operations/"

/* Status codes inside an envelope (Incus REST API, "Status codes"). */
enum { STATUS_SUCCESS = 200, STATUS_CANCELLED = 401 };

void envelope_reset(struct envelope *answer)
{
    json_decref(answer->metadata);
    free(answer->operation);
    *answer = (struct envelope){0};
}

int envelope_refused(int http, const char *words, struct error *err)
{
    enum error_code code = http == 404   ? ERR_NOT_FOUND
                           : http == 409 ? ERR_EXISTS
                           : http == 403 ? ERR_DENIED
                                         : ERR_REFUSED_BY_INCUS;
    CLEANUP(freep) char *safe = text_sanitise(words ? words : "", words ? strlen(words) : 0);
    if (text_is_empty(safe)) {
        error_set(err, code, "Incus answered HTTP %d without a reason", http);
    } else {
        error_set(err, code, "Incus says: %s", safe);
    }
    if (err) {
        err->http = http;
    }
    return -1;
}

/* An operation's path goes into requests that are written by hand, so it must be nothing but what it should be. */
static char *checked_operation(const char *path)
{
    if (!path || !text_starts_with(path, OPERATIONS)) {
        return NULL;
    }
    const char *id = path + strlen(OPERATIONS);
    size_t length = strspn(id, "0123456789abcdefABCDEF-");
    /* A query may follow: some versions name the project there. */
    if (length == 0 || length > 64 || (id[length] && id[length] != '?')) {
        return NULL;
    }
    return xstrndup(path, strlen(OPERATIONS) + length);
}

static int broken(int http, const char *what, const char *why, struct error *err)
{
    error_set(err, ERR_PROTOCOL, "the answer of Incus to %s is broken: %s", what, why);
    if (err) {
        err->http = http;
    }
    return -1;
}

int envelope_read(int http, const char *body, size_t length, const char *what, struct envelope *ret_envelope,
                  struct error *err)
{
    CLEANUP(json_freep) json_t *envelope = NULL;
    CLEANUP(error_reset) struct error malformed = {0};
    if (json_parse(body, length, "it", &envelope, &malformed) < 0) {
        return broken(http, what, malformed.message, err);
    }
    const char *type = json_text(envelope, "type");
    if (http >= 400 || text_equal(type, "error")) {
        int64_t code = json_number(envelope, "error_code", http);
        return envelope_refused(code >= 400 && code < 600 ? (int)code : http, json_text(envelope, "error"), err);
    }
    json_t *metadata = json_object_get(envelope, "metadata");
    if (text_equal(type, "sync")) {
        *ret_envelope = (struct envelope){.metadata = json_is_null(metadata) ? NULL : json_incref(metadata)};
        return 0;
    }
    if (!text_equal(type, "async")) {
        return broken(http, what, "it is neither sync, async nor error", err);
    }
    char *operation = checked_operation(json_text(envelope, "operation"));
    if (!operation) {
        return broken(http, what, "it names no operation", err);
    }
    *ret_envelope =
        (struct envelope){.metadata = json_is_null(metadata) ? NULL : json_incref(metadata), .operation = operation};
    return 0;
}

/* A failure inside an operation comes as 500 (or 400) with words; these carry what the status would have said. */
static int status_of_words(int status, const char *words)
{
    if ((status != 500 && status != 400) || !words) {
        return status;
    }
    if (strstr(words, "already exists") || strstr(words, "UNIQUE constraint failed")) {
        return 409;
    }
    bool absent = strstr(words, "not found") || strstr(words, "Not Found") || strstr(words, "does not exist");
    return absent ? 404 : status;
}

static int judge(const json_t *operation, struct error *err)
{
    int64_t status = json_number(operation, "status_code", 0);
    const char *words = json_text(operation, "err");
    if (status == STATUS_SUCCESS) {
        return 0;
    }
    if (status == STATUS_CANCELLED) {
        return envelope_refused(STATUS_CANCELLED, "the operation was cancelled", err);
    }
    if (status < 400 || status > 599) {
        return error_set(err, ERR_PROTOCOL,
                         "the answer of Incus about an operation has the status %lld, which is no end",
                         (long long)status);
    }
    return envelope_refused(status_of_words((int)status, words), words, err);
}

/* The daemon answers 200 before it knows how the operation ends. One that failed then comes as an error envelope
 * (measured with 6.0.4) or as an operation whose status is a failure. */
int envelope_outcome(int http, const char *body, size_t length, json_t **ret_metadata, struct error *err)
{
    CLEANUP(json_freep) json_t *envelope = NULL;
    CLEANUP(envelope_reset) struct envelope answer = {0};
    if (json_parse(body, length, "it", &envelope, NULL) == 0 && text_equal(json_text(envelope, "type"), "error")) {
        int64_t code = json_number(envelope, "error_code", http);
        const char *words = json_text(envelope, "error");
        if (code >= 400 && code <= 599 && words) {
            return envelope_refused(status_of_words((int)code, words), words, err);
        }
    }
    if (envelope_read(http, body, length, "the wait for an operation", &answer, err) < 0 ||
        judge(answer.metadata, err) < 0) {
        return -1;
    }
    if (ret_metadata) {
        json_t *metadata = json_object_get(answer.metadata, "metadata");
        *ret_metadata = json_is_object(metadata) ? json_incref(metadata) : NULL;
    }
    return 0;
}

char *envelope_progress(const json_t *metadata)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (text_ends_with(key, "_progress") && json_is_string(value)) {
            return text_sanitise(json_string_value(value), json_string_length(value));
        }
    }
    return NULL;
}
