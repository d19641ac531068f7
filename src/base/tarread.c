/* A tar stream that somebody else wrote, entry by entry.
 * Not for: files; what may become one is decided in unpack.c. */
#include "base/tarread.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/tarblock.h"
#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ROOM           ((size_t)256 * 1024)
#define LONGEST        ((uint64_t)64 * 1024) /* bytes of a pax header or a long name */
#define LARGEST        ((uint64_t)1 << 62)
#define HEADERS_IN_ROW 16 /* before the entry that they are for */

struct tarread {
    int fd;
    char *data; /* what was read and not yet taken: [start, start + length) */
    size_t start, length;
    uint64_t left;  /* bytes of the entry's data that are still to come */
    size_t padding; /* behind them */
    struct tarread_entry entry;
};

static void entry_reset(struct tarread_entry *entry)
{
    free(entry->name);
    free(entry->link);
    *entry = (struct tarread_entry){0};
}

struct tarread *tarread_open(int fd)
{
    struct tarread *reader = xcalloc(1, sizeof(*reader));
    reader->fd = fd;
    reader->data = xmalloc(ROOM);
    return reader;
}

void tarread_close(struct tarread *reader)
{
    if (reader) {
        entry_reset(&reader->entry);
        free(reader->data);
        free(reader);
    }
}

/* At least one byte, or the end (*ret_end). */
static int fill(struct tarread *reader, bool *ret_end, struct error *err)
{
    *ret_end = false;
    while (!reader->length) {
        ssize_t got = read(reader->fd, reader->data, ROOM);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(err, errno, "cannot read the archive");
        }
        if (got == 0) {
            *ret_end = true;
            return 0;
        }
        reader->start = 0;
        reader->length = (size_t)got;
    }
    return 0;
}

/* Takes up to `size` bytes; `data` may be NULL. 0 never comes back but for a size of 0. */
static ssize_t take(struct tarread *reader, void *data, size_t size, struct error *err)
{
    bool end;
    if (!size) {
        return 0;
    }
    if (fill(reader, &end, err) < 0) {
        return -1;
    }
    if (end) {
        return error_set(err, ERR_PROTOCOL, "the archive stops before its end");
    }
    size_t part = size < reader->length ? size : reader->length;
    if (data) {
        memcpy(data, reader->data + reader->start, part);
    }
    reader->start += part;
    reader->length -= part;
    return (ssize_t)part;
}

static int take_all(struct tarread *reader, void *data, uint64_t size, struct error *err)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t rest = size - done;
        ssize_t got = take(reader, data ? (char *)data + done : NULL, rest < ROOM ? (size_t)rest : ROOM, err);
        if (got < 0) {
            return -1;
        }
        done += (uint64_t)got;
    }
    return 0;
}

/* Octal digits, or GNU's binary form for what eleven digits cannot say. */
static bool parse_field(const char *field, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    if ((unsigned char)field[0] == 0x80) {
        for (i = 1; i < size; i++) {
            if (value > LARGEST >> 8) {
                return false;
            }
            value = value << 8 | (unsigned char)field[i];
        }
        *ret_value = value;
        return true;
    }
    while (i < size && field[i] == ' ') {
        i++;
    }
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    if (i < size && field[i] != ' ' && field[i] != '\0') {
        return false;
    }
    *ret_value = value;
    return true;
}

static bool is_zero(const union tarblock *block)
{
    for (size_t i = 0; i < sizeof(block->bytes); i++) {
        if (block->bytes[i]) {
            return false;
        }
    }
    return true;
}

/* "25 path=...\n", again and again. What matters here is path, linkpath, size and mtime. */
static bool parse_records(char *data, size_t length, struct tarread_entry *told, bool *ret_sized)
{
    while (length) {
        size_t count = 0;
        size_t digits = 0;
        while (digits < length && digits < 6 && data[digits] >= '0' && data[digits] <= '9') {
            count = count * 10 + (size_t)(data[digits++] - '0');
        }
        if (!digits || digits >= length || data[digits] != ' ' || count > length || count < digits + 4 ||
            data[count - 1] != '\n') {
            return false;
        }
        data[count - 1] = '\0';
        char *key = data + digits + 1;
        char *value = memchr(key, '=', count - digits - 2);
        if (!value) {
            return false;
        }
        *value++ = '\0';
        bool whole = value + strlen(value) == data + count - 1; /* a NUL would end the text early */
        bool is_path = strcmp(key, "path") == 0;
        bool is_link = strcmp(key, "linkpath") == 0;
        if ((is_path || is_link) && !whole) {
            return false;
        }
        if (is_path || is_link) {
            char **target = is_path ? &told->name : &told->link;
            free(*target);
            *target = xstrdup(value);
        } else if (strcmp(key, "size") == 0) {
            if (!text_parse_number(value, 0, LARGEST, &told->size)) {
                return false;
            }
            *ret_sized = true;
        }
        data += count;
        length -= count;
    }
    return true;
}

static int broken(struct error *err)
{
    return error_set(err, ERR_PROTOCOL, "what came is no tar archive");
}

/* What headers before an entry say of it. */
struct told {
    struct tarread_entry entry;
    bool sized;
};

static void told_reset(struct told *told)
{
    entry_reset(&told->entry);
}

static int read_extra(struct tarread *reader, char type, uint64_t size, struct told *told, struct error *err)
{
    if (size > LONGEST) {
        return error_set(err, ERR_PROTOCOL, "the archive has a name of %llu bytes", (unsigned long long)size);
    }
    CLEANUP(freep) char *data = xcalloc(1, (size_t)size + 1);
    uint64_t over = size % TARBLOCK_SIZE;
    if (take_all(reader, data, size, err) < 0 || (over && take_all(reader, NULL, TARBLOCK_SIZE - over, err) < 0)) {
        return -1;
    }
    if (type == TARBLOCK_PAX) {
        return parse_records(data, (size_t)size, &told->entry, &told->sized) ? 0 : broken(err);
    }
    if (type == TARBLOCK_GNU_NAME || type == TARBLOCK_GNU_LINK) {
        char **target = type == TARBLOCK_GNU_NAME ? &told->entry.name : &told->entry.link;
        free(*target);
        *target = steal(&data);
    }
    return 0;
}

static char *header_name(const union tarblock *block)
{
    CLEANUP(freep) char *name = xstrndup(block->field.name, sizeof(block->field.name));
    if (memcmp(block->field.magic, "ustar\0", 6) != 0 || !block->field.prefix[0]) {
        return steal(&name);
    }
    CLEANUP(freep) char *prefix = xstrndup(block->field.prefix, sizeof(block->field.prefix));
    return xasprintf("%s/%s", prefix, name);
}

static enum tarread_kind kind_of(char type)
{
    switch (type) {
    case TARBLOCK_FILE:
    case '\0': /* of the time before ustar */
    case '7':
        return TARREAD_FILE;
    case TARBLOCK_DIRECTORY:
        return TARREAD_DIRECTORY;
    case TARBLOCK_SYMLINK:
        return TARREAD_SYMLINK;
    default:
        return TARREAD_OTHER;
    }
}

static int take_entry(struct tarread *reader, const union tarblock *block, uint64_t size, struct told *told,
                      struct error *err)
{
    struct tarread_entry *entry = &reader->entry;
    uint64_t mode, mtime;
    if (!parse_field(block->field.mode, sizeof(block->field.mode), &mode) ||
        !parse_field(block->field.mtime, sizeof(block->field.mtime), &mtime)) {
        return broken(err);
    }
    entry->kind = kind_of(block->field.type);
    entry->name = told->entry.name ? steal(&told->entry.name) : header_name(block);
    entry->link = told->entry.link ? steal(&told->entry.link) : xstrndup(block->field.link, sizeof(block->field.link));
    entry->mode = (mode_t)(mode & 07777);
    entry->mtime = (int64_t)(mtime & 0xffffffffffULL);
    size = told->sized ? told->entry.size : size;
    bool carries = entry->kind == TARREAD_FILE || (entry->kind == TARREAD_OTHER && block->field.type != '1');
    entry->size = entry->kind == TARREAD_FILE ? size : 0;
    reader->left = carries ? size : 0;
    reader->padding = (TARBLOCK_SIZE - (size_t)(reader->left % TARBLOCK_SIZE)) % TARBLOCK_SIZE;
    return 0;
}

static int drain(struct tarread *reader, struct error *err)
{
    bool end = false;
    while (!end) {
        reader->length = 0;
        if (fill(reader, &end, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int tarread_next(struct tarread *reader, const struct tarread_entry **ret_entry, struct error *err)
{
    CLEANUP(told_reset) struct told told = {0};
    if (take_all(reader, NULL, reader->left, err) < 0 || take_all(reader, NULL, reader->padding, err) < 0) {
        return -1;
    }
    reader->left = reader->padding = 0;
    entry_reset(&reader->entry);
    for (int headers = 0; headers < HEADERS_IN_ROW; headers++) {
        union tarblock block;
        uint64_t sum, size;
        if (take_all(reader, &block, sizeof(block), err) < 0) {
            return -1;
        }
        if (is_zero(&block)) {
            *ret_entry = NULL;
            return drain(reader, err);
        }
        if (!parse_field(block.field.sum, sizeof(block.field.sum), &sum) || sum != tarblock_sum(&block) ||
            !parse_field(block.field.size, sizeof(block.field.size), &size) || size > LARGEST) {
            return broken(err);
        }
        switch (block.field.type) {
        case TARBLOCK_PAX:
        case TARBLOCK_PAX_GLOBAL:
        case TARBLOCK_GNU_NAME:
        case TARBLOCK_GNU_LINK:
            if (read_extra(reader, block.field.type, size, &told, err) < 0) {
                return -1;
            }
            break;
        default:
            if (take_entry(reader, &block, size, &told, err) < 0) {
                return -1;
            }
            *ret_entry = &reader->entry;
            return 0;
        }
    }
    return broken(err);
}

ssize_t tarread_data(struct tarread *reader, void *data, size_t size, struct error *err)
{
    ssize_t got = take(reader, data, reader->left < size ? (size_t)reader->left : size, err);
    if (got > 0) {
        reader->left -= (uint64_t)got;
    }
    return got;
}
