/* The parser of a template's box.env, and the rules for each of its values.
 * Not for finding the file (template.c). The bytes are somebody else's: every fault ends the parse with file and line. */
#include "box/settings.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"

#include <stdint.h>
#include <string.h>

#define DESCRIPTION_CEILING 200 /* bytes: a line of a listing */
#define MOST_CPUS           4096
#define LEAST_MEMORY        (64ULL << 20) /* below, a guest does not come up: most likely a wrong unit */
#define LEAST_DISK          (64ULL << 20)

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"B", 1},          {"kB", 1000},       {"MB", 1000000},    {"GB", 1000000000},  {"TB", 1000000000000},
        {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40},
    };
    size_t digits = strspn(text, "0123456789");
    CLEANUP(freep) char *number = xstrndup(text, digits);
    uint64_t value = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        if (text_equal(text + digits, units[i].unit)) {
            if (!text_parse_number(number, 1, INT64_MAX / units[i].bytes, &value)) {
                return false;
            }
            *ret_bytes = value * units[i].bytes;
            return true;
        }
    }
    return false;
}

/* Each rule says what is wrong with a value, or NULL. */
static const char *judge_size(const char *value, uint64_t least, const char *too_small)
{
    uint64_t bytes = 0;

    if (!parse_size(value, &bytes)) {
        return "is no size: a number and its unit, such as 512MiB, 4GiB or 20GB";
    }
    return bytes < least ? too_small : NULL;
}

static const char *judge_memory(const char *value)
{
    return judge_size(value, LEAST_MEMORY, "is too little memory for a box: at least 64MiB");
}

static const char *judge_disk(const char *value)
{
    return judge_size(value, LEAST_DISK, "is too little disk for a box: at least 64MiB");
}

static const char *judge_cpu(const char *value)
{
    uint64_t count = 0;

    return text_parse_number(value, 1, MOST_CPUS, &count) ? NULL : "is no number of CPUs: 1 to 4096";
}

static const char *judge_user(const char *value)
{
    return tag_valid_user(value) ? NULL : "is no user's name: 1 to 32 of a-z 0-9 _ and -, a letter or _ first";
}

static const char *judge_image(const char *value)
{
    size_t length = strlen(value);
    const char *marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";

    if (length == 0 || length > 128 || strspn(value, marks) != length || strspn(value, "._/-") > 0) {
        return "is no alias of an image, such as debian/13";
    }
    return NULL;
}

static const char *judge_truth(const char *value)
{
    return text_equal(value, "true") || text_equal(value, "false") ? NULL : "must be true or false";
}

static const char *judge_description(const char *value)
{
    return strlen(value) <= DESCRIPTION_CEILING ? NULL : "is longer than 200 bytes";
}

/* The allowlist. */
static const struct row {
    const char *key;
    const char *(*judge)(const char *value);
    size_t offset;
    bool is_truth;
} rows[] = {
    {"BOX_DESCRIPTION", judge_description, offsetof(struct settings, description), false},
    {"BOX_IMAGE", judge_image, offsetof(struct settings, image), false},
    {"BOX_USER", judge_user, offsetof(struct settings, user), false},
    {"BOX_CPU", judge_cpu, offsetof(struct settings, cpu), false},
    {"BOX_MEMORY", judge_memory, offsetof(struct settings, memory), false},
    {"BOX_DISK", judge_disk, offsetof(struct settings, disk), false},
    {"BOX_REQUIRE_VM", judge_truth, offsetof(struct settings, require_vm), true},
    {"BOX_AUTOSTART", judge_truth, offsetof(struct settings, autostart), true},
};

static const struct row *find_row(const char *key)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (text_equal(rows[i].key, key)) {
            return &rows[i];
        }
    }
    return NULL;
}

int settings_check(const char *key, const char *value, const char *where, struct error *err)
{
    const struct row *row = find_row(key);

    if (!row) {
        abort();
    }
    const char *fault = row->judge(value);
    if (!fault) {
        return 0;
    }
    CLEANUP(freep) char *shown = text_sanitise(value, strnlen(value, 64));
    return error_set(err, ERR_USAGE, "%s: \"%s\" %s", where, shown, fault);
}

/* Where a parse is: for the words of an error. */
struct place {
    const char *file;
    size_t line;
};

static int fault(const struct place *place, struct error *err, const char *text)
{
    return error_set(err, ERR_USAGE, "%s:%zu: %s", place->file, place->line, text);
}

static int refuse_key(const struct place *place, const char *key, struct error *err)
{
    static const char *const walls[] = {"NETWORK", "NIC", "PROFILE", "DEVICE", "SECURITY", "PRIVILEGED", "NESTING", "RAW"};
    CLEANUP(buffer_reset) struct buffer known = {0};
    CLEANUP(freep) char *shown = text_sanitise(key, strnlen(key, 64));

    for (size_t i = 0; i < ARRAY_LENGTH(walls); i++) {
        if (strstr(key, walls[i])) {
            return error_set(err, ERR_USAGE, "%s:%zu: unknown key %s: a template cannot choose a box's network or walls",
                             place->file, place->line, shown);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        buffer_append_format(&known, "%s%s", i > 0 ? ", " : "", rows[i].key);
    }
    return error_set(err, ERR_USAGE, "%s:%zu: unknown key %s; known are %s", place->file, place->line, shown,
                     known.data);
}

static int store(const struct place *place, const char *key, const char *value, unsigned *seen,
                 struct settings *settings, struct error *err)
{
    const struct row *row = find_row(key);

    if (!row) {
        return refuse_key(place, key, err);
    }
    CLEANUP(freep) char *where = xasprintf("%s:%zu: %s", place->file, place->line, key);
    unsigned bit = 1U << (row - rows);

    if (*seen & bit) {
        return error_set(err, ERR_USAGE, "%s is set a second time", where);
    }
    *seen |= bit;
    if (settings_check(key, value, where, err) < 0) {
        return -1;
    }
    if (row->is_truth) {
        *(bool *)((char *)settings + row->offset) = text_equal(value, "true");
    } else {
        *(char **)((char *)settings + row->offset) = xstrdup(value);
    }
    return 0;
}

/* What no line may hold, whatever it says: nothing is ever handed on with a stray carriage return. */
static int check_bytes(const struct place *place, const char *line, size_t length, struct error *err)
{
    if (length > SETTINGS_LINE_CEILING) {
        return fault(place, err, "the line is longer than 4096 bytes");
    }
    if (length >= 3 && place->line == 1 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        return fault(place, err, "the file begins with a byte order mark; save it as UTF-8 without one");
    }
    if (memchr(line, '\0', length)) {
        return fault(place, err, "a NUL byte");
    }
    if (length > 0 && line[length - 1] == '\r') {
        return fault(place, err, "the line ends in CRLF; save the file with Unix line ends");
    }
    if (!text_is_utf8(line, length)) {
        return fault(place, err, "bytes that are not UTF-8");
    }
    CLEANUP(freep) char *clean = text_sanitise(line, length);
    return strlen(clean) == length && memcmp(clean, line, length) == 0 ? 0
                                                                       : fault(place, err, "a control character");
}

/* The line is KEY="value" with nothing around; what stands between the quotes is the value, as it is. */
static int parse_line(const struct place *place, const char *line, size_t length, unsigned *seen,
                      struct settings *settings, struct error *err)
{
    if (check_bytes(place, line, length, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *text = xstrndup(line, length);
    size_t blanks = strspn(text, " \t");

    if (text[blanks] == '\0' || text[blanks] == '#') {
        return 0;
    }
    size_t key_length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    const char *value = text + key_length;

    if (key_length == 0 || length < key_length + 3 || value[0] != '=' || value[1] != '"' || text[length - 1] != '"') {
        return fault(place, err, "not KEY=\"value\" (no blanks around, double quotes, nothing behind)");
    }
    text[length - 1] = '\0';
    text[key_length] = '\0';
    value += 2;
    if (value[strcspn(value, "\"\\")] != '\0') {
        return fault(place, err, "a value cannot hold a double quote or a backslash: nothing is escaped");
    }
    if (value[strcspn(value, "\t")] != '\0') {
        return fault(place, err, "a value cannot hold a tab");
    }
    return store(place, text, value, seen, settings, err);
}

int settings_parse(const char *data, size_t length, const char *file, struct settings *ret_settings,
                   struct error *err)
{
    CLEANUP(settings_reset) struct settings settings = {0};
    struct place place = {.file = file};
    unsigned seen = 0;

    for (size_t at = 0; at < length;) {
        const char *end = memchr(data + at, '\n', length - at);
        size_t line_length = end ? (size_t)(end - (data + at)) : length - at;

        place.line++;
        if (parse_line(&place, data + at, line_length, &seen, &settings, err) < 0) {
            return -1;
        }
        at += line_length + 1;
        if (at > SETTINGS_CEILING + 1) {
            return fault(&place, err, "the file is larger than 64 KiB");
        }
    }
    *ret_settings = settings;
    settings = (struct settings){0};
    return 0;
}

void settings_reset(struct settings *settings)
{
    free(settings->description);
    free(settings->image);
    free(settings->user);
    free(settings->cpu);
    free(settings->memory);
    free(settings->disk);
    *settings = (struct settings){0};
}
