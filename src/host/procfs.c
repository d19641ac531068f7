/* Looks for a process by what it was started as: a pid file is a claim, a command line in /proc is the fact.
 * Not for ending one. */
#include "host/procfs.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMMAND_LINE_CEILING (64 * 1024)
#define END_MS               5000

static void closedirp(DIR **directory)
{
    if (*directory != NULL) {
        (void)closedir(*directory);
    }
}

static bool matches(const struct buffer *line, const char *program, const char *argument)
{
    const char *name = strrchr(line->data, '/');
    if (!text_equal(name != NULL ? name + 1 : line->data, program)) {
        return false;
    }
    for (size_t at = strlen(line->data) + 1; argument != NULL && at < line->length; at += strlen(line->data + at) + 1) {
        if (strcmp(line->data + at, argument) == 0) {
            return true;
        }
    }
    return argument == NULL;
}

/* A guest's processes show here too, and it names them as it likes. */
static bool shares_network(int pid)
{
    struct stat own, other;
    CLEANUP(freep) char *path = xasprintf("/proc/%d/ns/net", pid);
    return stat("/proc/self/ns/net", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

pid_t procfs_find(const char *program, const char *argument)
{
    CLEANUP(closedirp) DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        uint64_t pid;
        CLEANUP(buffer_reset) struct buffer line = {0};
        if (!text_parse_number(entry->d_name, 1, INT32_MAX, &pid)) {
            continue;
        }
        CLEANUP(freep) char *path = xasprintf("/proc/%d/cmdline", (int)pid);
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fd_read_all(fd, COMMAND_LINE_CEILING, &line, NULL) == 0 && line.length > 0 &&
            matches(&line, program, argument) && shares_network((int)pid)) {
            return (pid_t)pid;
        }
    }
    return 0;
}

int procfs_end(pid_t pid, const char *what, struct error *err)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    CLEANUP(fd_closep) int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    if (handle < 0) {
        return errno == ESRCH ? 0 : error_set_errno(err, errno, "cannot watch %s (process %d) end", what, (int)pid);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
        struct pollfd polled = {.fd = handle, .events = POLLIN};
        if (syscall(SYS_pidfd_send_signal, handle, signals[i], NULL, 0) < 0 && errno != ESRCH) {
            return error_set_errno(err, errno, "cannot end %s (process %d)", what, (int)pid);
        }
        if (poll(&polled, 1, END_MS) > 0) {
            return 0;
        }
    }
    return error_set(err, ERR_TIMEOUT, "%s (process %d) does not end", what, (int)pid);
}
