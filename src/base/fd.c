/* Descriptors and whole files.
 * Not for: sockets, and files of a guest (incus/guestfile). */
#include "base/fd.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_SUFFIX ".XXXXXX" /* of mkostemp() */

void fd_closep(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void fd_closefp(FILE **file)
{
    if (*file) {
        fclose(*file);
        *file = NULL;
    }
}

int fd_read_all(int fd, size_t ceiling, struct buffer *buffer, struct error *err)
{
    size_t total = 0;
    for (;;) {
        char *end = buffer_reserve(buffer, 65536);
        ssize_t got = read(fd, end, 65536);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(err, errno, "reading");
        }
        if (got == 0) {
            return 0;
        }
        total += (size_t)got;
        if (total > ceiling) {
            return error_set(err, ERR_SYSTEM, "more than %zu bytes", ceiling);
        }
        buffer->length += (size_t)got;
        buffer->data[buffer->length] = '\0';
    }
}

int fd_write_all(int fd, const void *data, size_t length, struct error *err)
{
    const char *next = data;
    while (length) {
        ssize_t written = write(fd, next, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return error_set_errno(err, errno, "writing");
        }
        next += written;
        length -= (size_t)written;
    }
    return 0;
}

int fd_read_file(const char *path, size_t ceiling, struct buffer *buffer, struct error *err)
{
    /* O_NONBLOCK: opening a FIFO would otherwise wait for a writer for ever. */
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return error_set(err, ERR_NOT_FOUND, "%s: no such file", path);
    }
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, ERR_USAGE, "%s is not a regular file", path);
    }
    if (fd_read_all(fd, ceiling, buffer, err) < 0) {
        return error_wrap(err, "%s", path);
    }
    if (!buffer->data) {
        buffer_reserve(buffer, 0);
    }
    return 0;
}

static int sync_directory(const char *path)
{
    CLEANUP(freep) char *directory = xstrdup(path);
    char *slash = strrchr(directory, '/');
    if (slash) {
        slash[slash == directory] = '\0';
    }
    CLEANUP(fd_closep) int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

int fd_write_file(const char *path, const void *data, size_t length, mode_t mode, struct error *err)
{
    CLEANUP(freep) char *temporary = xasprintf("%s" TEMPORARY_SUFFIX, path);
    CLEANUP(fd_closep) int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return error_set_errno(err, errno, "creating %s", temporary);
    }
    if (fd_write_all(fd, data, length, err) < 0) {
        unlink(temporary);
        return error_wrap(err, "%s", path);
    }
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0) {
        int reason = errno;
        unlink(temporary);
        return error_set_errno(err, reason, "writing %s", path);
    }
    (void)sync_directory(path);
    return 0;
}

int fd_remove_file(const char *path, struct error *err)
{
    CLEANUP(freep) char *directory = xstrdup(path);
    char *slash = strrchr(directory, '/');
    const char *name = slash ? slash + 1 : directory;
    size_t length = strlen(name);
    DIR *stream = NULL;
    if (slash) {
        *slash = '\0';
    }
    const char *parent = !slash ? "." : slash == directory ? "/" : directory;
    int result = unlink(path) < 0 && errno != ENOENT ? error_set_errno(err, errno, "cannot remove %s", path) : 0;
    if (result == 0 && (stream = opendir(parent))) {
        for (const struct dirent *entry; (entry = readdir(stream));) {
            if (strncmp(entry->d_name, name, length) == 0 && entry->d_name[length] == '.' &&
                strlen(entry->d_name) == length + strlen(TEMPORARY_SUFFIX)) {
                (void)unlinkat(dirfd(stream), entry->d_name, 0);
            }
        }
        closedir(stream);
    }
    return result;
}

int fd_make_directories(const char *path, mode_t mode, struct error *err)
{
    CLEANUP(freep) char *partial = xstrdup(path);
    for (char *slash = partial + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') {
            continue;
        }
        char kept = *slash;
        *slash = '\0';
        if (mkdir(partial, mode) < 0 && errno != EEXIST) {
            return error_set_errno(err, errno, "making the directory %s", partial);
        }
        *slash = kept;
        if (kept == '\0') {
            return 0;
        }
    }
}

void fd_secure_standard(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* open() takes the lowest free number, which is this one. A closed stdout is opened for reading only, so
             * that writing to it still fails and the caller still learns that nobody got the result. */
            int got = open("/dev/null", fd == 0 ? O_RDWR : fd == 1 ? O_RDONLY : O_WRONLY);
            if (got < 0) {
                _exit(1);
            }
        }
    }
}
