/* Looks for a process by what it was started as: a pid file is a claim, a command line in /proc is the fact.
 * Not for ending one. */
#include "host/procfs.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_LINE_CEILING (64 * 1024)

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
            matches(&line, program, argument)) {
            return (pid_t)pid;
        }
    }
    return 0;
}
