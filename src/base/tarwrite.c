/* Files of this host as a tar stream.
 * Not for: reading one, which somebody else wrote: tarread.c. */
#include "base/tarwrite.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/tarblock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH      200 /* directories within each other: each holds a descriptor open */
#define CHUNK      ((size_t)256 * 1024)
#define SLURPED    ((uint64_t)64 << 20) /* the most that is read of a file before its size is known */
#define OCTAL_SIZE ((uint64_t)8 << 30)  /* eleven octal digits end here */

static void count(uint64_t *counter, uint64_t more)
{
    if (counter) {
        __atomic_add_fetch(counter, more, __ATOMIC_RELAXED);
    }
}

/* A record of a pax header counts its own length: "25 path=...\n". */
static void append_record(struct buffer *records, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest + 1;
    for (;;) {
        CLEANUP(freep) char *digits = xasprintf("%zu", length);
        if (strlen(digits) + rest == length) {
            break;
        }
        length = strlen(digits) + rest;
    }
    buffer_append_format(records, "%zu %s=%s\n", length, key, value);
}

static void fill_field(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);
    memcpy(field, text, length < size ? length : size);
}

static int write_block(const struct tarwrite *archive, char type, const char *name, const char *link,
                       const struct stat *status, uint64_t size, struct error *err)
{
    union tarblock block = {0};
    fill_field(block.field.name, sizeof(block.field.name), name);
    fill_field(block.field.link, sizeof(block.field.link), link);
    (void)snprintf(block.field.mode, sizeof(block.field.mode), "%07o", (unsigned)status->st_mode & 0777U);
    (void)snprintf(block.field.uid, sizeof(block.field.uid), "%07o", 0U);
    (void)snprintf(block.field.gid, sizeof(block.field.gid), "%07o", 0U);
    long long when = status->st_mtime > 0 ? (long long)status->st_mtime & 077777777777LL : 0;
    (void)snprintf(block.field.mtime, sizeof(block.field.mtime), "%011llo", (unsigned long long)when);
    (void)snprintf(block.field.size, sizeof(block.field.size), "%011llo",
                   (unsigned long long)(size < OCTAL_SIZE ? size : 0));
    memcpy(block.field.magic, "ustar\00000", 8);
    block.field.type = type;
    (void)snprintf(block.field.sum, sizeof(block.field.sum), "%06o", tarblock_sum(&block));
    block.field.sum[7] = ' ';
    return fd_write_all(archive->fd, &block, sizeof(block), err);
}

static int pad(const struct tarwrite *archive, uint64_t size, struct error *err)
{
    static const char zeros[TARBLOCK_SIZE];
    size_t over = (size_t)(size % TARBLOCK_SIZE);
    return over ? fd_write_all(archive->fd, zeros, TARBLOCK_SIZE - over, err) : 0;
}

static int write_header(const struct tarwrite *archive, char type, const char *name, const char *link,
                        const struct stat *status, uint64_t size, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer records = {0};
    if (strlen(name) > sizeof(((union tarblock *)0)->field.name)) {
        append_record(&records, "path", name);
    }
    if (strlen(link) > sizeof(((union tarblock *)0)->field.link)) {
        append_record(&records, "linkpath", link);
    }
    if (size >= OCTAL_SIZE) {
        CLEANUP(freep) char *digits = xasprintf("%llu", (unsigned long long)size);
        append_record(&records, "size", digits);
    }
    if (records.length) {
        static const struct stat plain = {.st_mode = 0644};
        if (write_block(archive, TARBLOCK_PAX, "pax", "", &plain, records.length, err) < 0 ||
            fd_write_all(archive->fd, records.data, records.length, err) < 0 || pad(archive, records.length, err) < 0) {
            return -1;
        }
    }
    return write_block(archive, type, name, link, status, size, err);
}

/* The sizes of files in /proc and /sys are told as 0 or as a page, whatever is in them. */
static int add_small_file(const struct tarwrite *archive, int fd, const char *path, const char *name,
                          const struct stat *status, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer data = {0};
    if (fd_read_all(fd, SLURPED, &data, err) < 0) {
        return error_wrap(err, "cannot read %s", path);
    }
    if (write_header(archive, TARBLOCK_FILE, name, "", status, data.length, err) < 0 ||
        (data.length && fd_write_all(archive->fd, data.data, data.length, err) < 0)) {
        return -1;
    }
    count(archive->moved, data.length);
    return pad(archive, data.length, err);
}

static void note_growth(const struct tarwrite *archive, int fd, const char *path)
{
    char more;
    if (read(fd, &more, 1) > 0) {
        tally_add(archive->grown, path);
    }
}

static int add_file(const struct tarwrite *archive, int fd, const char *path, const char *name,
                    const struct stat *status, struct error *err)
{
    uint64_t size = (uint64_t)status->st_size;
    uint64_t left = size;
    if (write_header(archive, TARBLOCK_FILE, name, "", status, size, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *chunk = xmalloc(CHUNK);
    while (left) {
        ssize_t got = read(fd, chunk, left < CHUNK ? (size_t)left : CHUNK);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(err, errno, "cannot read %s", path);
        }
        if (got == 0) {
            return error_set(err, ERR_SYSTEM, "%s became shorter while it was being copied", path);
        }
        if (fd_write_all(archive->fd, chunk, (size_t)got, err) < 0) {
            return -1;
        }
        left -= (uint64_t)got;
        count(archive->moved, (uint64_t)got);
    }
    note_growth(archive, fd, path);
    return pad(archive, size, err);
}

static int add(const struct tarwrite *archive, int parent, const char *entry, const char *path, const char *name,
               int depth, struct error *err);

static void free_directory(DIR **directory)
{
    if (*directory) {
        (void)closedir(*directory);
    }
}

static int add_entries(const struct tarwrite *archive, int fd, const char *path, const char *name, int depth,
                       struct error *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    CLEANUP(free_directory) DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (!directory) {
        int failure = errno;
        fd_closep(&copy);
        return error_set_errno(err, failure, "cannot read %s", path);
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(directory);
        if (!entry) {
            return errno ? error_set_errno(err, errno, "cannot read %s", path) : 0;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        CLEANUP(freep) char *below = xasprintf("%s/%s", path, entry->d_name);
        CLEANUP(freep) char *member = xasprintf("%s/%s", name, entry->d_name);
        if (add(archive, fd, entry->d_name, below, member, depth + 1, err) < 0) {
            return -1;
        }
    }
}

static int add_link(const struct tarwrite *archive, int parent, const char *entry, const char *path, const char *name,
                    const struct stat *status, struct error *err)
{
    char target[4097];
    ssize_t length = readlinkat(parent, entry, target, sizeof(target) - 1);
    if (length < 0) {
        return error_set_errno(err, errno, "cannot read the link %s", path);
    }
    target[length] = '\0';
    return write_header(archive, TARBLOCK_SYMLINK, name, target, status, 0, err);
}

/* `entry` in `parent` is what is read, `path` is what it is called in messages. At depth 0 a link is followed. */
static int add(const struct tarwrite *archive, int parent, const char *entry, const char *path, const char *name,
               int depth, struct error *err)
{
    struct stat status;
    int follow = depth ? AT_SYMLINK_NOFOLLOW : 0;
    if (depth > DEPTH) {
        return error_set(err, ERR_SYSTEM, "%s lies more than %d directories deep", path, DEPTH);
    }
    if (fstatat(parent, entry, &status, follow) < 0) {
        if (errno == ENOENT && depth) {
            return 0; /* deleted since its directory was read */
        }
        return error_set_errno(err, errno, "cannot read %s", path);
    }
    if (S_ISLNK(status.st_mode)) {
        return add_link(archive, parent, entry, path, name, &status, err);
    }
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
        if (!depth) {
            return error_set(err, ERR_USAGE, "%s is neither a file nor a directory", path);
        }
        tally_add(archive->skipped, path);
        return 0;
    }
    CLEANUP(fd_closep) int fd = openat(parent, entry, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (depth ? O_NOFOLLOW : 0));
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "cannot read %s", path);
    }
    if (S_ISDIR(status.st_mode)) {
        CLEANUP(freep) char *slashed = xasprintf("%s/", name);
        if (write_header(archive, TARBLOCK_DIRECTORY, slashed, "", &status, 0, err) < 0) {
            return -1;
        }
        return add_entries(archive, fd, path, name, depth, err);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, ERR_SYSTEM, "%s changed while it was being copied", path);
    }
    return (size_t)status.st_size < CHUNK ? add_small_file(archive, fd, path, name, &status, err)
                                          : add_file(archive, fd, path, name, &status, err);
}

int tarwrite_add(const struct tarwrite *archive, const char *path, const char *name, struct error *err)
{
    return add(archive, AT_FDCWD, path, path, name, 0, err);
}

int tarwrite_directory(const struct tarwrite *archive, const char *name, struct error *err)
{
    static const struct stat status = {.st_mode = 0755};
    CLEANUP(freep) char *slashed = xasprintf("%s/", name);
    return write_header(archive, TARBLOCK_DIRECTORY, slashed, "", &status, 0, err);
}

int tarwrite_empty(const struct tarwrite *archive, const char *name, struct error *err)
{
    static const struct stat status = {.st_mode = 0600};
    return write_header(archive, TARBLOCK_FILE, name, "", &status, 0, err);
}

int tarwrite_end(const struct tarwrite *archive, struct error *err)
{
    static const char zeros[2 * TARBLOCK_SIZE];
    return fd_write_all(archive->fd, zeros, sizeof(zeros), err);
}

static uint64_t size_of(int parent, const char *entry, int depth)
{
    struct stat status;
    if (depth > DEPTH || fstatat(parent, entry, &status, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0) {
        return 0;
    }
    if (S_ISREG(status.st_mode)) {
        return (uint64_t)status.st_size;
    }
    int fd = S_ISDIR(status.st_mode) ? openat(parent, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    CLEANUP(free_directory) DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        fd_closep(&fd);
        return 0;
    }
    uint64_t sum = 0;
    for (struct dirent *below; (below = readdir(directory));) {
        if (strcmp(below->d_name, ".") != 0 && strcmp(below->d_name, "..") != 0) {
            sum += size_of(fd, below->d_name, depth + 1);
        }
    }
    return sum;
}

uint64_t tarwrite_size(const char *path)
{
    return size_of(AT_FDCWD, path, 0);
}
