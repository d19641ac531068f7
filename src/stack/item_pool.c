/* The storage pool, on btrfs by intent: there a clone or a snapshot shares its blocks, elsewhere it is a full copy.
 * An existing pool is taken as it is, and named where it is a slow one.
 * Not for what lies on it. */
#include "base/memory.h"
#include "base/text.h"
#include "incus/image.h"
#include "stack/names.h"
#include "stack/table.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#define NAME     "pool " STACK_POOL
#define PATH     "/1.0/storage-pools/" STACK_POOL
#define GIBIBYTE (1024ULL * 1024 * 1024)

/* The loop file is sparse: it may promise more than half of what is free, for it takes only what is used. */
static uint64_t choose_size(uint64_t asked)
{
    struct statvfs space;
    if (asked != 0) {
        return asked;
    }
    if (statvfs("/var/lib/incus", &space) < 0 && statvfs("/var/lib", &space) < 0) {
        return 20 * GIBIBYTE;
    }
    uint64_t size = (uint64_t)space.f_bavail * space.f_frsize / 10 * 7;
    if (size < 5 * GIBIBYTE) {
        return 5 * GIBIBYTE;
    }
    return size > 500 * GIBIBYTE ? 500 * GIBIBYTE : size;
}

static int can_btrfs(struct stack *stack, bool *ret_can, struct error *err)
{
    CLEANUP(json_freep) json_t *server = NULL;
    size_t i;
    const json_t *driver;
    bool can = false;
    if (client_get(stack->client, "/1.0", &server, err) < 0) {
        return -1;
    }
    json_array_foreach(json_path(server, "environment", "storage_supported_drivers", NULL), i, driver)
    {
        can |= text_equal(json_text(driver, "Name"), "btrfs");
    }
    *ret_can = can;
    return 0;
}

/* "2147483648B", "2GiB", as the daemon's configuration has sizes; 0 where it is none. */
static uint64_t parse_size(const char *text)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"KiB", 1ULL << 10}, {"MiB", 1ULL << 20},   {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40},
                 {"GB", 1000000000},  {"TB", 1000000000000}, {"MB", 1000000},     {"B", 1}};
    for (size_t i = 0; text != NULL && i < ARRAY_LENGTH(units); i++) {
        uint64_t number;
        if (text_ends_with(text, units[i].unit)) {
            CLEANUP(freep) char *digits = xstrndup(text, strlen(text) - strlen(units[i].unit));
            return text_parse_number(digits, 1, UINT64_MAX / units[i].bytes, &number) ? number * units[i].bytes : 0;
        }
    }
    return 0;
}

/* Only a loop file of the daemon's own can grow; nothing shrinks. */
static void judge_size(struct stack *stack, const json_t *pool, json_t *changes)
{
    const json_t *config = json_object_get(pool, "config");
    const char *live = json_text(config, "size"), *source = json_text(config, "source");
    uint64_t size = parse_size(live), want = stack->pool_size / 512 * 512;
    CLEANUP(freep) char *text = xasprintf("%" PRIu64 "B", want);
    if (want == 0 || want == size) {
        return;
    }
    if (size == 0 || source == NULL || !text_ends_with(source, ".img")) {
        argv_push(&stack->notes,
                  "the pool " STACK_POOL " lies on no file of the daemon's: --pool-size does not change it");
    } else if (want < size) {
        argv_push_format(&stack->notes, "the pool " STACK_POOL " has %.1f GiB and is never made smaller",
                         (double)size / (double)GIBIBYTE);
    } else {
        table_change(changes, NAME, "size", live, text, "");
    }
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *pool = NULL;
    int found = table_get(stack, PATH, &pool, err);
    if (found < 0) {
        return -1;
    }
    if (found == 0) {
        table_change(changes, NAME, "pool", NULL, "btrfs", "boxes have no disk; on btrfs a clone costs nothing");
        return 0;
    }
    if (table_is_half_made(pool)) {
        table_change(changes, NAME, "pool", "half made", "btrfs", "boxes have no disk");
        return 0;
    }
    judge_size(stack, pool, changes);
    const char *driver = json_text(pool, "driver");
    if (!text_equal(driver, "btrfs") && !text_equal(driver, "zfs")) {
        argv_push_format(&stack->notes,
                         "the pool " STACK_POOL " uses the driver %s: every clone and snapshot is a full "
                         "copy",
                         driver != NULL ? driver : "?");
    }
    return 0;
}

static int grow(struct stack *stack, const json_t *change, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:{s:s}}", "config", "size", json_text(change, "want"));
    if (client_request(stack->client, "PATCH", PATH, body, NULL, err) < 0) {
        return error_wrap(err, "cannot grow the pool " STACK_POOL);
    }
    narrate_note(narrator, "the pool " STACK_POOL " may now take %.1f GiB",
                 (double)stack->pool_size / (double)GIBIBYTE);
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    bool btrfs = false;
    CLEANUP(json_freep) json_t *pool = NULL;
    const json_t *first = json_array_get(changes, 0);
    if (text_equal(json_text(first, "item"), "size")) {
        return grow(stack, first, narrator, err);
    }
    int found = table_get(stack, PATH, &pool, err);
    if (found < 0) {
        return -1;
    }
    if (can_btrfs(stack, &btrfs, err) < 0) {
        return -1;
    }
    if (!btrfs) {
        narrate_warn(narrator, "this host has no btrfs (apt-get install btrfs-progs): the pool becomes a plain "
                               "directory, and every clone and snapshot a full copy");
    }
    uint64_t size = choose_size(stack->pool_size);
    CLEANUP(freep) char *text = xasprintf("%" PRIu64 "B", size / 512 * 512);
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "name", STACK_POOL, "driver", btrfs ? "btrfs" : "dir", "config",
                             TABLE_MARK, "1");
    if (btrfs) {
        (void)json_object_set_new(json_object_get(body, "config"), "size", json_string(text));
    }
    if (table_create(stack, "/1.0/storage-pools", PATH, found > 0, body, err) < 0) {
        return error_wrap(err, "cannot make the pool " STACK_POOL);
    }
    narrate_note(narrator, "made the pool " STACK_POOL " on %s (%.1f GiB at most)", btrfs ? "btrfs" : "a directory",
                 (double)size / (double)GIBIBYTE);
    return 0;
}

/* Those that `box image build` made, and with STORAGE_ALL all of them: fingerprints. */
static int our_images(struct stack *stack, struct argv *ret_images, struct error *err)
{
    CLEANUP(json_freep) json_t *images = NULL;
    size_t i;
    const json_t *image;
    if (client_get(stack->client, "/1.0/images?recursion=1", &images, err) < 0) {
        return -1;
    }
    json_array_foreach(images, i, image)
    {
        if (stack->storage == STORAGE_ALL || json_text(json_object_get(image, "properties"), "box.recipe") != NULL) {
            argv_push(ret_images, json_text(image, "fingerprint"));
        }
    }
    return 0;
}

/* Who keeps something on the pool besides box: images of others, instances, volumes, profiles. */
static void list_others(const struct stack *stack, const json_t *pool, const struct argv *images,
                        struct argv *ret_others)
{
    static const char *const ours[] = {"/1.0/profiles/" STACK_PROFILE, "/1.0/profiles/claude-dev"};
    size_t i;
    const json_t *user;
    json_array_foreach(json_object_get(pool, "used_by"), i, user)
    {
        const char *path = json_string_value(user);
        const char *name = path != NULL ? strrchr(path, '/') : NULL;
        if (name == NULL || argv_contains(images, name + 1) || text_equal(path, ours[0]) || text_equal(path, ours[1])) {
            continue;
        }
        if (stack->leaving == NULL || !text_starts_with(path, "/1.0/instances/") ||
            !argv_contains(stack->leaving, name + 1)) {
            argv_push(ret_others, path + strlen("/1.0/"));
        }
    }
}

/* 1 where the pool is there and goes; 0 where it is absent or stays, and then ret_why says why it stays, or is NULL. */
static int pool_goes(struct stack *stack, const struct argv *images, char **ret_why, struct error *err)
{
    CLEANUP(json_freep) json_t *pool = NULL;
    CLEANUP(argv_reset) struct argv others = {0};
    int found = table_get(stack, PATH, &pool, err);
    *ret_why = NULL;
    if (found <= 0) {
        return found;
    }
    if (stack->storage != STORAGE_ALL && json_text(json_object_get(pool, "config"), TABLE_MARK) == NULL) {
        *ret_why = xstrdup("it was not made by box");
        return 0;
    }
    list_others(stack, pool, images, &others);
    if (others.count > 0) {
        CLEANUP(freep) char *names = argv_join(&others, ", ");
        *ret_why = xasprintf("others keep something on it (%s)", names);
        return 0;
    }
    return 1;
}

static int remove_pool(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(argv_reset) struct argv images = {0};
    CLEANUP(freep) char *why = NULL;
    if (stack->storage == STORAGE_KEPT) {
        return 0;
    }
    if (our_images(stack, &images, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < images.count; i++) {
        CLEANUP(error_reset) struct error failure = {0};
        if (image_delete(stack->client, images.items[i], &failure) < 0 && failure.code != ERR_NOT_FOUND) {
            return error_move(err, &failure);
        }
    }
    int goes = pool_goes(stack, &images, &why, err);
    if (goes <= 0) {
        if (why != NULL) {
            narrate_note(narrator, "the pool " STACK_POOL " stays: %s", why);
        }
        return goes;
    }
    return client_request(stack->client, "DELETE", PATH, NULL, NULL, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    CLEANUP(argv_reset) struct argv images = {0};
    CLEANUP(freep) char *why = NULL;
    if (stack->storage == STORAGE_KEPT) {
        return 0;
    }
    if (our_images(stack, &images, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < images.count; i++) {
        argv_push_format(ret_standing, "image %.12s", images.items[i]);
    }
    int goes = pool_goes(stack, &images, &why, err);
    if (goes > 0 || (why != NULL && stack->storage == STORAGE_ALL)) {
        argv_push_format(ret_standing, NAME "%s%s", why != NULL ? ": " : "", why != NULL ? why : "");
    }
    return goes < 0 ? -1 : 0;
}

const struct stack_object item_pool = {
    .name = NAME,
    .why = "boxes have no disk without it",
    .needs_daemon = true,
    .budget = 60000,
    .judge = judge,
    .converge = converge,
    .remove = remove_pool,
    .stands = stands,
    .rank = 5,
};
