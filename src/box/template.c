/* Templates: where they lie, and the reading of one: box.env and user-data.yaml.
 * Not for what a line of box.env may say (settings.c), nor for what a mint makes of it (mint.c). */
#include "box/template.h"

#include "base/argv.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/name.h"
#include "box/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTINGS_FILE  "box.env"
#define USER_DATA_FILE "user-data.yaml"
#define BUILD_PLACE    "/src/cli/box" /* where a build puts the program: templates lie beside its src */

/* The directories in which templates are looked for, in order; `sources` in step with `paths`. */
struct search {
    struct argv paths;
    enum template_source sources[4];
};

static void search_reset(struct search *search)
{
    argv_reset(&search->paths);
}

static void add_place(struct search *search, char *path, enum template_source source)
{
    search->sources[search->paths.count] = source;
    argv_push_owned(&search->paths, path);
}

static char *user_place(void)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (config && config[0] == '/') { /* the specification: a relative one is to be ignored */
        return xasprintf("%s/box/templates", config);
    }
    return home && home[0] == '/' ? xasprintf("%s/.config/box/templates", home) : NULL;
}

static char *build_place(void)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (length < 0) {
        return NULL;
    }
    program[length] = '\0';
    if (!text_ends_with(program, BUILD_PLACE)) {
        return NULL;
    }
    return xasprintf("%.*s/templates", (int)((size_t)length - strlen(BUILD_PLACE)), program);
}

static int find_places(const char *directory, struct search *search, struct error *err)
{
    struct stat status;

    if (directory) {
        if (stat(directory, &status) < 0 || !S_ISDIR(status.st_mode)) {
            return error_set(err, ERR_USAGE, "--template-dir: %s is not a directory", directory);
        }
        add_place(search, xstrdup(directory), TEMPLATE_GIVEN);
    }
    char *path = user_place();
    if (path) {
        add_place(search, path, TEMPLATE_USER);
    }
    path = build_place();
    if (path) {
        add_place(search, path, TEMPLATE_BUILD);
    }
    add_place(search, xstrdup(BOX_TEMPLATES), TEMPLATE_SHIPPED);
    return 0;
}

/* What is there instead of a file, said before it is opened: opening a FIFO or a device can have effects of its own. */
static int check_kind(const char *path, mode_t wanted, struct error *err)
{
    struct stat status;
    const char *kind = NULL;

    if (lstat(path, &status) < 0) {
        return errno == ENOENT ? error_set(err, ERR_USAGE, "%s: there is no such file", path)
                               : error_set_errno(err, errno, "%s", path);
    }
    if (S_ISLNK(status.st_mode) && stat(path, &status) < 0) {
        return errno == ENOENT || errno == ELOOP ? error_set(err, ERR_USAGE, "%s: a link that leads nowhere", path)
                                                 : error_set_errno(err, errno, "%s", path);
    }
    switch (status.st_mode & S_IFMT) {
    case S_IFREG: kind = "a file"; break;
    case S_IFDIR: kind = "a directory"; break;
    case S_IFIFO: kind = "a FIFO"; break;
    case S_IFSOCK: kind = "a socket"; break;
    default: kind = "a device"; break;
    }
    if ((status.st_mode & S_IFMT) != wanted) {
        return error_set(err, ERR_USAGE, "%s: %s, not %s", path, kind, wanted == S_IFDIR ? "a directory" : "a file");
    }
    return 0;
}

/* Reads at most `ceiling` bytes of a regular file, and one more where there is more. */
static int read_file(const char *path, size_t ceiling, struct buffer *bytes, struct error *err)
{
    struct stat status;

    if (check_kind(path, S_IFREG, err) < 0) {
        return -1;
    }
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, ERR_USAGE, "%s: not a file", path);
    }
    while (bytes->length <= ceiling) {
        char *end = buffer_reserve(bytes, 65536);
        size_t most = ceiling + 1 - bytes->length;
        ssize_t got = read(fd, end, most < 65536 ? most : 65536);

        if (got < 0 && errno != EINTR) {
            return error_set_errno(err, errno, "%s", path);
        }
        if (got == 0) {
            break;
        }
        bytes->length += got > 0 ? (size_t)got : 0;
    }
    bytes->data[bytes->length] = '\0';
    return 0;
}

/* The characters that YAML 1.1 allows, as cloud-init's parser has them: it drops the whole file for one of another. */
static bool is_printable(uint32_t code)
{
    return code == 0x09 || code == 0x0a || code == 0x0d || (code >= 0x20 && code <= 0x7e) || code == 0x85 ||
           (code >= 0xa0 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
}

/* The character at `data`; returns its length in bytes, 0 where it is not UTF-8. */
static size_t decode(const char *data, size_t left, uint32_t *ret_code)
{
    unsigned char lead = (unsigned char)data[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (length > left || !text_is_utf8(data, length)) {
        return 0;
    }
    uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);

    for (size_t i = 1; i < length; i++) {
        code = code << 6 | ((unsigned char)data[i] & 0x3f);
    }
    *ret_code = code;
    return length;
}

static int check_user_data(const char *data, size_t length, const char *path, struct error *err)
{
    size_t line = 1;
    uint32_t code = 0;

    if (length > TEMPLATE_USER_DATA_CEILING) {
        return error_set(err, ERR_USAGE, "%s: larger than 1 MiB, the most that is handed on to cloud-init", path);
    }
    if (length >= 2 && data[0] == '\x1f' && data[1] == '\x8b') {
        error_set(err, ERR_USAGE, "%s: compressed with gzip", path);
        return error_remedy(err, "unpack it; up to 1 MiB is handed on as it is");
    }
    for (size_t at = 0; at < length;) {
        size_t step = decode(data + at, length - at, &code);

        if (step == 0) {
            return error_set(err, ERR_USAGE, "%s:%zu: byte 0x%02x is not UTF-8", path, line, (unsigned char)data[at]);
        }
        if (!is_printable(code)) {
            return error_set(err, ERR_USAGE, "%s:%zu: character U+%04X, which YAML does not allow", path, line, code);
        }
        line += code == '\n';
        at += step;
    }
    return 0;
}

static void feed(struct sha256 *digest, const char *name, const struct buffer *bytes)
{
    CLEANUP(freep) char *frame = xasprintf("%s %zu\n", name, bytes->length);

    sha256_feed(digest, frame, strlen(frame));
    sha256_feed(digest, bytes->data, bytes->length);
}

static int read_settings(const char *path, struct buffer *bytes, struct template *template, struct error *err)
{
    CLEANUP(settings_reset) struct settings settings = {0};

    /* A line that begins below the file's ceiling is read whole, so that its fault is told, not the ceiling's. */
    if (read_file(path, SETTINGS_CEILING + SETTINGS_LINE_CEILING + 1, bytes, err) < 0 ||
        settings_parse(bytes->data, bytes->length, path, &settings, err) < 0) {
        return -1;
    }
    if (!settings.image || !settings.user) {
        return error_set(err, ERR_USAGE, "%s: %s is missing", path, settings.image ? "BOX_USER" : "BOX_IMAGE");
    }
    template->description = steal(&settings.description);
    template->image = steal(&settings.image);
    template->user = steal(&settings.user);
    template->cpu = steal(&settings.cpu);
    template->memory = steal(&settings.memory);
    template->disk = steal(&settings.disk);
    template->require_vm = settings.require_vm;
    template->autostart = settings.autostart;
    return 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int template_read(const char *directory, enum template_source source, struct template *ret_template,
                  struct error *err)
{
    CLEANUP(template_reset) struct template template = {.name = xstrdup(last_part(directory)),
                                                        .directory = xstrdup(directory),
                                                        .source = source};
    CLEANUP(freep) char *settings_path = xasprintf("%s/" SETTINGS_FILE, directory);
    CLEANUP(freep) char *user_data_path = xasprintf("%s/" USER_DATA_FILE, directory);
    CLEANUP(buffer_reset) struct buffer settings = {0};
    CLEANUP(buffer_reset) struct buffer user_data = {0};
    struct sha256 digest;

    if (check_kind(directory, S_IFDIR, err) < 0 || read_settings(settings_path, &settings, &template, err) < 0 ||
        read_file(user_data_path, TEMPLATE_USER_DATA_CEILING, &user_data, err) < 0 ||
        check_user_data(user_data.data, user_data.length, user_data_path, err) < 0) {
        return -1;
    }
    sha256_start(&digest);
    feed(&digest, SETTINGS_FILE, &settings);
    feed(&digest, USER_DATA_FILE, &user_data);
    sha256_finish(&digest, template.digest);
    template.user_data_length = user_data.length;
    template.user_data = buffer_steal(&user_data);
    *ret_template = template;
    template = (struct template){0};
    return 0;
}

static int no_such_template(const char *name, const char *directory, struct error *err)
{
    CLEANUP(argv_reset) struct argv names = {0};
    struct template_entry *entries = NULL;
    size_t count = 0;

    if (directory) {
        CLEANUP(freep) char *settings = xasprintf("%s/" SETTINGS_FILE, directory);

        if (access(settings, F_OK) == 0) {
            error_set(err, ERR_USAGE, "--template-dir: %s is a template itself", directory);
            return error_remedy(err, "give the directory above it, and --template with its name");
        }
    }
    if (template_list(directory, &entries, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        argv_push(&names, entries[i].template.name);
    }
    template_list_free(entries, count);
    CLEANUP(freep) char *list = argv_join(&names, ", ");
    error_set(err, ERR_NOT_FOUND, "there is no template '%s'%s%s", name, names.count > 0 ? "; there are: " : "", list);
    return error_remedy(err, "box templates");
}

int template_find(const char *name, const char *directory, struct template *ret_template, struct error *err)
{
    CLEANUP(search_reset) struct search search = {0};
    struct stat status;

    if (name_check_template(name, err) < 0 || find_places(directory, &search, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < search.paths.count; i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%s", search.paths.items[i], name);

        if (lstat(path, &status) == 0) {
            return template_read(path, search.sources[i], ret_template, err);
        }
    }
    return no_such_template(name, directory, err);
}

static void read_entry(const char *place, const char *name, enum template_source source,
                       struct template_entry *ret_entry)
{
    CLEANUP(freep) char *path = xasprintf("%s/%s", place, name);
    CLEANUP(error_reset) struct error cause = {0};
    struct template_entry entry = {0};

    if (name_check_template(name, &cause) < 0 || template_read(path, source, &entry.template, &cause) < 0) {
        entry.template = (struct template){.name = xstrdup(name), .directory = xstrdup(path), .source = source};
        entry.fault = xstrdup(cause.message);
    }
    *ret_entry = entry;
}

/* Not a template, and not meant as one: a file beside them, a hidden directory. A link that leads nowhere was meant. */
static bool is_beside(const char *place, const char *name)
{
    CLEANUP(freep) char *path = xasprintf("%s/%s", place, name);
    struct stat status;

    return name[0] == '.' || (stat(path, &status) == 0 && !S_ISDIR(status.st_mode));
}

static int list_place(const struct search *search, size_t index, struct template_entry **entries, size_t *count,
                      struct error *err)
{
    const char *place = search->paths.items[index];
    DIR *directory = opendir(place);
    size_t before = *count;

    if (!directory) {
        /* Only what was asked for by name must be there. */
        return search->sources[index] == TEMPLATE_GIVEN ? error_set_errno(err, errno, "%s", place) : 0;
    }
    for (const struct dirent *item; (item = readdir(directory));) {
        bool known = is_beside(place, item->d_name);

        for (size_t i = 0; i < before && !known; i++) {
            known = text_equal((*entries)[i].template.name, item->d_name);
        }
        if (!known) {
            *entries = xreallocarray(*entries, *count + 1, sizeof(**entries));
            read_entry(place, item->d_name, search->sources[index], &(*entries)[(*count)++]);
        }
    }
    (void)closedir(directory);
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct template_entry *)a)->template.name, ((const struct template_entry *)b)->template.name);
}

int template_list(const char *directory, struct template_entry **ret_entries, size_t *ret_count, struct error *err)
{
    CLEANUP(search_reset) struct search search = {0};
    struct template_entry *entries = NULL;
    size_t count = 0;

    if (find_places(directory, &search, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < search.paths.count; i++) {
        if (list_place(&search, i, &entries, &count, err) < 0) {
            template_list_free(entries, count);
            return -1;
        }
    }
    if (count > 0) {
        qsort(entries, count, sizeof(*entries), compare_entries);
    }
    *ret_entries = entries;
    *ret_count = count;
    return 0;
}

void template_list_free(struct template_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        template_reset(&entries[i].template);
        free(entries[i].fault);
    }
    free(entries);
}

static int decide(const char *key, const char *flag, const char *given, const char *fallback, char **value,
                  struct error *err)
{
    const char *surroundings = getenv(key);

    if (given || !text_is_empty(surroundings)) {
        const char *chosen = given ? given : surroundings;
        CLEANUP(freep) char *where = given ? xstrdup(flag) : xasprintf("%s in the environment", key);

        if (settings_check(key, chosen, where, err) < 0) {
            return -1;
        }
        free(*value);
        *value = xstrdup(chosen);
    } else if (!*value) {
        *value = xstrdup(fallback);
    }
    return 0;
}

int template_decide_limits(struct template *template, const char *cpu, const char *memory, const char *disk,
                           struct error *err)
{
    if (decide("BOX_CPU", "--cpu", cpu, TEMPLATE_DEFAULT_CPU, &template->cpu, err) < 0 ||
        decide("BOX_MEMORY", "--memory", memory, TEMPLATE_DEFAULT_MEMORY, &template->memory, err) < 0 ||
        decide("BOX_DISK", "--disk", disk, TEMPLATE_DEFAULT_DISK, &template->disk, err) < 0) {
        return -1;
    }
    return 0;
}

const char *template_source_name(enum template_source source)
{
    static const char *const names[] = {
        [TEMPLATE_GIVEN] = "--template-dir",
        [TEMPLATE_USER] = "user",
        [TEMPLATE_BUILD] = "build",
        [TEMPLATE_SHIPPED] = "shipped",
    };

    return names[source];
}

void template_reset(struct template *template)
{
    free(template->name);
    free(template->directory);
    free(template->description);
    free(template->image);
    free(template->user);
    free(template->cpu);
    free(template->memory);
    free(template->disk);
    free(template->user_data);
    *template = (struct template){0};
}
