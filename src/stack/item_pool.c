/* The storage pool, on btrfs by intent: there a clone or a snapshot shares its blocks, elsewhere it is a full copy.
 * An existing pool is taken as it is, and named where it is a slow one.
 * Not for growing it. */
#include "base/memory.h"
#include "base/text.h"
#include "incus/operation.h"
#include "stack/names.h"
#include "stack/table.h"

#include <inttypes.h>
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
    const char *driver = json_text(pool, "driver");
    if (!text_equal(driver, "btrfs") && !text_equal(driver, "zfs")) {
        argv_push_format(&stack->notes,
                         "the pool " STACK_POOL " uses the driver %s: every clone and snapshot is a full "
                         "copy",
                         driver != NULL ? driver : "?");
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    bool btrfs = false;
    CLEANUP(json_freep) json_t *pool = NULL;
    (void)changes;
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
    CLEANUP(json_freep) json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "name", STACK_POOL, "driver", btrfs ? "btrfs" : "dir", "config",
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

static int remove_pool(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *pool = NULL;
    int found = table_get(stack, PATH, &pool, err);
    (void)narrator;
    if (found <= 0) {
        return found;
    }
    if (json_text(json_object_get(pool, "config"), TABLE_MARK) == NULL) {
        narrate_note(narrator, "the pool " STACK_POOL " was not made by box: it stays");
        return 0;
    }
    return client_request(stack->client, "DELETE", PATH, NULL, NULL, err);
}

const struct stack_object item_pool = {
    .name = NAME,
    .why = "boxes have no disk without it",
    .needs_daemon = true,
    .budget = 60000,
    .judge = judge,
    .converge = converge,
    .remove = remove_pool,
};
