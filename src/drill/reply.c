/* Reads the instrument's one line of JSON, under ceilings: a guest may have written it.
 * Not for: what a verdict means for a claim; see verdict.c. */
#include "drill/reply.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

enum { MOST_TEXT = 512 };

static const char *const names[] = {
    [REPLY_ERROR] = "error",     [REPLY_REACHABLE] = "reachable",     [REPLY_REFUSED] = "refused",
    [REPLY_DROPPED] = "dropped", [REPLY_UNREACHABLE] = "unreachable", [REPLY_DONE] = "done",
};

const char *reply_verdict_name(enum reply_verdict verdict)
{
    return names[verdict];
}

static bool verdict_of(const char *name, enum reply_verdict *ret_verdict)
{
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (text_equal(name, names[i])) {
            *ret_verdict = (enum reply_verdict)i;
            return true;
        }
    }
    return false;
}

static char *short_text(const char *text)
{
    return text_sanitise(text, strnlen(text, MOST_TEXT));
}

/* Puts a dot where a string holds a NUL, all the way down: a payload may, and no reader behind us expects one. */
static json_t *without_nuls(json_t *value)
{
    const char *key;
    void *next;
    json_t *inner;
    size_t at;

    if (json_is_object(value)) {
        json_object_foreach_safe(value, next, key, inner)
        {
            json_object_set_new(value, key, without_nuls(json_incref(inner)));
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, at, inner)
        {
            json_array_set_new(value, at, without_nuls(json_incref(inner)));
        }
    } else if (json_is_string(value) && memchr(json_string_value(value), '\0', json_string_length(value))) {
        size_t length = json_string_length(value);
        CLEANUP(freep) char *copy = xmalloc(length + 1);
        memcpy(copy, json_string_value(value), length);
        for (size_t i = 0; i < length; i++) {
            copy[i] = copy[i] ? copy[i] : '.';
        }
        json_decref(value);
        return json_stringn(copy, length);
    }
    return value;
}

/* A NUL within a key is refused by the parser: it would end the key early. */
static int parse_line(const char *data, size_t length, json_t **ret_line, struct error *err)
{
    json_error_t reason;
    json_t *line = json_loadb(data, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);

    if (!line) {
        return error_set(err, ERR_PROTOCOL, "the instrument's answer is not JSON: %s", reason.text);
    }
    *ret_line = without_nuls(line);
    return 0;
}

int reply_parse(const char *data, size_t length, struct reply *ret_reply, struct error *err)
{
    CLEANUP(json_freep) json_t *line = NULL;
    struct reply reply = {0};

    if (length == 0) {
        return error_set(err, ERR_PROTOCOL, "the instrument said nothing");
    }
    if (length > REPLY_CEILING) {
        return error_set(err, ERR_PROTOCOL, "the instrument said more than %d bytes", REPLY_CEILING);
    }
    if (parse_line(data, length, &line, err) < 0) {
        return -1;
    }
    const char *probe = json_text(line, "probe");
    const char *word = json_text(line, "verdict");
    const json_t *number = json_object_get(line, "errno");
    const json_t *ms = json_object_get(line, "ms");
    json_t *evidence = json_object_get(line, "evidence");

    if (!probe || !word || !json_is_integer(number) || !json_is_number(ms) || !json_is_object(evidence)) {
        return error_set(err, ERR_PROTOCOL, "the instrument's answer lacks a part of its shape");
    }
    if (!verdict_of(word, &reply.verdict)) {
        return error_set(err, ERR_PROTOCOL, "the instrument's answer carries a verdict of its own invention");
    }
    const char *why = json_text(line, "why");

    reply.errnum = (int)json_integer_value(number);
    reply.ms = json_number_value(ms);
    reply.probe = short_text(probe);
    reply.why = reply.verdict == REPLY_ERROR ? short_text(why ? why : "no reason given") : NULL;
    reply.evidence = json_incref(evidence);
    *ret_reply = reply;
    return 0;
}

json_t *reply_to_json(const struct reply *reply)
{
    return json_pack("{s:s, s:s, s:i, s:f, s:s*, s:O}", "probe", reply->probe, "verdict",
                     reply_verdict_name(reply->verdict), "errno", reply->errnum, "ms", reply->ms, "why", reply->why,
                     "evidence", reply->evidence);
}

void reply_reset(struct reply *reply)
{
    free(reply->probe);
    free(reply->why);
    json_decref(reply->evidence);
    *reply = (struct reply){0};
}
