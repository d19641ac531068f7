/* A daemon's end of a WebSocket that sends anything: the answer to the upgrade and frames, then hangs up.
 * Not for: what a session makes of the payload. */
#include "base/fd.h"
#include "incus/websocket.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int listen_at(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "/tmp/box-fuzz-websocket-%d", getpid());
    unlink(address->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)address, sizeof(*address)) < 0 || listen(fd, 4) < 0) {
        abort();
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char upgraded[] = "HTTP/1.1 101 x\r\n\r\n";
    struct sockaddr_un address;
    CLEANUP(fd_closep) int listener = listen_at(&address);
    CLEANUP(websocket_freep) struct websocket *websocket = NULL;
    if (websocket_open(address.sun_path, "/x", &websocket, NULL) < 0) {
        abort();
    }
    unlink(address.sun_path);
    CLEANUP(fd_closep) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    /* An odd first byte leaves the upgrade to the input as well. */
    if (!size || data[0] % 2 == 0) {
        (void)!send(fd, upgraded, sizeof(upgraded) - 1, MSG_NOSIGNAL);
    }
    if (size) {
        (void)!send(fd, data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    websocket_send(websocket, "input", 5);
    fd_closep(&fd);
    CLEANUP(error_reset) struct error err = {0};
    while (websocket_fd(websocket) >= 0) {
        if (websocket_service(websocket, &err) < 0 && err.code == ERR_NONE) {
            abort();
        }
        struct buffer *incoming = websocket_incoming(websocket);
        buffer_consume(incoming, incoming->length);
    }
    return websocket_ended(websocket) ? 0 : -1;
}
