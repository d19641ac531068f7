/* The HTTP upgrade in front of a WebSocket: one request written, one answer's header read. Pure but for the key.
 * Not for: frames; see websocket.c. Sec-WebSocket-Accept is not compared: it guards against caches and servers that
 * know no WebSockets, and between us and the daemon's own socket there is neither. */
#include "incus/handshake.h"

#include "base/memory.h"

#include <string.h>
#include <sys/random.h>

#define HEADER_CEILING 16384

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

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : -1;
}

enum handshake_progress handshake_read(const char *data, size_t length, int *ret_status, size_t *ret_length)
{
    static const char start[] = "HTTP/1.1 ";
    size_t known = length < sizeof(start) - 1 ? length : sizeof(start) - 1;
    if (known && memcmp(data, start, known) != 0) {
        return HANDSHAKE_BROKEN;
    }
    const char *end = length ? memmem(data, length, "\r\n\r\n", 4) : NULL;
    if (!end || (size_t)(end - data) > HEADER_CEILING) {
        return end || length > HEADER_CEILING ? HANDSHAKE_BROKEN : HANDSHAKE_PARTIAL;
    }
    const char *status = data + sizeof(start) - 1;
    if (end - status < 3 || digit(status[0]) < 1 || digit(status[1]) < 0 || digit(status[2]) < 0 ||
        (status[3] != ' ' && status[3] != '\r')) {
        return HANDSHAKE_BROKEN;
    }
    *ret_status = digit(status[0]) * 100 + digit(status[1]) * 10 + digit(status[2]);
    *ret_length = (size_t)(end - data) + 4;
    return HANDSHAKE_COMPLETE;
}
