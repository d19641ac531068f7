/* Templates: the keys of box.env and their values, what a directory makes, the places where templates lie.
 * Not for the format of box.env (envfile.c), nor for the bytes of the other files (templatefile.c). */
#include "box/template.h"

#include "base/memory.h"
#include "base/text.h"
#include "box/envfile.h"
#include "box/name.h"
#include "box/tag.h"
#include "box/templatefile.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_CEILING 200 /* bytes of a value: listings and errors show them whole */
#define IMAGE_BYTES   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"

/* A value of each kind is checked and stored by one function. */
static int set_description(struct template *template, const char *value, struct error *err)
{
    (void)err;
    template->description = xstrdup(value);
    return 0;
}

/* Told on a terminal, and stamped on the box. */
static int set_login(struct template *template, const char *value, struct error *err)
{
    CLEANUP(freep) char *clean = text_sanitise(value, strlen(value));

    if (!text_equal(clean, value)) {
        return error_set(err, ERR_USAGE, "BOX_LOGIN: it has characters that cannot be shown");
    }
    template->login = xstrdup(value);
    return 0;
}

static int set_image(struct template *template, const char *value, struct error *err)
{
    if (text_is_empty(value) || value[strspn(value, IMAGE_BYTES)] != '\0') {
        return error_set(err, ERR_USAGE, "BOX_IMAGE: '%s' is not an image's name, such as debian/13", value);
    }
    template->image = xstrdup(value);
    return 0;
}

static int set_user(struct template *template, const char *value, struct error *err)
{
    if (!tag_valid_user(value)) {
        return error_set(err, ERR_USAGE, "BOX_USER: '%s' is not a user's name: a-z 0-9 _ -, at most 32", value);
    }
    template->user = xstrdup(value);
    return 0;
}

static int set_cpu(struct template *template, const char *value, struct error *err)
{
    template->limits.cpu = xstrdup(value);
    return limits_check_cpu("BOX_CPU", value, err);
}

static int set_memory(struct template *template, const char *value, struct error *err)
{
    template->limits.memory = xstrdup(value);
    return limits_check_memory("BOX_MEMORY", value, err);
}

static int set_disk(struct template *template, const char *value, struct error *err)
{
    template->limits.disk = xstrdup(value);
    return limits_check_disk("BOX_DISK", value, err);
}

static int read_truth(const char *key, const char *value, bool *ret_truth, struct error *err)
{
    if (!text_equal(value, "true") && !text_equal(value, "false")) {
        return error_set(err, ERR_USAGE, "%s: '%s' is neither true nor false", key, value);
    }
    *ret_truth = text_equal(value, "true");
    return 0;
}

static int set_require_vm(struct template *template, const char *value, struct error *err)
{
    return read_truth("BOX_REQUIRE_VM", value, &template->require_vm, err);
}

static int set_autostart(struct template *template, const char *value, struct error *err)
{
    return read_truth("BOX_AUTOSTART", value, &template->autostart, err);
}

/* The allowlist. No key for a network, a device or a security flag is in it, on purpose: a template cannot ask for less
 * isolation. */
static const struct {
    const char *key;
    int (*set)(struct template *template, const char *value, struct error *err);
    const char *meaning;
} keys[] = {
    {"BOX_DESCRIPTION", set_description, "one line that listings show"},
    {"BOX_IMAGE", set_image, "the image that boxes are made from; " TEMPLATE_DEFAULT_IMAGE " where it is not said"},
    {"BOX_USER", set_user,
     "whom exec and shell land in; user-data.yaml must make that user; " TEMPLATE_DEFAULT_USER " where it is not said"},
    {"BOX_CPU", set_cpu, "number of CPUs that a box may use"},
    {"BOX_MEMORY", set_memory, "memory that a box may use, with its unit: 2GiB"},
    {"BOX_DISK", set_disk, "size of a box's disk, with its unit: 10GiB"},
    {"BOX_REQUIRE_VM", set_require_vm, "true: never mint it as a container, which shares the host's kernel"},
    {"BOX_LOGIN", set_login, "what to type in a box to log in, told when one is ready; never a secret"},
    {"BOX_AUTOSTART", set_autostart, "true: its boxes start with the host"},
};

bool template_describe_key(size_t index, const char **ret_key, const char **ret_meaning)
{
    if (index >= ARRAY_LENGTH(keys)) {
        return false;
    }
    *ret_key = keys[index].key;
    *ret_meaning = keys[index].meaning;
    return true;
}

struct parsing {
    struct template *template;
    bool seen[ARRAY_LENGTH(keys)];
};

static int unknown_key(const char *key, struct error *err)
{
    static const char *const refused[] = {"NET", "SECUR", "PRIV", "DEV", "PROFILE", "RAW", "ACL", "NIC", "MOUNT"};
    CLEANUP(freep) char *shown = text_sanitise(key, strnlen(key, 64));

    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        if (strstr(key, refused[i])) {
            return error_set(err, ERR_USAGE,
                             "unknown key %s: a template has no say in a box's network, devices or security", shown);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (text_distance(key, keys[i].key) <= 2) {
            return error_set(err, ERR_USAGE, "unknown key %s: did you mean %s?", shown, keys[i].key);
        }
    }
    return error_set(err, ERR_USAGE, "unknown key %s", shown);
}

static int take_pair(void *context, const char *key, const char *value, struct error *err)
{
    struct parsing *parsing = context;

    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (text_equal(key, keys[i].key)) {
            if (parsing->seen[i]) {
                return error_set(err, ERR_USAGE, "%s is there twice", key);
            }
            parsing->seen[i] = true;
            if (strlen(value) > VALUE_CEILING) {
                return error_set(err, ERR_USAGE, "%s: at most %d bytes", key, VALUE_CEILING);
            }
            return keys[i].set(parsing->template, value, err);
        }
    }
    return unknown_key(key, err);
}

int template_parse(const char *path, const char *data, size_t length, struct template *ret_template, struct error *err)
{
    CLEANUP(template_reset) struct template template = {0};
    struct parsing parsing = {.template = &template};

    if (envfile_read(path, data, length, TEMPLATE_LINE_CEILING, take_pair, &parsing, err) < 0) {
        return -1;
    }
    template.description = template.description ? template.description : xstrdup("");
    template.login = template.login ? template.login : xstrdup("");
    template.image = template.image ? template.image : xstrdup(TEMPLATE_DEFAULT_IMAGE);
    template.user = template.user ? template.user : xstrdup(TEMPLATE_DEFAULT_USER);
    *ret_template = template;
    template = (struct template){0};
    return 0;
}

/* A template without a script keeps the digest that it had before there were scripts. */
static void make_digest(const struct buffer *env, const struct buffer *user_data, const struct buffer *script,
                        char ret_hex[SHA256_HEX_SIZE])
{
    struct sha256 digest;

    sha256_start(&digest);
    sha256_feed(&digest, &env->length, sizeof(env->length));
    sha256_feed(&digest, env->data ? env->data : "", env->length);
    sha256_feed(&digest, user_data->data ? user_data->data : "", user_data->length);
    if (script->length > 0) {
        sha256_feed(&digest, &user_data->length, sizeof(user_data->length));
        sha256_feed(&digest, script->data, script->length);
    }
    sha256_finish(&digest, ret_hex);
}

int template_read(const char *name, const char *directory, struct template *ret_template, struct error *err)
{
    CLEANUP(freep) char *env_path = xasprintf("%s/box.env", directory);
    CLEANUP(freep) char *data_path = xasprintf("%s/user-data.yaml", directory);
    CLEANUP(freep) char *script_path = xasprintf("%s/" TEMPLATE_SCRIPT, directory);
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(buffer_reset) struct buffer env = {0};
    CLEANUP(buffer_reset) struct buffer user_data = {0};
    CLEANUP(buffer_reset) struct buffer script = {0};

    if (templatefile_check_directory(directory, err) < 0 ||
        templatefile_read_env(env_path, &env, err) < 0 ||
        templatefile_read_user_data(data_path, &user_data, err) < 0 ||
        templatefile_read_script(script_path, &script, err) < 0 ||
        template_parse(env_path, env.data ? env.data : "", env.length, &template, err) < 0) {
        return error_wrap(err, "the template %s cannot be used", name);
    }
    make_digest(&env, &user_data, &script, template.digest);
    template.name = xstrdup(name);
    template.directory = xstrdup(directory);
    template.user_data_length = user_data.length;
    template.user_data = buffer_steal(&user_data);
    template.script_length = script.length;
    template.script = script.length > 0 ? buffer_steal(&script) : NULL;
    *ret_template = template;
    template = (struct template){0};
    return 0;
}

/* Run where it was built, box takes the templates that the build put beside its src; else the installed ones. */
static char *shipped_directory(void)
{
    static const char place[] = "/src/cli/box";
    const char *chosen = getenv("BOX_TEMPLATES");
    char program[4096];

    if (!text_is_empty(chosen)) {
        return xstrdup(chosen);
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (length > 0) {
        program[length] = '\0';
        if (text_ends_with(program, place)) {
            return xasprintf("%.*s/templates", (int)((size_t)length - strlen(place)), program);
        }
    }
    return xstrdup(BOX_DATA_DIRECTORY "/templates");
}

void template_places(const char *extra, struct argv *ret_directories)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (extra) {
        argv_push(ret_directories, extra);
    }
    if (!text_is_empty(config) && config[0] == '/') {
        argv_push_format(ret_directories, "%s/box/templates", config);
    } else if (!text_is_empty(home)) {
        argv_push_format(ret_directories, "%s/.config/box/templates", home);
    }
    argv_push_owned(ret_directories, shipped_directory());
}

static bool is_directory(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* A file beside the templates is none; a link that leads nowhere was meant as one, and its fault is to be told. */
static bool is_meant(const char *path)
{
    struct stat status;

    return is_directory(path) || (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && stat(path, &status) < 0);
}

int template_check_directory(const char *directory, struct error *err)
{
    return is_directory(directory) ? 0 : error_set(err, ERR_USAGE, "--template-dir: %s is not a directory", directory);
}

/* The one that may have been meant; NULL where none is near. Of a short name two letters are nearly all. */
static const char *nearest(const struct argv *known, const char *name)
{
    unsigned best = strlen(name) < 3 ? 2 : 3;
    const char *found = NULL;

    for (size_t i = 0; i < known->count; i++) {
        unsigned distance = text_distance(name, known->items[i]);

        if (distance < best) {
            best = distance;
            found = known->items[i];
        }
    }
    return found;
}

static int not_found(const char *name, const char *extra, struct error *err)
{
    CLEANUP(argv_reset) struct argv known = {0};
    struct template_row *rows = NULL;
    size_t count = 0;

    template_list(extra, &rows, &count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].hidden && !rows[i].fault) {
            argv_push(&known, rows[i].name);
        }
    }
    template_list_free(rows, count);
    CLEANUP(freep) char *list = argv_join(&known, ", ");
    const char *near = nearest(&known, name);

    error_set(err, ERR_NOT_FOUND, "no such template: %s%s%s%s; there is: %s", name, near ? ": did you mean " : "",
              near ? near : "", near ? "?" : "", known.count > 0 ? list : "none");
    return error_remedy(err, "box templates");
}

int template_find(const char *name, const char *extra, struct template *ret_template, struct error *err)
{
    CLEANUP(argv_reset) struct argv places = {0};

    if (name_check_template(name, err) < 0) {
        return -1;
    }
    if (extra && template_check_directory(extra, err) < 0) {
        return -1;
    }
    template_places(extra, &places);
    for (size_t i = 0; i < places.count; i++) {
        CLEANUP(freep) char *directory = xasprintf("%s/%s", places.items[i], name);

        if (is_meant(directory)) {
            return template_read(name, directory, ret_template, err);
        }
    }
    return not_found(name, extra, err);
}

static int is_candidate(const struct dirent *entry)
{
    return name_check_template(entry->d_name, NULL) == 0;
}

static void add_row(const char *name, const char *directory, struct template_row **rows, size_t *count)
{
    CLEANUP(error_reset) struct error fault = {0};
    struct template_row row = {.name = xstrdup(name), .directory = xstrdup(directory)};

    for (size_t i = 0; i < *count; i++) {
        row.hidden = row.hidden || text_equal((*rows)[i].name, name);
    }
    if (template_read(name, directory, &row.template, &fault) < 0) {
        row.fault = xstrdup(fault.message);
    }
    *rows = xreallocarray(*rows, *count + 1, sizeof(row));
    (*rows)[(*count)++] = row;
}

static int compare_rows(const void *a, const void *b)
{
    const struct template_row *left = a, *right = b;
    int order = strcmp(left->name, right->name);

    return order != 0 ? order : (int)left->hidden - (int)right->hidden;
}

void template_list(const char *extra, struct template_row **ret_rows, size_t *ret_count)
{
    CLEANUP(argv_reset) struct argv places = {0};
    struct template_row *rows = NULL;
    size_t count = 0;

    template_places(extra, &places);
    for (size_t i = 0; i < places.count; i++) {
        struct dirent **entries = NULL;
        int found = scandir(places.items[i], &entries, is_candidate, alphasort);

        for (int j = 0; j < found; j++) {
            CLEANUP(freep) char *directory = xasprintf("%s/%s", places.items[i], entries[j]->d_name);

            if (is_meant(directory)) {
                add_row(entries[j]->d_name, directory, &rows, &count);
            }
            free(entries[j]);
        }
        free(entries);
    }
    if (rows) {
        qsort(rows, count, sizeof(*rows), compare_rows);
    }
    *ret_rows = rows;
    *ret_count = count;
}

void template_list_free(struct template_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].name);
        free(rows[i].directory);
        free(rows[i].fault);
        template_reset(&rows[i].template);
    }
    free(rows);
}

void template_reset(struct template *template)
{
    free(template->name);
    free(template->directory);
    free(template->description);
    free(template->image);
    free(template->user);
    free(template->user_data);
    free(template->script);
    free(template->login);
    limits_reset(&template->limits);
    *template = (struct template){0};
}
