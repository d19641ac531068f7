/* What jansson lacks for reading a daemon's answers.
 * Not for: knowing any shape; each reader answers with a fallback. */
#include "base/json.h"

#include "base/memory.h"

#include <string.h>

const char *json_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

json_t *json_path(const json_t *object, const char *key, ...)
{
    json_t *value = json_object_get(object, key);
    va_list keys;
    va_start(keys, key);
    const char *next;
    while (value && (next = va_arg(keys, const char *))) {
        value = json_object_get(value, next);
    }
    va_end(keys);
    return value;
}

int64_t json_number(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

bool json_truth(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

int json_parse(const char *data, size_t length, const char *what, json_t **ret_value, struct error *err)
{
    json_error_t reason;
    json_t *value = json_loadb(data ? data : "", data ? length : 0, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &reason);
    if (!value) {
        return error_set(err, ERR_PROTOCOL, "%s is not JSON: %s (line %d)", what, reason.text, reason.line);
    }
    *ret_value = value;
    return 0;
}

char *json_write(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
    if (!text) {
        abort();
    }
    return text;
}
