/* The answer to a WebSocket's upgrade, whole and in two pieces: a cut must never change what is read in the end.
 * Not for: frames; see fuzz_websocket.c. */
#include "incus/handshake.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    int status = 0, early_status = 0;
    size_t consumed = 0, early_consumed = 0;
    enum handshake_progress whole = handshake_read(text, size, &status, &consumed);
    if (whole == HANDSHAKE_COMPLETE && (consumed > size || status < 100 || status > 999)) {
        abort();
    }
    for (size_t cut = 0; cut < size && cut < 64; cut++) {
        enum handshake_progress early = handshake_read(text, cut, &early_status, &early_consumed);
        if ((early == HANDSHAKE_BROKEN && whole != HANDSHAKE_BROKEN) ||
            (early == HANDSHAKE_COMPLETE && (whole != HANDSHAKE_COMPLETE || early_consumed != consumed))) {
            abort();
        }
    }
    return 0;
}
