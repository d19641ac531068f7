/* Looking into an exported box without unpacking it: every member judged, the index read under ceilings.
 * Not for what its configuration asks for: the daemon's own reading of that is reduced after the import (import.c). */
#include "box/artifact.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/name.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LIBARCHIVE_SONAME  "libarchive.so.13"
#define LIBARCHIVE_PACKAGE "libarchive13"
#define INDEX_PATH         "backup/index.yaml"
#define INDEX_CEILING      (1024 * 1024)
#define PATH_CEILING       4096
#define MEMBERS_CEILING    20000000
#define BLOCK              (256 * 1024)

/* The functions of libarchive that are called here, loaded on first use. Filters that run programs are not among them.
 */
struct library_table {
    struct archive *(*read_new)(void);
    int (*filter_gzip)(struct archive *archive);
    int (*filter_bzip2)(struct archive *archive);
    int (*filter_xz)(struct archive *archive);
    int (*filter_zstd)(struct archive *archive);
    int (*format_tar)(struct archive *archive);
    int (*open_fd)(struct archive *archive, int fd, size_t block);
    int (*next_header)(struct archive *archive, struct archive_entry **ret_entry);
    la_ssize_t (*read_data)(struct archive *archive, void *buffer, size_t size);
    const char *(*error_string)(struct archive *archive);
    la_int64_t (*filter_bytes)(struct archive *archive, int filter);
    int (*read_free)(struct archive *archive);
    const char *(*pathname)(struct archive_entry *entry);
    const char *(*hardlink)(struct archive_entry *entry);
    const char *(*symlink)(struct archive_entry *entry);
    __LA_MODE_T (*filetype)(struct archive_entry *entry);
    la_int64_t (*size)(struct archive_entry *entry);
    dev_t (*rdev)(struct archive_entry *entry);
};

static const struct library_symbol symbols[] = {
    LIBRARY_SYMBOL(struct library_table, read_new, "archive_read_new"),
    LIBRARY_SYMBOL(struct library_table, filter_gzip, "archive_read_support_filter_gzip"),
    LIBRARY_SYMBOL(struct library_table, filter_bzip2, "archive_read_support_filter_bzip2"),
    LIBRARY_SYMBOL(struct library_table, filter_xz, "archive_read_support_filter_xz"),
    LIBRARY_SYMBOL(struct library_table, filter_zstd, "archive_read_support_filter_zstd"),
    LIBRARY_SYMBOL(struct library_table, format_tar, "archive_read_support_format_tar"),
    LIBRARY_SYMBOL(struct library_table, open_fd, "archive_read_open_fd"),
    LIBRARY_SYMBOL(struct library_table, next_header, "archive_read_next_header"),
    LIBRARY_SYMBOL(struct library_table, read_data, "archive_read_data"),
    LIBRARY_SYMBOL(struct library_table, error_string, "archive_error_string"),
    LIBRARY_SYMBOL(struct library_table, filter_bytes, "archive_filter_bytes"),
    LIBRARY_SYMBOL(struct library_table, read_free, "archive_read_free"),
    LIBRARY_SYMBOL(struct library_table, pathname, "archive_entry_pathname"),
    LIBRARY_SYMBOL(struct library_table, hardlink, "archive_entry_hardlink"),
    LIBRARY_SYMBOL(struct library_table, symlink, "archive_entry_symlink"),
    LIBRARY_SYMBOL(struct library_table, filetype, "archive_entry_filetype"),
    LIBRARY_SYMBOL(struct library_table, size, "archive_entry_size"),
    LIBRARY_SYMBOL(struct library_table, rdev, "archive_entry_rdev"),
};

struct reader {
    struct library_table library;
    struct archive *archive;
    const char *path;
    struct narrator *narrator;
    int64_t size, next_tick;
};

static void reader_reset(struct reader *reader)
{
    if (reader->archive) {
        (void)reader->library.read_free(reader->archive);
    }
}

/* No empty, "." or ".." part, and not absolute: what tar would write to is what is read. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, "/");

        if ((length == 0 && at[length]) || (length == 1 && at[0] == '.') ||
            (length == 2 && strncmp(at, "..", 2) == 0)) {
            return false;
        }
        at += length;
        at += *at == '/';
    }
    return *path && *path != '/' && strlen(path) <= PATH_CEILING;
}

/* The length of "backup/container/" or "backup/snapshots/LABEL/" (a VM's likewise) where the path is below one; else 0.
 */
static size_t volume_prefix(const char *path)
{
    static const char *const single[] = {"backup/container/", "backup/virtual-machine/",
                                         "backup/virtual-machine-config/"};
    static const char *const several[] = {"backup/snapshots/", "backup/virtual-machine-snapshots/"};

    for (size_t i = 0; i < ARRAY_LENGTH(single); i++) {
        if (text_starts_with(path, single[i])) {
            return strlen(single[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(several); i++) {
        if (text_starts_with(path, several[i])) {
            size_t label = strcspn(path + strlen(several[i]), "/");

            return path[strlen(several[i]) + label] == '/' ? strlen(several[i]) + label + 1 : 0;
        }
    }
    return 0;
}

/* True where the path is strictly below the root file system of a volume, whose prefix is `*ret_length` long with it.
 */
static bool below_rootfs(const char *path, size_t *ret_length)
{
    size_t prefix = volume_prefix(path);

    if (prefix == 0 || !text_starts_with(path + prefix, "rootfs/") || !path[prefix + strlen("rootfs/")]) {
        return false;
    }
    *ret_length = prefix + strlen("rootfs/");
    return true;
}

/* What a system's own /dev has, and what an overlay marks deleted files with: nothing behind them is the host's. */
static bool is_harmless_device(unsigned device_major, unsigned device_minor)
{
    return (device_major == 0 && device_minor == 0) ||
           (device_major == 1 &&
            (device_minor == 3 || device_minor == 5 || (device_minor >= 7 && device_minor <= 9))) ||
           (device_major == 5 && device_minor <= 2);
}

bool artifact_allows(const char *path, enum artifact_kind kind, const char *link, unsigned device_major,
                     unsigned device_minor, const char **ret_why)
{
    size_t root = 0, link_root = 0;
    bool inside = is_plain(path) && below_rootfs(path, &root);

    *ret_why = NULL;
    if (!is_plain(path) || !text_starts_with(path, "backup/")) {
        *ret_why = "its path leads out of the archive";
    } else if (kind == ARTIFACT_BLOCK_DEVICE ||
               (kind == ARTIFACT_CHARACTER_DEVICE && (!inside || !is_harmless_device(device_major, device_minor)))) {
        *ret_why = "it is a device of the host";
    } else if (kind == ARTIFACT_HARDLINK && (!inside || !link || !is_plain(link) || !below_rootfs(link, &link_root) ||
                                             link_root != root || strncmp(link, path, root) != 0)) {
        *ret_why = "it is a hard link out of the root file system";
    } else if (kind == ARTIFACT_SYMLINK && !inside) {
        *ret_why = "it is a symbolic link outside of the root file system";
    } else if ((kind == ARTIFACT_FIFO || kind == ARTIFACT_SOCKET) && !inside) {
        *ret_why = "no export has such a file outside of the root file system";
    } else if (kind == ARTIFACT_FILE && !text_equal(path, INDEX_PATH) && volume_prefix(path) == 0 &&
               !text_ends_with(path, ".img")) {
        *ret_why = "it is a storage stream or a volume, and cannot be looked into";
    }
    return !*ret_why;
}

static enum artifact_kind kind_of(const struct reader *reader, struct archive_entry *entry)
{
    if (reader->library.hardlink(entry)) {
        return ARTIFACT_HARDLINK;
    }
    switch (reader->library.filetype(entry)) {
    case AE_IFDIR:
        return ARTIFACT_DIRECTORY;
    case AE_IFLNK:
        return ARTIFACT_SYMLINK;
    case AE_IFIFO:
        return ARTIFACT_FIFO;
    case AE_IFSOCK:
        return ARTIFACT_SOCKET;
    case AE_IFCHR:
        return ARTIFACT_CHARACTER_DEVICE;
    case AE_IFBLK:
        return ARTIFACT_BLOCK_DEVICE;
    default:
        return ARTIFACT_FILE;
    }
}

static int refuse_member(const struct reader *reader, const char *member, const char *why, struct error *err)
{
    CLEANUP(freep) char *shown = text_sanitise(member, strnlen(member, 200));

    return error_set(err, ERR_CONTRACT, "%s is refused: its member %s: %s", reader->path, shown, why);
}

static int check_member(const struct reader *reader, struct archive_entry *entry, struct error *err)
{
    const char *name = reader->library.pathname(entry);
    enum artifact_kind kind = kind_of(reader, entry);
    const char *link = kind == ARTIFACT_HARDLINK ? reader->library.hardlink(entry) : reader->library.symlink(entry);
    dev_t device = reader->library.rdev(entry);
    const char *why = NULL;

    if (!name) {
        return refuse_member(reader, "?", "its name is no text", err);
    }
    CLEANUP(freep) char *path = xstrdup(name);
    size_t length = strlen(path);

    if (length > 1 && path[length - 1] == '/') {
        path[length - 1] = '\0';
    }
    return artifact_allows(path, kind, link, major(device), minor(device), &why)
               ? 0
               : refuse_member(reader, name, why, err);
}

static int broken(const struct reader *reader, struct error *err)
{
    const char *said = reader->library.error_string(reader->archive);
    CLEANUP(freep) char *clean = said ? text_sanitise(said, strnlen(said, 200)) : xstrdup("it ends early");

    return error_set(err, ERR_USAGE, "%s is no export of a box, or is damaged: %s", reader->path, clean);
}

static int read_index(struct reader *reader, struct archive_entry *entry, struct artifact *artifact, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    const char *name = reader->library.pathname(entry);

    if (!text_equal(name, INDEX_PATH) || kind_of(reader, entry) != ARTIFACT_FILE) {
        return error_set(err, ERR_USAGE, "%s is no export of a box: its first member is not " INDEX_PATH, reader->path);
    }
    if (reader->library.size(entry) > INDEX_CEILING) {
        return error_set(err, ERR_CONTRACT,
                         "%s is refused: its index has %lld bytes, and none of a box has more than %d", reader->path,
                         (long long)reader->library.size(entry), INDEX_CEILING);
    }
    for (;;) {
        char *room = buffer_reserve(&text, 65536);
        la_ssize_t got = reader->library.read_data(reader->archive, room, 65536);

        if (got < 0) {
            return broken(reader, err);
        }
        if (got == 0) {
            break;
        }
        text.length += (size_t)got;
        if (text.length > INDEX_CEILING) {
            return error_set(err, ERR_CONTRACT, "%s is refused: its index is too large", reader->path);
        }
    }
    if (artifact_read_index(text.data ? text.data : "", text.length, artifact, err) < 0) {
        return error_wrap(err, "%s is refused", reader->path);
    }
    return 0;
}

/* "key: value" at the beginning of a line; quotes around a plain value are YAML's. The caller frees. */
static char *top_level(const char *text, size_t length, const char *key)
{
    size_t key_length = strlen(key);

    for (const char *line = text, *end = text + length; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = stop ? (size_t)(stop - line) : (size_t)(end - line);

        if (size > key_length + 1 && strncmp(line, key, key_length) == 0 && line[key_length] == ':') {
            const char *value = line + key_length + 1;
            size_t left = size - key_length - 1;

            while (left > 0 && *value == ' ') {
                value++;
                left--;
            }
            if (left >= 2 && (*value == '"' || *value == '\'') && value[left - 1] == *value) {
                value++;
                left -= 2;
            }
            return xstrndup(value, left);
        }
        line += size + 1;
    }
    return NULL;
}

int artifact_read_index(const char *text, size_t length, struct artifact *ret_artifact, struct error *err)
{
    CLEANUP(freep) char *name = top_level(text, length, "name");
    CLEANUP(freep) char *type = top_level(text, length, "type");
    CLEANUP(freep) char *optimized = top_level(text, length, "optimized");

    if (memchr(text, '\0', length) || !name || !type ||
        (!text_equal(type, "container") && !text_equal(type, "virtual-machine"))) {
        return error_set(err, ERR_USAGE, "its index is not one of Incus's");
    }
    if (optimized && !text_equal(optimized, "false")) {
        return error_set(err, ERR_CONTRACT, "it holds a storage stream, which cannot be looked into");
    }
    if (name_check(name, err) < 0) {
        return error_wrap(err, "the name in its index");
    }
    *ret_artifact = (struct artifact){.name = steal(&name), .vm = text_equal(type, "virtual-machine")};
    return 0;
}

static int go_on(struct reader *reader, struct error *err)
{
    if (clock_now() < reader->next_tick) {
        return 0;
    }
    reader->next_tick = clock_now() + NARRATE_TICK_MS;
    if (reader->size > 0) {
        narrate_progress(reader->narrator, "%d%%",
                         (int)(100 * reader->library.filter_bytes(reader->archive, -1) / reader->size));
    }
    narrate_tick(reader->narrator);
    return cancel_check(err);
}

static int read_members(struct reader *reader, struct artifact *artifact, struct error *err)
{
    struct archive_entry *entry = NULL;

    for (;;) {
        int result = reader->library.next_header(reader->archive, &entry);

        if (result == ARCHIVE_EOF) {
            break;
        }
        /* A warning is a name that is not of this locale, and no reason to stop. */
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
            return broken(reader, err);
        }
        if (artifact->members++ == 0) {
            if (read_index(reader, entry, artifact, err) < 0) {
                return -1;
            }
            artifact->members = 1;
        } else if (text_equal(reader->library.pathname(entry), INDEX_PATH)) {
            return refuse_member(reader, INDEX_PATH, "it is there twice", err);
        }
        if (check_member(reader, entry, err) < 0 || go_on(reader, err) < 0) {
            return -1;
        }
        if (artifact->members > MEMBERS_CEILING) {
            return error_set(err, ERR_CONTRACT, "%s is refused: it has more than %d members", reader->path,
                             MEMBERS_CEILING);
        }
    }
    return artifact->members > 1
               ? 0
               : error_set(err, ERR_USAGE, "%s is no export of a box: it holds no disk", reader->path);
}

static int open_archive(struct reader *reader, int fd, struct error *err)
{
    struct library_table *library = &reader->library;

    if (library_load(LIBARCHIVE_SONAME, LIBARCHIVE_PACKAGE, symbols, ARRAY_LENGTH(symbols), library, err) < 0) {
        return -1;
    }
    reader->archive = library->read_new();
    if (!reader->archive) {
        return error_set(err, ERR_SYSTEM, "libarchive does not start");
    }
    (void)library->filter_gzip(reader->archive);
    (void)library->filter_bzip2(reader->archive);
    (void)library->filter_xz(reader->archive);
    (void)library->filter_zstd(reader->archive);
    (void)library->format_tar(reader->archive);
    return library->open_fd(reader->archive, fd, BLOCK) == ARCHIVE_OK ? 0 : broken(reader, err);
}

int artifact_check(int fd, const char *path, struct narrator *narrator, struct artifact *ret_artifact,
                   struct error *err)
{
    CLEANUP(reader_reset) struct reader reader = {.path = path, .narrator = narrator};
    CLEANUP(artifact_reset) struct artifact artifact = {0};
    struct stat status;

    if (fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "cannot look at %s", path);
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        return error_set(err, ERR_USAGE, "%s is %s", path, S_ISREG(status.st_mode) ? "empty" : "not a regular file");
    }
    reader.size = status.st_size;
    if (open_archive(&reader, fd, err) < 0 || read_members(&reader, &artifact, err) < 0) {
        return -1;
    }
    if (lseek(fd, 0, SEEK_SET) < 0) {
        return error_set_errno(err, errno, "cannot go back to the beginning of %s", path);
    }
    *ret_artifact = artifact;
    artifact = (struct artifact){0};
    return 0;
}

void artifact_reset(struct artifact *artifact)
{
    free(artifact->name);
    *artifact = (struct artifact){0};
}
