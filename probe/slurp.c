/* Reads small files of the guest: its resolver configuration, its identity, knobs under /proc.
 * Nothing here writes, and a file that never ends is cut at the buffer.
 */
#include "slurp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

long slurp_file(const char *path, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    /* Not a FIFO's writer, not a terminal's slave: neither may hold us up. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -1;
    }
    while (at < size - 1) {
        ssize_t got = read(fd, text + at, size - 1 - at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        at += (size_t)got;
    }
    text[at] = '\0';
    (void)close(fd);
    return (long)at;
}

long slurp_line(const char *path, char *text, size_t size)
{
    long length = slurp_file(path, text, size);

    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return length;
}
