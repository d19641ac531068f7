/* Seeds: kept after a first mint, found by what they were made from, dropped when nobody can get them any more.
 * Not for copying one (clone.c): a mint does that. */
#include "box/seed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"
#include "box/clone.h"
#include "box/name.h"
#include "box/remove.h"
#include "box/snapshot.h"
#include "box/tag.h"
#include "incus/instance.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_AGE   (7 * 24 * 3600)
#define COPY_BUDGET   120000

static void feed(struct sha256 *digest, const char *text)
{
    sha256_feed(digest, text, strlen(text) + 1);
}

void seed_key(const struct template *template, const char *fingerprint, bool vm, const char *version,
              char ret_key[SEED_KEY_SIZE])
{
    struct sha256 digest;
    char hex[SHA256_HEX_SIZE];

    sha256_start(&digest);
    feed(&digest, template->name);
    feed(&digest, template->digest);
    feed(&digest, fingerprint);
    feed(&digest, vm ? "vm" : "container");
    feed(&digest, version);
    sha256_finish(&digest, hex);
    memcpy(ret_key, hex, SEED_KEY_SIZE - 1);
    ret_key[SEED_KEY_SIZE - 1] = '\0';
}

int seed_max_age(int64_t *ret_seconds, struct error *err)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 24 * 3600}};
    const char *text = getenv("BOX_SEED_MAX_AGE");
    uint64_t number = 0;

    if (text_is_empty(text)) {
        *ret_seconds = DEFAULT_AGE;
        return 0;
    }
    if (text_equal(text, "0")) {
        *ret_seconds = 0;
        return 0;
    }
    CLEANUP(freep) char *digits = xstrndup(text, strlen(text) - 1);

    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        if (text[strlen(text) - 1] == units[i].letter && text_parse_number(digits, 0, 1000000000, &number)) {
            *ret_seconds = (int64_t)number * units[i].seconds;
            return 0;
        }
    }
    return error_set(err, ERR_USAGE,
                     "BOX_SEED_MAX_AGE is '%s': it must be such as 7d, 12h, 30m, 90s, or 0 for no seeds", text);
}

static char *copy(const char *text)
{
    return xstrdup(text ? text : "");
}

static void fill(struct seed *seed, json_t *object)
{
    const char *created = tag_value(object, TAG_CREATED);

    *seed = (struct seed){
        .instance = copy(json_text(object, "name")),
        .key = copy(tag_value(object, TAG_SEED)),
        .template_name = copy(tag_value(object, TAG_TEMPLATE)),
        .digest = copy(tag_value(object, TAG_DIGEST)),
        .fingerprint = copy(tag_value(object, TAG_FINGERPRINT)),
        .version = copy(tag_value(object, TAG_VERSION)),
        .vm = text_equal(json_text(object, "type"), "virtual-machine"),
        .complete = !tag_value(object, TAG_STATE) && text_equal(json_text(object, "status"), "Stopped"),
        .object = json_incref(object),
    };
    if (!created || !clock_parse(created, &seed->created)) {
        seed->created = 0;
    }
}

static void seed_reset(struct seed *seed)
{
    free(seed->instance);
    free(seed->key);
    free(seed->template_name);
    free(seed->digest);
    free(seed->fingerprint);
    free(seed->version);
    json_decref(seed->object);
    *seed = (struct seed){0};
}

void seed_list_free(struct seed *seeds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        seed_reset(&seeds[i]);
    }
    free(seeds);
}

bool seed_is_good(const struct seed *seed, int64_t max_age)
{
    int64_t age = (int64_t)time(NULL) - seed->created;

    return seed->complete && seed->created > 0 && age < max_age && age > -max_age;
}

/* The name and the tag must say the same: neither alone makes a seed. */
static bool is_seed(const json_t *object)
{
    const char *name = json_text(object, "name");

    return tag_is_box(object) && tag_is_seed(object) && name && text_starts_with(name, NAME_SEED_PREFIX) &&
           text_equal(name + strlen(NAME_SEED_PREFIX), tag_value(object, TAG_SEED));
}

int seed_find(struct client *client, const char *key, int64_t max_age, struct box **ret_seed, struct error *err)
{
    CLEANUP(json_freep) json_t *object = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *name = xasprintf(NAME_SEED_PREFIX "%s", key);
    CLEANUP(seed_reset) struct seed seed = {0};

    *ret_seed = NULL;
    if (instance_get(client, name, &object, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? 0 : error_move(err, &cause);
    }
    fill(&seed, object);
    if (is_seed(object) && seed_is_good(&seed, max_age)) {
        *ret_seed = box_from_instance(object);
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct seed *left = a, *right = b;
    int order = strcmp(left->template_name, right->template_name);

    return order != 0 ? order : left->created < right->created ? 1 : left->created > right->created ? -1 : 0;
}

int seed_list(struct client *client, struct seed **ret_seeds, size_t *ret_count, struct error *err)
{
    CLEANUP(json_freep) json_t *array = NULL;
    json_t *object;
    size_t i, count = 0;

    if (instance_list(client, TAG_FILTER, &array, err) < 0) {
        return -1;
    }
    struct seed *seeds = xcalloc(json_array_size(array) + 1, sizeof(*seeds));

    json_array_foreach(array, i, object)
    {
        if (is_seed(object)) {
            fill(&seeds[count++], object);
        }
    }
    qsort(seeds, count, sizeof(*seeds), compare);
    *ret_seeds = seeds;
    *ret_count = count;
    return 0;
}

int seed_remove(struct client *client, const struct seed *seed, struct error *err)
{
    /* A mint may be copying it at this moment. */
    return remove_instance(client, seed->instance, NULL, err) < 0
               ? error_wrap(err, "removing the seed %s", seed->instance)
               : 0;
}

/* Drops what no mint of this template can get: older content, another image, age. True where the wanted one is there.
 */
static bool drop_stale(struct client *client, const struct template *template, const char *key, bool vm,
                       int64_t max_age)
{
    struct seed *seeds = NULL;
    size_t count = 0;
    bool found = false;

    if (seed_list(client, &seeds, &count, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct seed *seed = &seeds[i];
        bool same = text_equal(seed->key, key);

        if (same && seed_is_good(seed, max_age)) {
            found = true;
        } else if (same || (text_equal(seed->template_name, template->name) && seed->vm == vm)) {
            (void)seed_remove(client, seed, NULL);
        }
    }
    seed_list_free(seeds, count);
    return found;
}

static json_t *make_stamp(const char *key, const char *id, const char *version)
{
    char created[21];

    clock_format_now(created);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", TAG_KEY, "1", TAG_SEED, key, TAG_STATE, TAG_STATE_MINTING,
                     TAG_MINT, id, TAG_CREATED, created, TAG_VERSION, version, "boot.autostart", "false");
}

static int make(struct client *client, const struct box *box, const char *name, const char *key, const char *id,
                const char *version, struct error *err)
{
    CLEANUP(argv_reset) struct argv stripped = {0};
    CLEANUP(freep) char *path = xasprintf("%s/" SNAPSHOT_PRISTINE, box->name);
    CLEANUP(json_freep) json_t *stamp = make_stamp(key, id, version);
    CLEANUP(json_freep) json_t *body = clone_body(name, path, box->instance, stamp, &stripped);
    CLEANUP(json_freep) json_t *done = json_pack("{s:{s:s}}", "config", TAG_STATE, "");

    if (instance_create(client, body, COPY_BUDGET, NULL, err) < 0 || clone_reduce(client, name, err) < 0) {
        return -1;
    }
    return instance_patch(client, name, done, err);
}

void seed_keep(struct client *client, const struct box *box, const struct template *template, const char *key,
               const char *version, int64_t max_age, struct narrator *narrator)
{
    CLEANUP(error_reset) struct error cause = {0};
    CLEANUP(freep) char *name = xasprintf(NAME_SEED_PREFIX "%s", key);
    CLEANUP(freep) char *id = xasprintf("seed-%s-%lld", key, (long long)clock_now());
    bool removed = false;

    if (drop_stale(client, template, key, box->vm, max_age)) {
        return;
    }
    if (make(client, box, name, key, id, version, &cause) == 0) {
        narrate_note(narrator, "the next box of %s comes from a seed, in seconds (box seeds)", template->name);
        return;
    }
    /* Another mint of the template makes the same one at this moment: one is enough. */
    if (cause.code != ERR_EXISTS) {
        (void)remove_minted(client, name, id, NULL, &removed, NULL);
        narrate_note(narrator, "no seed is kept for the next box of %s: %s", template->name, cause.message);
    }
}
