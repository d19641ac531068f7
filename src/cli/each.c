/* One act on several boxes: found first, then taken one by one, with a summary at the end.
 * Not for acts that need all of them at once. */
#include "cli/each.h"

#include "base/memory.h"
#include "box/name.h"
#include "cli/console.h"

/* Whether going on with the next one makes no sense. */
static bool ends_all(const struct error *err)
{
    return err->code == ERR_INTERRUPTED || err->code == ERR_NO_DAEMON || err->code == ERR_DENIED;
}

/* Where one box was asked for, main tells its error. */
static void count_failure(struct context *context, struct each *each, struct error *cause)
{
    if (each->asked > 1) {
        console_error((struct console *)context->narrator, cause);
    }
    if (each->failed++ == 0) {
        error_move(&each->first, cause);
    }
}

static int find_one(struct context *context, struct client *client, struct each *each, const char *name,
                    struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};
    struct box *box = NULL;

    if (box_find(client, name, &box, &cause) == 0) {
        each->boxes = xreallocarray(each->boxes, each->count + 1, sizeof(*each->boxes));
        each->boxes[each->count++] = box;
        return 0;
    }
    if (cause.code != ERR_NOT_FOUND) {
        return error_move(err, &cause);
    }
    count_failure(context, each, &cause);
    return 0;
}

int each_find(struct context *context, struct each *each, struct error *err)
{
    CLEANUP(argv_reset) struct argv names = {0};
    struct client *client = NULL;

    for (size_t i = 0; i < context->arguments.count; i++) {
        const char *name = context->arguments.items[i];

        if (name_check(name, err) < 0) {
            return -1;
        }
        if (!argv_contains(&names, name)) {
            argv_push(&names, name);
        }
    }
    each->asked = names.count;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < names.count; i++) {
        if (find_one(context, client, each, names.items[i], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int each_run(struct context *context, struct each *each,
             int (*act)(struct context *context, struct box *box, struct error *err), struct error *err)
{
    for (size_t i = 0; i < each->count; i++) {
        CLEANUP(error_reset) struct error cause = {0};

        if (act(context, each->boxes[i], &cause) == 0) {
            continue;
        }
        if (ends_all(&cause)) {
            return error_move(err, &cause);
        }
        count_failure(context, each, &cause);
    }
    return 0;
}

int each_end(struct each *each, const char *done, struct error *err)
{
    if (each->failed == 0) {
        return 0;
    }
    if (each->asked == 1) {
        return error_move(err, &each->first);
    }
    return error_set(err, each->first.code, "%zu of %zu boxes could not be %s", each->failed, each->asked, done);
}

char *each_names(const struct each *each)
{
    CLEANUP(argv_reset) struct argv names = {0};

    for (size_t i = 0; i < each->count; i++) {
        argv_push(&names, each->boxes[i]->name);
    }
    return argv_join(&names, ", ");
}

void each_reset(struct each *each)
{
    box_list_free(each->boxes, each->count);
    error_reset(&each->first);
    *each = (struct each){0};
}
