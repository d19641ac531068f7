/* The daemon's answers: envelope, outcome of an operation, progress. The first two bytes choose the HTTP status.
 * Not for: HTTP itself; see fuzz_httpmessage.c. */
#include "base/memory.h"
#include "incus/envelope.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 202, 400, 403, 404, 409, 412, 500, 0, 999};
    if (size < 1) {
        return 0;
    }
    int http = statuses[data[0] % ARRAY_LENGTH(statuses)];
    const char *body = (const char *)data + 1;
    CLEANUP(error_reset) struct error err = {0};
    struct envelope envelope = {0};
    int result = envelope_read(http, body, size - 1, "a request", &envelope, &err);
    if ((result == 0) == (err.code != ERR_NONE) || (result < 0 && (envelope.metadata || envelope.operation))) {
        abort(); /* set exactly on failure, written only on success */
    }
    free(envelope_progress(envelope.metadata));
    envelope_reset(&envelope);
    json_t *metadata = NULL;
    result = envelope_outcome(http, body, size - 1, &metadata, &err);
    if (result < 0 && metadata) {
        abort();
    }
    free(envelope_progress(metadata));
    json_decref(metadata);
    return 0;
}
