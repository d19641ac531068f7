/* Takes the stack off a host, row by row: the newer table and the older one.
 * Not for the boxes on it, which go before (src/box/remove.c), nor for asking first (src/cli). */
#include "stack/dismantle.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "stack/names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_root(struct error *err)
{
    return geteuid() == 0 ? 0 : error_set(err, ERR_DENIED, "only root may take a host's stack down");
}

static int compare_ranks(const void *a, const void *b)
{
    const struct stack_object *const *left = a, *const *right = b;
    return (int)(*left)->rank - (int)(*right)->rank;
}

/* Every row that can be looked at, in the order of removal. The caller frees. */
static const struct stack_object **rows_of(const struct client *client, enum dismantle_scope scope, size_t *ret_count)
{
    const struct stack_object **rows = xcalloc(table_object_count + older_object_count, sizeof(*rows));
    size_t count = 0;
    for (size_t i = 0; i < older_object_count; i++) {
        if (client != NULL || !older_objects[i]->needs_daemon) {
            rows[count++] = older_objects[i];
        }
    }
    size_t older = count;
    for (size_t i = 0; scope == DISMANTLE_BOTH && i < table_object_count; i++) {
        if (client != NULL || !table_objects[i]->needs_daemon) {
            rows[count++] = table_objects[i];
        }
    }
    qsort(rows + older, count - older, sizeof(*rows), compare_ranks);
    *ret_count = count;
    return rows;
}

int dismantle_list(struct client *client, enum dismantle_scope scope, enum stack_storage storage, const struct argv *leaving,
                   struct argv *ret_standing, struct error *err)
{
    struct stack stack = {.client = client, .storage = storage, .leaving = leaving};
    CLEANUP(argv_reset) struct argv standing = {0};
    size_t count = 0;
    if (check_root(err) < 0) {
        return -1;
    }
    CLEANUP(freep) const struct stack_object **rows = rows_of(client, scope, &count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->stands != NULL && rows[i]->stands(&stack, &standing, err) < 0) {
            return error_wrap(err, "%s", rows[i]->name);
        }
    }
    *ret_standing = standing;
    standing = (struct argv){0};
    return 0;
}

/* "/1.0/instances/mail/snapshots/a?project=p" into its parts; false where it is no such path. `ret_project` is NULL for
 * the default project. */
static bool split_user(const char *path, char **ret_kind, char **ret_name, char **ret_project)
{
    static const char prefix[] = "/1.0/";
    const char *kind = path + sizeof(prefix) - 1;
    if (!text_starts_with(path, prefix) || strchr(kind, '/') == NULL) {
        return false;
    }
    const char *name = strchr(kind, '/') + 1, *project = strstr(name, "?project=");
    *ret_kind = xstrndup(kind, (size_t)(name - 1 - kind));
    *ret_name = xstrndup(name, strcspn(name, "/?"));
    *ret_project =
        project != NULL && !text_equal(project, "?project=default") ? xstrdup(project + strlen("?project=")) : NULL;
    return true;
}

static bool is_ours(const char *kind, const char *name, const struct argv *boxes)
{
    return (text_equal(kind, "instances") && argv_contains(boxes, name)) ||
           (text_equal(kind, "profiles") && (text_equal(name, STACK_PROFILE) || text_equal(name, OLDER_PROFILE))) ||
           (text_equal(kind, "networks") && (text_equal(name, STACK_NETWORK) || text_equal(name, OLDER_NETWORK)));
}

static int list_strangers(struct client *client, const char *path, const char *what, const struct argv *boxes,
                          struct argv *ret_strangers, struct error *err)
{
    CLEANUP(json_freep) json_t *object = NULL;
    struct stack stack = {.client = client};
    size_t i;
    const json_t *user;
    int found = table_get(&stack, path, &object, err);
    json_array_foreach(json_object_get(object, "used_by"), i, user)
    {
        CLEANUP(freep) char *kind = NULL;
        CLEANUP(freep) char *name = NULL;
        CLEANUP(freep) char *project = NULL;
        if (json_string_value(user) == NULL || !split_user(json_string_value(user), &kind, &name, &project) ||
            (project == NULL && is_ours(kind, name, boxes))) {
            continue;
        }
        CLEANUP(freep)
        char *line = xasprintf("%.*s %s%s%s uses the %s", (int)strlen(kind) - 1, kind, name,
                               project != NULL ? " of the project " : "", project != NULL ? project : "", what);
        if (!argv_contains(ret_strangers, line)) {
            argv_push(ret_strangers, line);
        }
    }
    return found < 0 ? -1 : 0;
}

int dismantle_strangers(struct client *client, enum dismantle_scope scope, const struct argv *boxes,
                        struct argv *ret_strangers, struct error *err)
{
    static const struct {
        enum dismantle_scope scope; /* the narrowest that it belongs to */
        const char *path, *what;
    } objects[] = {
        {DISMANTLE_BOTH, "/1.0/profiles/" STACK_PROFILE, "profile " STACK_PROFILE},
        {DISMANTLE_BOTH, "/1.0/networks/" STACK_NETWORK, "network " STACK_NETWORK},
        {DISMANTLE_BOTH, "/1.0/network-acls/" STACK_ACL, "ACL " STACK_ACL},
        {DISMANTLE_OLDER, "/1.0/profiles/" OLDER_PROFILE, "profile " OLDER_PROFILE},
        {DISMANTLE_OLDER, "/1.0/networks/" OLDER_NETWORK, "network " OLDER_NETWORK},
        {DISMANTLE_OLDER, "/1.0/network-acls/" OLDER_ACL, "ACL " OLDER_ACL},
    };
    CLEANUP(argv_reset) struct argv strangers = {0};
    for (size_t i = 0; client != NULL && i < ARRAY_LENGTH(objects); i++) {
        if ((scope == DISMANTLE_BOTH || objects[i].scope == scope) &&
            list_strangers(client, objects[i].path, objects[i].what, boxes, &strangers, err) < 0) {
            return -1;
        }
    }
    *ret_strangers = strangers;
    strangers = (struct argv){0};
    return 0;
}

int dismantle_run(struct client *client, enum dismantle_scope scope, enum stack_storage storage, struct narrator *narrator, struct error *err)
{
    struct stack stack = {.client = client, .storage = storage};
    size_t count = 0;
    if (check_root(err) < 0) {
        return -1;
    }
    CLEANUP(freep) const struct stack_object **rows = rows_of(client, scope, &count);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(argv_reset) struct argv standing = {0};
        if (rows[i]->stands != NULL && rows[i]->stands(&stack, &standing, err) < 0) {
            return error_wrap(err, "%s", rows[i]->name);
        }
        if (standing.count > 0) {
            narrate_step(narrator, "removing: %s", rows[i]->name);
        }
        if (rows[i]->remove(&stack, narrator, err) < 0) {
            return error_wrap(err, "cannot remove %s", rows[i]->name);
        }
        if (standing.count > 0) {
            narrate_done(narrator, "%s is gone", rows[i]->name);
        }
        if (cancel_check(err) < 0) {
            return -1;
        }
    }
    return 0;
}
