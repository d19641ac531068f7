/* The table of what a host must carry, and what its rows share.
 * A new thing that a host must carry is a file item_*.c and a line here.
 * Not for what to do with the table: setup.c. */
#include "stack/table.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include "host/nft.h"

#include <poll.h>
#include <string.h>

const struct stack_object *const table_objects[] = {
    &item_group,   &item_watcher, &item_walls,   &item_forwarding, &item_inotify,   &item_pool,       &item_acl,
    &item_network, &item_profile, &item_service, &item_kernel,     &item_firewalld, &item_neighbours,
};
const size_t table_object_count = ARRAY_LENGTH(table_objects);

void table_change(json_t *changes, const char *object, const char *item, const char *live, const char *want,
                  const char *why)
{
    (void)json_array_append_new(changes, json_pack("{s:s, s:s, s:s?, s:s?, s:s, s:b}", "object", object, "item", item,
                                                   "live", live, "want", want, "why", why, "done", 0));
}

json_t *table_changes_of(const json_t *changes, const char *object)
{
    json_t *own = json_array();
    size_t i;
    json_t *change;
    json_array_foreach(changes, i, change)
    {
        if (text_equal(json_text(change, "object"), object)) {
            (void)json_array_append(own, change);
        }
    }
    return own;
}

void table_compare(json_t *changes, const char *object, const json_t *live, const json_t *wanted, const json_t *why)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        const char *have = json_text(live, key);
        const char *reason = json_text(why, key);
        /* An empty value is how the daemon's API writes "unset". */
        const char *want = text_is_empty(json_string_value(value)) ? NULL : json_string_value(value);
        if (!text_equal(have, want)) {
            table_change(changes, object, key, have, want, reason != NULL ? reason : "");
        }
    }
}

int table_get(struct stack *stack, const char *path, json_t **ret_value, struct error *err)
{
    CLEANUP(error_reset) struct error failure = {0};
    if (client_get(stack->client, path, ret_value, &failure) == 0) {
        return 1;
    }
    return failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
}

int table_stands(struct stack *stack, const char *path, const char *name, struct argv *ret_standing, struct error *err)
{
    CLEANUP(json_freep) json_t *object = NULL;
    int found = table_get(stack, path, &object, err);
    if (found > 0) {
        argv_push(ret_standing, name);
    }
    return found < 0 ? -1 : 0;
}

/* As text: nftables 1.0.6 writes the flags of an owned table into JSON from freed memory. */
static int list_nft_tables(struct nft *nft, const char *name, const char *lead, struct argv *ret, struct error *err)
{
    CLEANUP(freep) char *listing = NULL;
    if (nft_list(nft, "list tables", &listing, err) < 0) {
        return -1;
    }
    for (char *rest = listing, *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *word = line, *type = strsep(&word, " "), *family = strsep(&word, " "), *table = strsep(&word, " ");
        if (text_equal(type, "table") && text_equal(table, name)) {
            argv_push_format(ret, "%s %s %s", lead, family, name);
        }
    }
    return 0;
}

int table_nft_stands(const char *name, struct argv *ret_standing, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    return nft_open(&nft, err) < 0 ? -1 : list_nft_tables(nft, name, "nft table", ret_standing, err);
}

int table_nft_remove(const char *name, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(argv_reset) struct argv commands = {0};
    if (nft_open(&nft, err) < 0 || list_nft_tables(nft, name, "delete table", &commands, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *text = argv_join(&commands, "\n");
    CLEANUP(error_reset) struct error failure = {0};
    if (commands.count == 0 || nft_apply(nft, text, &failure) == 0 || failure.code == ERR_NOT_FOUND) {
        return 0;
    }
    return error_move(err, &failure);
}

bool table_is_half_made(const json_t *object)
{
    const char *status = json_text(object, "status");
    return text_equal(status, "Pending") || text_equal(status, "Errored");
}

int table_create(struct stack *stack, const char *collection, const char *path, bool half_made, const json_t *body,
                 struct error *err)
{
    int64_t deadline = clock_deadline(half_made ? 15000 : 0);
    for (;;) {
        CLEANUP(error_reset) struct error failure = {0};
        if (!half_made || client_request(stack->client, "DELETE", path, NULL, NULL, &failure) == 0 ||
            failure.code == ERR_NOT_FOUND) {
            error_reset(&failure);
            if (client_request(stack->client, "POST", collection, body, NULL, &failure) == 0) {
                return 0;
            }
        }
        if (clock_left(deadline) == 0 || cancel_requested()) {
            return error_move(err, &failure);
        }
        /* The daemon tells nobody when it has taken the half back. */
        (void)poll(NULL, 0, 200);
    }
}

int table_check_mark(const json_t *object, const char *name, struct error *err)
{
    if (json_text(json_object_get(object, "config"), TABLE_MARK) != NULL) {
        return 0;
    }
    (void)error_set(err, ERR_STATE,
                    "%s exists and was not made by box: it is left alone, and boxes cannot be set up "
                    "beside it",
                    name);
    return error_remedy(err, "rename or remove it, or, if it is yours to give, mark it: "
                             "incus ... set ... " TABLE_MARK "=1");
}
