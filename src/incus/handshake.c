/* The HTTP upgrade in front of a WebSocket: one request written, one answer's header read. Pure but for the key.
 * Not for: frames; see websocket.c. Sec-WebSocket-Accept is not compared: it guards against caches and servers that
 * know no WebSockets, and between us and the daemon's own socket there is neither. */
#include "incus/handshake.h"

#include "base/memory.h"
#include "incus/httpmessage.h"

#include <sys/random.h>

static void encode_base64(const unsigned char *data, size_t length, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t at = 0;
    for (size_t i = 0; i < length; i += 3) {
        unsigned group = (unsigned)data[i] << 16 | (i + 1 < length ? (unsigned)data[i + 1] << 8 : 0) |
                         (i + 2 < length ? data[i + 2] : 0);
        text[at++] = digits[group >> 18 & 63];
        text[at++] = digits[group >> 12 & 63];
        text[at++] = i + 1 < length ? digits[group >> 6 & 63] : '=';
        text[at++] = i + 2 < length ? digits[group & 63] : '=';
    }
    text[at] = '\0';
}

char *handshake_request(const char *target)
{
    unsigned char key[16] = {0};
    char text[25];
    /* The key only has to differ between requests; a short read of the pool would do no harm. */
    (void)!getrandom(key, sizeof(key), 0);
    encode_base64(key, sizeof(key), text);
    return xasprintf("GET %s HTTP/1.1\r\nHost: incus\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
                     target, text);
}

enum handshake_progress handshake_read(const char *data, size_t length, int *ret_status, size_t *ret_length)
{
    struct httpmessage_head head;
    switch (httpmessage_read_head(data, length, &head, NULL)) {
    case HTTPMESSAGE_BROKEN:
        return HANDSHAKE_BROKEN;
    case HTTPMESSAGE_PARTIAL:
        return HANDSHAKE_PARTIAL;
    case HTTPMESSAGE_COMPLETE:
        break;
    }
    *ret_status = head.status;
    *ret_length = head.size;
    return HANDSHAKE_COMPLETE;
}
