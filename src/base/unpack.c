/* Files out of an archive that is not trusted.
 * Not for: the bytes of the archive; see tarread.c. */
#include "base/unpack.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/tarread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)256 * 1024)

static void count(uint64_t *counter, uint64_t more)
{
    if (counter) {
        __atomic_add_fetch(counter, more, __ATOMIC_RELAXED);
    }
}

static char *temporary_name(void)
{
    uint64_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    return xasprintf(".box-cp-%016llx", (unsigned long long)random);
}

/* NULL for what a copy may replace. */
static const char *describe_special(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFCHR:
        return "character device";
    case S_IFBLK:
        return "block device";
    case S_IFIFO:
        return "FIFO";
    case S_IFSOCK:
        return "socket";
    default:
        return NULL;
    }
}

static int judge(const struct stat *status, const char *name, struct error *err)
{
    const char *what = describe_special(status->st_mode);
    return what ? error_set(err, ERR_STATE, "%s is a %s, and stays one: only a file is replaced", name, what) : 0;
}

/* The one rename here. What stands there is looked at once more: it may have come since the copy began. */
static int give_name(int directory, const char *temporary, const char *name, struct error *err)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && judge(&status, name, err) < 0) {
        return -1;
    }
    if (renameat(directory, temporary, directory, name) < 0) {
        return error_set_errno(err, errno, "cannot write %s", name);
    }
    return 0;
}

static int write_data(const struct unpack *unpack, struct tarread *reader, int fd, const char *name, struct error *err)
{
    CLEANUP(freep) char *chunk = xmalloc(CHUNK);
    ssize_t got;
    while ((got = tarread_data(reader, chunk, CHUNK, err)) > 0) {
        if (fd_write_all(fd, chunk, (size_t)got, err) < 0) {
            return error_wrap(err, "cannot write %s", name);
        }
        count(unpack->moved, (uint64_t)got);
    }
    return (int)got;
}

static int place_file(const struct unpack *unpack, struct tarread *reader, const struct tarread_entry *entry,
                      int directory, const char *name, struct error *err)
{
    CLEANUP(freep) char *temporary = temporary_name();
    CLEANUP(fd_closep)
    int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry->mode & 0777);
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot write %s", name);
    }
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = entry->mtime}};
    int result = write_data(unpack, reader, fd, name, err);
    if (result == 0) {
        (void)futimens(fd, times);
        result = give_name(directory, temporary, name, err);
    }
    if (result < 0) {
        (void)unlinkat(directory, temporary, 0);
    }
    return result;
}

/* A link may go up only at its beginning, and not above the target: then it stays inside, also by way of other such
 * links, for the directories it goes up through are real ones. */
static bool stays_inside(const char *link, size_t depth)
{
    if (!*link || *link == '/') {
        return false;
    }
    bool down = false;
    while (*link) {
        size_t length = strcspn(link, "/");
        if (length == 2 && strncmp(link, "..", 2) == 0) {
            if (down || !depth) {
                return false;
            }
            depth--;
        } else if (length && !(length == 1 && *link == '.')) {
            down = true;
        }
        link += length + strspn(link + length, "/");
    }
    return true;
}

static int place_link(const struct unpack *unpack, const char *path, const char *link, int directory, const char *name,
                      size_t depth, struct error *err)
{
    if (!stays_inside(link, depth)) {
        tally_add(unpack->skipped, path);
        return 0;
    }
    CLEANUP(freep) char *temporary = temporary_name();
    if (symlinkat(link, directory, temporary) < 0) {
        return error_set_errno(err, errno, "cannot make the link %s", name);
    }
    if (give_name(directory, temporary, name, err) < 0) {
        (void)unlinkat(directory, temporary, 0);
        return -1;
    }
    return 0;
}

/* Opens a directory below `parent`, making it where it is not there. A link of that name gives way. */
static int enter(int parent, const char *name, mode_t mode, int *ret_fd, struct error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    struct stat status;
    if (fd < 0 && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
        (void)unlinkat(parent, name, 0);
        fd = openat(parent, name, flags);
    }
    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(parent, name, mode | 0700) < 0 && errno != EEXIST) {
            return error_set_errno(err, errno, "cannot make the directory %s", name);
        }
        fd = openat(parent, name, flags);
    }
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot use the directory %s", name);
    }
    *ret_fd = fd;
    return 0;
}

static int place(const struct unpack *unpack, struct tarread *reader, const struct tarread_entry *entry, int directory,
                 const char *name, size_t depth, struct error *err)
{
    CLEANUP(fd_closep) int fd = -1;
    switch (entry->kind) {
    case TARREAD_FILE:
        return place_file(unpack, reader, entry, directory, name, err);
    case TARREAD_DIRECTORY:
        return enter(directory, name, entry->mode & 0777, &fd, err);
    case TARREAD_SYMLINK:
        return place_link(unpack, entry->name, entry->link, directory, name, depth, err);
    case TARREAD_OTHER:
        break;
    }
    tally_add(unpack->skipped, entry->name);
    return 0;
}

/* Walks down the entry's name, each step a real directory, and puts it at its end. */
static int unpack_below(const struct unpack *unpack, struct tarread *reader, const struct tarread_entry *entry,
                        int root, struct error *err)
{
    CLEANUP(fd_closep) int directory = fcntl(root, F_DUPFD_CLOEXEC, 3);
    CLEANUP(freep) char *copy = xstrdup(entry->name);
    char *rest = copy;
    size_t depth = 0;
    for (;;) {
        rest += strspn(rest, "/");
        size_t length = strcspn(rest, "/");
        char *next = rest + length;
        next += strspn(next, "/");
        bool last = !*next;
        rest[length] = '\0';
        if (strcmp(rest, "..") == 0 || (!*rest && depth)) {
            return error_set(err, ERR_CONTRACT, "the archive holds a name that leads out of the target");
        }
        bool here = strcmp(rest, ".") == 0;
        if (last) {
            return here || !*rest ? 0 : place(unpack, reader, entry, directory, rest, depth, err);
        }
        if (!here) {
            int below;
            if (enter(directory, rest, 0755, &below, err) < 0) {
                return -1;
            }
            fd_closep(&directory);
            directory = below;
            depth++;
        }
        rest = next;
    }
}

static int unpack_tree(const struct unpack *unpack, struct tarread *reader, const struct tarread_entry *entry,
                       int parent, const char *name, struct error *err)
{
    CLEANUP(fd_closep) int root = -1;
    root = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* the user's own link is theirs to follow */
    if (root < 0 && enter(parent, name, entry->mode & 0777, &root, err) < 0) {
        return -1;
    }
    for (;;) {
        if (tarread_next(reader, &entry, err) < 0) {
            return -1;
        }
        if (!entry) {
            return 0;
        }
        if (entry->name[0] == '/') {
            return error_set(err, ERR_CONTRACT, "the archive holds a name that leads out of the target");
        }
        if (unpack_below(unpack, reader, entry, root, err) < 0) {
            return -1;
        }
    }
}

/* "a/b" is b in a; "b" is b here; "/" and "." are themselves. */
static int open_parent(const char *target, int *ret_fd, const char **ret_name, struct error *err)
{
    const char *slash = strrchr(target, '/');
    CLEANUP(freep)
    char *parent = !slash ? xstrdup(".") : xstrndup(target, slash == target ? 1 : (size_t)(slash - target));
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot write to the directory %s", parent);
    }
    *ret_fd = fd;
    *ret_name = slash ? slash + 1 : target;
    return 0;
}

int unpack_resolve(const char *target, char **ret_final, struct error *err)
{
    CLEANUP(freep) char *trimmed = xstrdup(target);
    for (size_t length = strlen(trimmed); length > 1 && trimmed[length - 1] == '/';) {
        trimmed[--length] = '\0';
    }
    struct stat status;
    if (lstat(trimmed, &status) < 0) { /* a new name; or what makes it, says why not */
        *ret_final = steal(&trimmed);
        return 0;
    }
    if (!S_ISLNK(status.st_mode)) {
        if (judge(&status, trimmed, err) < 0) {
            return -1;
        }
        *ret_final = steal(&trimmed);
        return 0;
    }
    CLEANUP(freep) char *led = NULL;
    if (stat(trimmed, &status) < 0 || !(led = realpath(trimmed, NULL))) {
        return errno == ENOENT ? error_set(err, ERR_STATE, "%s is a symbolic link that leads to nothing", trimmed)
                               : error_set_errno(err, errno, "cannot follow the symbolic link %s", trimmed);
    }
    if (judge(&status, led, err) < 0) {
        return error_wrap(err, "%s is a symbolic link", trimmed);
    }
    *ret_final = steal(&led);
    return 0;
}

int unpack_run(const struct unpack *unpack, const char *target, struct error *err)
{
    CLEANUP(freep) char *trimmed = NULL;
    if (unpack_resolve(target, &trimmed, err) < 0) {
        return -1;
    }
    CLEANUP(tarread_closep) struct tarread *reader = tarread_open(unpack->fd);
    CLEANUP(fd_closep) int parent = -1;
    const char *name = NULL;
    const struct tarread_entry *entry = NULL;
    if (open_parent(trimmed, &parent, &name, err) < 0 || tarread_next(reader, &entry, err) < 0) {
        return -1;
    }
    if (!entry) {
        return error_set(err, ERR_PROTOCOL, "the archive is empty");
    }
    if (entry->kind == TARREAD_DIRECTORY) {
        return unpack_tree(unpack, reader, entry, parent, *name ? name : ".", err);
    }
    if (entry->kind != TARREAD_FILE) {
        return error_set(err, ERR_PROTOCOL, "what came is neither a file nor a directory");
    }
    if (place_file(unpack, reader, entry, parent, name, err) < 0 || tarread_next(reader, &entry, err) < 0) {
        return -1;
    }
    return entry ? error_set(err, ERR_PROTOCOL, "more came than the file that was asked for") : 0;
}
