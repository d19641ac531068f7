/* One act on several boxes: found first, then acted on at once, with a summary at the end.
 * Not for how that runs: many.c. */
#include "cli/each.h"

#include "base/memory.h"
#include "box/name.h"
#include "cli/console.h"
#include "cli/many.h"

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

/* What each_run() hands to a child. */
struct several {
    struct each *each;
    int (*act)(struct context *context, struct box *box, struct error *err);
};

static int act_on_one(struct context *context, void *data, size_t index, struct error *err)
{
    const struct several *several = data;

    return several->act(context, several->each->boxes[index], err);
}

static int run_several(struct context *context, struct several *several, struct error *err)
{
    CLEANUP(argv_reset) struct argv names = {0};
    CLEANUP(many_reset) struct many many = {.names = &names, .act = act_on_one, .data = several};
    struct each *each = several->each;

    for (size_t i = 0; i < each->count; i++) {
        argv_push(&names, each->boxes[i]->name);
    }
    if (many_run(context, &many, err) < 0) {
        return -1;
    }
    if (many.failed > 0 && each->failed == 0) {
        error_move(&each->first, &many.first);
    }
    each->failed += many.failed;
    return 0;
}

int each_run(struct context *context, struct each *each,
             int (*act)(struct context *context, struct box *box, struct error *err), struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (each->count > 1) {
        return run_several(context, &(struct several){.each = each, .act = act}, err);
    }
    if (each->count == 0 || act(context, each->boxes[0], &cause) == 0) {
        return 0;
    }
    if (ends_all(&cause)) {
        return error_move(err, &cause);
    }
    count_failure(context, each, &cause);
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
