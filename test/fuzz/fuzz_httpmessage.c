/* An HTTP answer, whole and byte by byte: a cut must never change what is read, and nothing is read beyond the end.
 * Not for: what the body means; see fuzz_envelope.c. */
#include "base/buffer.h"
#include "incus/httpmessage.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns whether it was well-formed; `payload` is what it carried, `body` where it ended. */
static bool read_body(const struct httpmessage_head *head, const char *data, size_t size, size_t step,
                      struct buffer *payload, struct httpmessage_body *body)
{
    if (!httpmessage_body_begin(head, body)) {
        return false;
    }
    for (size_t at = 0; at < size && body->state != HTTPMESSAGE_ENDED;) {
        size_t piece = size - at < step ? size - at : step, taken, run;
        const char *part;
        if (!httpmessage_body_read(body, data + at, piece, &taken, &part, &run, NULL)) {
            return false;
        }
        if (taken == 0 || taken > piece || run > taken || part < data + at || part + run > data + at + piece) {
            abort();
        }
        buffer_append(payload, part, run);
        at += taken;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct httpmessage_head head, early;
    enum httpmessage_progress whole = httpmessage_read_head(text, size, &head, NULL);
    for (size_t cut = 0; cut < size && cut < 64; cut++) {
        enum httpmessage_progress progress = httpmessage_read_head(text, cut, &early, NULL);
        if ((progress == HTTPMESSAGE_BROKEN && whole != HTTPMESSAGE_BROKEN) ||
            (progress == HTTPMESSAGE_COMPLETE && (whole != HTTPMESSAGE_COMPLETE || early.size != head.size))) {
            abort();
        }
    }
    if (whole != HTTPMESSAGE_COMPLETE) {
        return 0;
    }
    if (head.size > size || head.status < 100 || head.status > 999 || (head.chunked && head.length >= 0)) {
        abort();
    }
    CLEANUP(buffer_reset) struct buffer one = {0};
    CLEANUP(buffer_reset) struct buffer many = {0};
    struct httpmessage_body first, second;
    bool fine = read_body(&head, text + head.size, size - head.size, SIZE_MAX, &one, &first);
    bool also = read_body(&head, text + head.size, size - head.size, 1, &many, &second);
    if (fine != also || (fine && (first.state != second.state || one.length != many.length ||
                                  (one.length && memcmp(one.data, many.data, one.length) != 0)))) {
        abort();
    }
    return 0;
}
