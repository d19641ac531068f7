/* Takes boxes, stack and, where asked, the daemon off this host.
 * Not for how an object is removed: src/stack/dismantle.c, src/box/remove.c, src/drill/crew.c. */
#include "cli/clearing.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/remove.h"
#include "box/tag.h"
#include "cli/confirm.h"
#include "drill/crew.h"
#include "host/apt.h"
#include "incus/daemon.h"
#include "incus/instance.h"
#include "stack/dismantle.h"

#include <string.h>

/* What stands on this host before anything is touched. */
struct ground_plan {
    struct client *client; /* borrowed; NULL: no daemon is installed */
    struct box **boxes;
    size_t box_count;
    struct argv names;    /* of the boxes */
    struct argv standing; /* of the stack */
    struct argv drills;   /* what drills left, their boxes too */
    struct argv packages;
};

static void plan_reset(struct ground_plan *plan)
{
    box_list_free(plan->boxes, plan->box_count);
    argv_reset(&plan->names);
    argv_reset(&plan->standing);
    argv_reset(&plan->drills);
    argv_reset(&plan->packages);
}

/* A host without a daemon still may carry walls and a unit; one whose daemon is down may carry all of it, unseen. */
static int open_daemon(struct context *context, struct client **ret_client, struct error *err)
{
    CLEANUP(error_reset) struct error failure = {0};
    if (context_client(context, ret_client, &failure) == 0) {
        return 0;
    }
    if (failure.code == ERR_NO_DAEMON && !daemon_is_installed()) {
        narrate_note(context->narrator, "no Incus is installed here: only what lies outside of it is removed");
        *ret_client = NULL;
        return 0;
    }
    return error_move(err, &failure);
}

/* Everybody's instances that are no boxes, in every project: whoever purges the daemon would take them along. */
static int list_others(struct client *client, struct argv *ret_others, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    size_t i;
    const json_t *instance;
    if (client_get(client, "/1.0/instances?recursion=1&all-projects=true", &instances, err) < 0) {
        return -1;
    }
    json_array_foreach(instances, i, instance)
    {
        if (!tag_is_box(instance) || !text_equal(json_text(instance, "project"), "default")) {
            argv_push(ret_others, json_text(instance, "name"));
        }
    }
    return 0;
}

static int check_purge(struct ground_plan *plan, struct error *err)
{
    CLEANUP(argv_reset) struct argv others = {0};
    if (!apt_exists()) {
        return error_set(err, ERR_STATE, "--purge-incus needs apt-get, and this host has none");
    }
    if (plan->client != NULL && list_others(plan->client, &others, err) < 0) {
        return -1;
    }
    if (others.count > 0) {
        CLEANUP(freep) char *names = argv_join(&others, ", ");
        (void)error_set(err, ERR_STATE, "Incus stays: it has instances that are no boxes (%s)", names);
        return error_remedy(err, "leave --purge-incus away, or remove them first");
    }
    return apt_installed("incus*", &plan->packages, err);
}

static int look(struct context *context, const struct clearing *clearing, struct ground_plan *plan, struct error *err)
{
    CLEANUP(argv_reset) struct argv strangers = {0};
    if (open_daemon(context, &plan->client, err) < 0) {
        return -1;
    }
    if (plan->client != NULL && box_list(plan->client, &plan->boxes, &plan->box_count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < plan->box_count; i++) {
        argv_push(&plan->names, plan->boxes[i]->name);
    }
    if (clearing->drills && plan->client != NULL && crew_leftovers(plan->client, &plan->drills, err) < 0) {
        return -1;
    }
    /* An instance of a drill that lost its tag still is none of anybody's. */
    CLEANUP(argv_reset) struct argv known = {0};
    argv_push_all(&known, (const char *const *)(plan->names.items != NULL ? plan->names.items : (char *[]){NULL}));
    for (size_t i = 0; i < plan->drills.count; i++) {
        if (text_starts_with(plan->drills.items[i], "instance ")) {
            argv_push(&known, plan->drills.items[i] + strlen("instance "));
        }
    }
    if (dismantle_strangers(plan->client, DISMANTLE_BOTH, &known, &strangers, err) < 0 ||
        dismantle_list(plan->client, DISMANTLE_BOTH, clearing->storage, &known, &plan->standing, err) < 0) {
        return -1;
    }
    if (strangers.count > 0) {
        CLEANUP(freep) char *lines = argv_join(&strangers, "; ");
        (void)error_set(err, ERR_STATE, "somebody else uses what is box's: %s. Nothing was touched", lines);
        return error_remedy(err, "move it to another network or profile, or remove it, then run this again");
    }
    return clearing->purge_incus ? check_purge(plan, err) : 0;
}

static void describe(struct buffer *text, const char *lead, const struct argv *items)
{
    if (items->count > 0) {
        CLEANUP(freep) char *joined = argv_join(items, ", ");
        buffer_append_format(text, "%s%s%s", text->length > 0 ? "; " : "", lead, joined);
    }
}

static int ask(struct context *context, const struct ground_plan *plan, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    describe(&text,
             plan->box_count == 1 ? "the box with all that is on its disk: "
                                  : "the boxes with all that is on their disks: ",
             &plan->names);
    describe(&text, "what drills left: ", &plan->drills);
    describe(&text, "of this host: ", &plan->standing);
    describe(&text, "the packages ", &plan->packages);
    context->force = option_given(&context->options, "yes");
    if (confirm(context, err, "remove %s", text.data != NULL ? text.data : "nothing") == 0) {
        return 0;
    }
    return err->code == ERR_USAGE ? error_remedy(err, "say --yes where that is meant") : -1;
}

static int remove_boxes(struct context *context, const struct ground_plan *plan, struct error *err)
{
    for (size_t i = 0; i < plan->box_count; i++) {
        if (remove_box(plan->client, plan->boxes[i], context->narrator, err) < 0 || cancel_check(err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int purge_packages(struct context *context, const struct ground_plan *plan, struct error *err)
{
    CLEANUP(argv_reset) struct argv arguments = {0};
    if (plan->packages.count == 0) {
        return 0;
    }
    argv_push(&arguments, "purge");
    argv_push_all(&arguments, (const char *const *)plan->packages.items);
    narrate_step(context->narrator, "removing the daemon's packages");
    if (apt_get(&arguments, context->narrator, err) < 0) {
        return error_wrap(err, "cannot remove Incus");
    }
    narrate_done(context->narrator, "Incus is gone");
    return 0;
}

/* Everything is looked for again: what was asked for is a claim until it is seen to be absent. */
static int assert_absence(struct context *context, const struct clearing *clearing, const struct ground_plan *plan,
                          struct error *err)
{
    CLEANUP(argv_reset) struct argv left = {0};
    struct box **boxes = NULL;
    size_t count = 0;
    if (plan->client != NULL && !clearing->purge_incus) {
        if (box_list(plan->client, &boxes, &count, err) < 0) {
            return -1;
        }
        for (size_t i = 0; i < count; i++) {
            argv_push_format(&left, "box %s", boxes[i]->name);
        }
        box_list_free(boxes, count);
        if (clearing->drills && crew_leftovers(plan->client, &left, err) < 0) {
            return -1;
        }
    }
    CLEANUP(argv_reset) struct argv standing = {0};
    if (dismantle_list(clearing->purge_incus ? NULL : plan->client, DISMANTLE_BOTH, clearing->storage, NULL, &standing,
                       err) < 0) {
        return -1;
    }
    if (standing.count > 0) {
        argv_push_all(&left, (const char *const *)standing.items);
    }
    if (clearing->purge_incus && apt_installed("incus*", &left, err) < 0) {
        return -1;
    }
    if (left.count > 0) {
        CLEANUP(freep) char *names = argv_join(&left, ", ");
        return error_set(err, ERR_STATE, "these are still there: %s", names);
    }
    return 0;
}

static void print_absent(struct context *context, const char *kind, const struct argv *items)
{
    for (size_t i = 0; i < items->count; i++) {
        (void)fprintf(context->out, "absent: %s%s\n", kind, items->items[i]);
    }
}

int clearing_run(struct context *context, const struct clearing *clearing, struct error *err)
{
    CLEANUP(plan_reset) struct ground_plan plan = {0};
    if (look(context, clearing, &plan, err) < 0) {
        return -1;
    }
    if (plan.box_count + plan.standing.count + plan.drills.count + plan.packages.count == 0) {
        narrate_note(context->narrator, "nothing of box is on this host");
        return 0;
    }
    if (ask(context, &plan, err) < 0 || remove_boxes(context, &plan, err) < 0) {
        return -1;
    }
    if (plan.drills.count > 0 && crew_remove(plan.client, context->narrator, err) < 0) {
        return -1;
    }
    if (dismantle_run(plan.client, DISMANTLE_BOTH, clearing->storage, context->narrator, err) < 0 ||
        purge_packages(context, &plan, err) < 0 || assert_absence(context, clearing, &plan, err) < 0) {
        return error_remedy(err, "box %s (a second run goes on where this one stopped)", context->command->name);
    }
    print_absent(context, "box ", &plan.names);
    print_absent(context, "", &plan.drills);
    print_absent(context, "", &plan.standing);
    print_absent(context, "package ", &plan.packages);
    return 0;
}
