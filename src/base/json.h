#ifndef BOX_BASE_JSON_H
#define BOX_BASE_JSON_H

#include "base/cleanup.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What jansson lacks for our use. Every reader takes NULL or a value of another type and answers with the fallback:
 * the shapes come from a daemon, and a missing key is a fact, not a crash. */

/* Cleanup handler: CLEANUP(json_freep) json_t *value = NULL. */
static inline void json_freep(json_t **value)
{
    json_decref(*value);
}

/* The string at object[key], or NULL. Borrowed from the value. */
const char *json_text(const json_t *object, const char *key);

/* The value at object[key][...] along a NULL-terminated list of keys; NULL where the path breaks. Borrowed.
 * Keys may contain dots, as Incus's configuration keys do. */
json_t *json_path(const json_t *object, const char *key, ...) __attribute__((sentinel));

/* The integer at object[key], or `fallback`. */
int64_t json_number(const json_t *object, const char *key, int64_t fallback);

/* The boolean at object[key], or false. */
bool json_truth(const json_t *object, const char *key);

/* Parses text under jansson's own depth limit; NULs and duplicate keys are refused. ERR_PROTOCOL naming `what`. */
int json_parse(const char *data, size_t length, const char *what, json_t **ret_value, struct error *err);

/* As json_dumps, compact, aborting on exhausted memory. The caller frees. */
char *json_write(const json_t *value, size_t flags);

#endif
