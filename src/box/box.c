/* Finding boxes among the daemon's instances: one, or all with their addresses.
 * Not for judging them (contract.c) nor for printing them. */
#include "box/box.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/import.h"
#include "box/name.h"
#include "box/tag.h"
#include "incus/instance.h"
#include "incus/server.h"
#include "stack/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static int64_t number(const char *text)
{
    uint64_t value;

    return text && text_parse_number(text, 0, UINT32_MAX - 1, &value) ? (int64_t)value : -1;
}

struct box *box_from_instance(json_t *instance)
{
    struct box *box = xcalloc(1, sizeof(*box));
    const char *home = tag_value(instance, TAG_HOME);

    box->instance = json_incref(instance);
    box->name = xstrdup(json_text(instance, "name") ? json_text(instance, "name") : "");
    box->status = xstrdup(json_text(instance, "status") ? json_text(instance, "status") : "Unknown");
    box->running = text_equal(box->status, "Running");
    box->vm = text_equal(json_text(instance, "type"), "virtual-machine");
    box->user = copy(tag_user(instance));
    box->uid = number(tag_value(instance, TAG_UID));
    box->gid = number(tag_value(instance, TAG_GID));
    box->home = home && home[0] == '/' ? xstrdup(home) : NULL;
    box->template_name = copy(tag_value(instance, TAG_TEMPLATE));
    box->state = copy(tag_value(instance, TAG_STATE));
    box->reason = copy(tag_value(instance, TAG_REASON));
    if (!box->state && text_starts_with(box->name, IMPORT_PREFIX)) {
        box->state = xstrdup(TAG_STATE_IMPORTING);
    }
    box->hwaddr = copy(tag_value(instance, "volatile." STACK_NIC ".hwaddr"));
    /* Incus's own time is kept by an import, and reset by a copy; the stamp is what box wrote. */
    if (!clock_parse(tag_value(instance, TAG_CREATED) ? tag_value(instance, TAG_CREATED) : "", &box->created) &&
        !clock_parse(json_text(instance, "created_at") ? json_text(instance, "created_at") : "", &box->created)) {
        box->created = 0;
    }
    return box;
}

void box_free(struct box *box)
{
    if (!box) {
        return;
    }
    free(box->name);
    free(box->status);
    free(box->user);
    free(box->home);
    free(box->template_name);
    free(box->state);
    free(box->reason);
    free(box->hwaddr);
    free(box->ipv4);
    json_decref(box->instance);
    free(box);
}

void box_list_free(struct box **boxes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        box_free(boxes[i]);
    }
    free(boxes);
}

static int no_such_box(const char *name, struct error *err)
{
    error_set(err, ERR_NOT_FOUND, "no such box: %s", name);
    return error_remedy(err, "box list");
}

int box_find(struct client *client, const char *name, struct box **ret_box, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    CLEANUP(error_reset) struct error cause = {0};

    if (name_check(name, err) < 0) {
        return -1;
    }
    if (instance_get(client, name, &instance, &cause) < 0) {
        return cause.code == ERR_NOT_FOUND ? no_such_box(name, err) : error_move(err, &cause);
    }
    if (!tag_is_box(instance) || tag_is_seed(instance)) {
        return no_such_box(name, err);
    }
    *ret_box = box_from_instance(instance);
    return 0;
}

/* A lease can be stale, so that a stopped box would show an address it no longer has. */
static void fill_address(struct box *box, const json_t *leases)
{
    size_t i;
    json_t *lease;

    if (!box->running || !box->hwaddr) {
        return;
    }
    json_array_foreach(leases, i, lease) {
        const char *hwaddr = json_text(lease, "hwaddr");
        const char *address = json_text(lease, "address");

        if (hwaddr && address && strcasecmp(hwaddr, box->hwaddr) == 0 && !strchr(address, ':')) {
            free(box->ipv4);
            box->ipv4 = xstrdup(address);
        }
    }
}

/* Where the network is missing there are no addresses: that is the doctor's finding, not a reason to list nothing. */
static int read_leases(struct client *client, json_t **ret_leases, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    if (server_leases(client, STACK_NETWORK, ret_leases, &cause) < 0) {
        if (cause.code != ERR_NOT_FOUND) {
            return error_move(err, &cause);
        }
        *ret_leases = json_array();
    }
    return 0;
}

int box_find_address(struct client *client, struct box *box, struct error *err)
{
    CLEANUP(json_freep) json_t *leases = NULL;

    if (!box->running) {
        return 0;
    }
    if (read_leases(client, &leases, err) < 0) {
        return -1;
    }
    fill_address(box, leases);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct box *const *)a)->name, (*(struct box *const *)b)->name);
}

int box_list(struct client *client, struct box ***ret_boxes, size_t *ret_count, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    CLEANUP(json_freep) json_t *leases = NULL;
    bool any_running = false;
    size_t i, count = 0;
    json_t *instance;

    if (instance_list(client, TAG_FILTER, &instances, err) < 0) {
        return -1;
    }
    json_array_foreach(instances, i, instance) {
        any_running = any_running || text_equal(json_text(instance, "status"), "Running");
    }
    if (any_running && read_leases(client, &leases, err) < 0) {
        return -1;
    }
    struct box **boxes = xcalloc(json_array_size(instances) + 1, sizeof(struct box *));

    json_array_foreach(instances, i, instance) {
        if (tag_is_box(instance) && !tag_is_seed(instance)) {
            boxes[count] = box_from_instance(instance);
            fill_address(boxes[count++], leases);
        }
    }
    qsort(boxes, count, sizeof(struct box *), compare_names);
    *ret_boxes = boxes;
    *ret_count = count;
    return 0;
}
