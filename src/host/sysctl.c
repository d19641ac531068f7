/* Reads and writes kernel parameters through /proc/sys.
 * Not for files in /etc/sysctl.d: an interface's parameters vanish with it, so they are set when it appears.
 * No parameter is named here: src/stack does. */
#include "host/sysctl.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int open_parameter(const char *path, int flags, int *ret_fd, struct error *err)
{
    CLEANUP(freep) char *full = xasprintf("/proc/sys/%s", path);
    int fd = open(full, flags | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return error_set(err, ERR_NOT_FOUND, "the kernel has no parameter %s", path);
    }
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot open %s", full);
    }
    *ret_fd = fd;
    return 0;
}

int sysctl_read(const char *path, char **ret_value, struct error *err)
{
    CLEANUP(fd_closep) int fd = -1;
    CLEANUP(buffer_reset) struct buffer value = {0};
    if (open_parameter(path, O_RDONLY, &fd, err) < 0 || fd_read_all(fd, 4096, &value, err) < 0) {
        return -1;
    }
    char *text = buffer_steal(&value);
    text[strcspn(text, "\n")] = '\0';
    *ret_value = text;
    return 0;
}

int sysctl_write(const char *path, const char *value, struct error *err)
{
    CLEANUP(fd_closep) int fd = -1;
    if (open_parameter(path, O_WRONLY | O_TRUNC, &fd, err) < 0) {
        return -1;
    }
    if (write(fd, value, strlen(value)) < 0) {
        return error_set_errno(err, errno, "cannot set %s to %s", path, value);
    }
    return 0;
}
