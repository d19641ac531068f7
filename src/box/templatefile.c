/* A template's files as bytes: kinds, sizes and what must not be in them.
 * Not for what they mean: box.env is envfile.c's, YAML is cloud-init's to judge. */
#include "box/templatefile.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int refuse_kind(const char *path, mode_t mode, const char *wanted, struct error *err)
{
    static const struct {
        mode_t mode;
        const char *name;
    } kinds[] = {{S_IFREG, "a file"},    {S_IFDIR, "a directory"}, {S_IFIFO, "a FIFO"},
                 {S_IFSOCK, "a socket"}, {S_IFCHR, "a device"},    {S_IFBLK, "a device"}};
    const char *found = "something else";

    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        found = kinds[i].mode == (mode & S_IFMT) ? kinds[i].name : found;
    }
    return error_set(err, ERR_USAGE, "%s: %s, not %s", path, found, wanted);
}

int templatefile_check_directory(const char *path, struct error *err)
{
    struct stat status;

    if (lstat(path, &status) < 0) {
        return errno == ENOENT ? error_set(err, ERR_USAGE, "%s: there is no such file", path)
                               : error_set_errno(err, errno, "%s", path);
    }
    if (S_ISLNK(status.st_mode) && stat(path, &status) < 0) {
        return errno == ENOENT || errno == ELOOP ? error_set(err, ERR_USAGE, "%s: a link that leads nowhere", path)
                                                 : error_set_errno(err, errno, "%s", path);
    }
    return S_ISDIR(status.st_mode) ? 0 : refuse_kind(path, status.st_mode, "a directory", err);
}

static int refuse_open(const char *path, int reason, struct error *err)
{
    switch (reason) {
    case ENOENT:
        return error_set(err, ERR_USAGE, "%s: there is no such file", path);
    case ENXIO:
        return refuse_kind(path, S_IFSOCK, "a file", err);
    case ELOOP:
        return error_set(err, ERR_USAGE,
                         "%s: a symbolic link, which could lead any file of this host into a box; a template holds the "
                         "file itself",
                         path);
    default:
        return error_set_errno(err, reason, "%s", path);
    }
}

/* A template may be anybody's, and git keeps links: none is followed. What is judged is what was opened, so that
 * nothing can be put in its place in between. O_NONBLOCK: a FIFO would else wait for a writer. */
static int read_file(const char *path, size_t ceiling, struct buffer *ret_data, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    CLEANUP(error_reset) struct error cause = {0};
    struct stat status;

    if (fd < 0) {
        return refuse_open(path, errno, err);
    }
    if (fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse_kind(path, status.st_mode, "a file", err);
    }
    if (fd_read_all(fd, ceiling, ret_data, &cause) == 0) {
        return 0;
    }
    return cause.errnum == 0 ? error_set(err, ERR_USAGE, "%s: larger than %zu MiB", path, ceiling / (1024 * 1024))
                             : error_set_errno(err, cause.errnum, "%s", path);
}

int templatefile_read_env(const char *path, struct buffer *ret_data, struct error *err)
{
    return read_file(path, TEMPLATEFILE_ENV_CEILING, ret_data, err);
}

/* At most TEMPLATEFILE_CEILING bytes of UTF-8 without NUL: the daemon takes them as a JSON string. */
static int read_text(const char *path, struct buffer *ret_data, struct error *err)
{
    if (read_file(path, TEMPLATEFILE_CEILING, ret_data, err) < 0) {
        return -1;
    }
    if (ret_data->length >= 2 && memcmp(ret_data->data, "\x1f\x8b", 2) == 0) {
        error_set(err, ERR_USAGE, "%s: compressed with gzip", path);
        return error_remedy(err, "unpack it: up to 1 MiB is handed on as it is");
    }
    if (ret_data->data && memchr(ret_data->data, '\0', ret_data->length)) {
        return error_set(err, ERR_USAGE, "%s: a NUL byte", path);
    }
    if (ret_data->data && !text_is_utf8(ret_data->data, ret_data->length)) {
        return error_set(err, ERR_USAGE, "%s: bytes that are not UTF-8", path);
    }
    return 0;
}

static size_t line_of(const struct buffer *data, size_t offset)
{
    size_t line = 1;

    for (size_t i = 0; i < offset; i++) {
        line += data->data[i] == '\n';
    }
    return line;
}

static bool is_script(const struct buffer *data)
{
    return data->length >= 2 && memcmp(data->data, "#!", 2) == 0;
}

/* A kernel takes a carriage return for a part of the interpreter's name, and a shell for a part of each command. */
static int check_script(const char *path, const struct buffer *data, struct error *err)
{
    const char *found = memchr(data->data, '\r', data->length);

    if (!found) {
        return 0;
    }
    error_set(err, ERR_USAGE, "%s:%zu: a carriage return: lines must end as on Unix", path,
              line_of(data, (size_t)(found - data->data)));
    return error_remedy(err, "sed -i 's/\\r$//' on the file");
}

/* What YAML 1.1 calls not printable; of two bytes are U+0080 to U+009F, of which U+0085 is a line end. cloud-init drops
 * the whole for one of them. */
static int check_printable(const char *path, const struct buffer *data, struct error *err)
{
    for (size_t i = 0; i < data->length; i++) {
        unsigned char byte = (unsigned char)data->data[i];
        unsigned char next = i + 1 < data->length ? (unsigned char)data->data[i + 1] : 0;
        bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0 && next != 0x85;

        if (c1 || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) {
            return error_set(err, ERR_USAGE, "%s:%zu: a control character (U+%04X), which YAML does not allow", path,
                             line_of(data, i), (unsigned)(c1 ? next : byte));
        }
    }
    return 0;
}

int templatefile_read_user_data(const char *path, struct buffer *ret_data, struct error *err)
{
    if (read_text(path, ret_data, err) < 0) {
        return -1;
    }
    return is_script(ret_data) ? check_script(path, ret_data, err) : check_printable(path, ret_data, err);
}

int templatefile_read_script(const char *path, struct buffer *ret_data, struct error *err)
{
    struct stat status;

    if (lstat(path, &status) < 0 && errno == ENOENT) {
        return 0;
    }
    if (read_text(path, ret_data, err) < 0) {
        return -1;
    }
    if (!is_script(ret_data)) {
        error_set(err, ERR_USAGE, "%s:1: a script begins with #! and its interpreter", path);
        return error_remedy(err, "#!/bin/sh as its first line");
    }
    return check_script(path, ret_data, err);
}
