/* What a guest wrote, made safe for a terminal: whatever comes, nothing that a terminal obeys goes out.
 * Not for: the readers of protocols; each has a target of its own. */
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(freep) char *clean = text_sanitise((const char *)data, size);
    size_t length = strlen(clean);
    if (!text_is_utf8(clean, length)) {
        abort();
    }
    for (const char *byte = clean; *byte; byte++) {
        if (((unsigned char)*byte < 0x20 && *byte != '\n' && *byte != '\t') || *byte == 0x7f) {
            abort();
        }
        if (byte[0] == '\xc2' && (unsigned char)byte[1] < 0xa0) {
            abort(); /* C1 */
        }
    }
    /* Clean text is a fixed point, and no wider than it is long. */
    CLEANUP(freep) char *again = text_sanitise(clean, length);
    if (strcmp(clean, again) != 0 || text_columns(clean) > length) {
        abort();
    }
    CLEANUP(freep) char *encoded = text_url_encode(clean);
    return strlen(encoded) < length;
}
