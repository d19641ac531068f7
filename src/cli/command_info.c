/* `box info`: all that is known of one box, and each way in which it is off the contract.
 * Not for what goes on inside it: that is the guest's own to tell, through `box exec`. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "box/contract.h"
#include "box/snapshot.h"
#include "box/tag.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "cli/portrait.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <time.h>

/* What the watcher says of the port of a running box. */
struct port {
    bool known;
    bool armed;
    char reason[96];
};

static struct port look_at_port(const struct box *box)
{
    const char *interface = tag_value(box->instance, "volatile." STACK_NIC ".host_name");
    CLEANUP(freep) struct arm_port *ports = NULL;
    CLEANUP(error_reset) struct error cause = {0};
    struct port port = {0};
    size_t count = 0;

    if (!box->running) {
        return port;
    }
    if (arm_list(&ports, &count, &cause) < 0) {
        (void)snprintf(port.reason, sizeof(port.reason), "%s", cause.message);
        port.known = cause.code == ERR_STATE; /* no watcher: then none is armed */
        return port;
    }
    port.known = true;
    (void)snprintf(port.reason, sizeof(port.reason), "the watcher has not seen it");
    for (size_t i = 0; i < count; i++) {
        if (text_equal(ports[i].interface, interface)) {
            port.armed = ports[i].armed;
            (void)snprintf(port.reason, sizeof(port.reason), "%s", ports[i].reason);
        }
    }
    return port;
}

static const char *config(const struct box *box, const char *key)
{
    return json_text(json_object_get(box->instance, "expanded_config"), key);
}

static const char *disk(const struct box *box)
{
    return json_text(json_path(box->instance, "expanded_devices", "root", NULL), "size");
}

static json_t *describe_snapshots(const struct snapshot *snapshots, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const char *created = json_text(snapshots[i].object, "created_at");

        (void)json_array_append_new(array, json_pack("{s:s, s:s?}", "label", snapshots[i].label, "created", created));
    }
    return array;
}

/* null where it never was. */
static json_t *describe_import(const struct box *box)
{
    const char *first = tag_value(box->instance, TAG_IMPORTED_FIRST);
    const char *count = tag_value(box->instance, TAG_IMPORTED_COUNT);
    uint64_t number = 0;

    if (!first) {
        return json_null();
    }
    (void)text_parse_number(count ? count : "", 0, UINT32_MAX, &number);
    return json_pack("{s:s, s:s?, s:I}", "first", first, "last", tag_value(box->instance, TAG_IMPORTED_LAST), "count",
                     (json_int_t)number);
}

static void print_json(struct context *context, const struct box *box, const struct port *port,
                       const struct snapshot *snapshots, size_t count)
{
    CLEANUP(json_freep) json_t *value = portrait_json(box);
    CLEANUP(json_freep)
    json_t *more = json_pack(
        "{s:s?, s:s?, s:{s:s?, s:s?}, s:s?, s:s?, s:{s:s?, s:s?, s:s?}, s:b, s:o, s:s?, s:s?, s:o, s:o, s:s?}", "home",
        box->home, "mac", box->hwaddr, "image", "alias", tag_value(box->instance, TAG_IMAGE), "fingerprint",
        tag_value(box->instance, TAG_FINGERPRINT), "version", tag_value(box->instance, TAG_VERSION), "origin",
        tag_value(box->instance, TAG_ORIGIN), "limits", "cpu", config(box, "limits.cpu"), "memory",
        config(box, "limits.memory"), "disk", disk(box), "autostart", text_equal(config(box, "boot.autostart"), "true"),
        "armed", port->known ? json_boolean(port->armed) : json_null(), "port",
        text_is_empty(port->reason) ? NULL : port->reason, "mode", tag_value(box->instance, TAG_MODE), "imported",
        describe_import(box), "snapshots", describe_snapshots(snapshots, count), "login",
        tag_value(box->instance, TAG_LOGIN));

    (void)json_object_update(value, more);
    context_print_json(context, value);
}

static void row(struct listing *table, const char *key, const char *value)
{
    if (!text_is_empty(value)) {
        listing_row(table, key, value, NULL);
    }
}

static void print_birth(struct listing *table, const struct box *box)
{
    const char *alias = tag_value(box->instance, TAG_IMAGE);
    const char *fingerprint = tag_value(box->instance, TAG_FINGERPRINT);
    const char *version = tag_value(box->instance, TAG_VERSION);
    CLEANUP(freep) char *age = portrait_age(box);
    CLEANUP(freep)
    char *image =
        xasprintf("%s%s%.12s", alias ? alias : "", alias && fingerprint ? ", " : "", fingerprint ? fingerprint : "");
    CLEANUP(freep)
    char *birth = text_is_empty(age) ? NULL
                  : text_equal(age, "now")
                      ? xstrdup("just now")
                      : xasprintf("%s ago%s%s", age, version ? ", by box " : "", version ? version : "");

    row(table, "template", box->template_name);
    row(table, "image", image);
    row(table, "born", birth);
    row(table, "origin", tag_value(box->instance, TAG_ORIGIN));
    row(table, "log in", tag_value(box->instance, TAG_LOGIN));
    if (tag_value(box->instance, TAG_IMPORTED_LAST)) {
        const char *count = tag_value(box->instance, TAG_IMPORTED_COUNT);
        CLEANUP(freep)
        char *imported =
            xasprintf("last at %s, %s times in all", tag_value(box->instance, TAG_IMPORTED_LAST), count ? count : "?");

        row(table, "imported", imported);
    }
}

static void print_snapshots(struct listing *table, const struct snapshot *snapshots, size_t count)
{
    int64_t now = (int64_t)time(NULL);

    for (size_t i = 0; i < count; i++) {
        CLEANUP(freep) char *age = clock_describe(now > snapshots[i].created ? now - snapshots[i].created : 0);
        CLEANUP(freep)
        char *text = text_equal(age, "now")
                         ? xasprintf("%s (just taken)", snapshots[i].label)
                         : xasprintf("%s (%s old)", snapshots[i].label, snapshots[i].created > 0 ? age : "?");

        listing_row(table, i == 0 ? "snapshots" : "", text, NULL);
    }
}

static void print_limits(struct listing *table, const struct box *box)
{
    const char *cpu = config(box, "limits.cpu");
    const char *memory = config(box, "limits.memory");
    CLEANUP(freep)
    char *limits = xasprintf("%s CPU, %s memory, %s disk", cpu ? cpu : "all", memory ? memory : "all",
                             disk(box) ? disk(box) : "all");

    row(table, "limits", limits);
    row(table, "autostart", text_equal(config(box, "boot.autostart"), "true") ? "with the host" : "no");
}

static void print_isolation(struct listing *table, const struct box *box, const struct port *port)
{
    CLEANUP(argv_reset) struct argv deviations = {0};

    contract_check(box->instance, &deviations);
    row(table, "contract", deviations.count > 0 ? "OFF" : "kept");
    for (size_t i = 0; i < deviations.count; i++) {
        listing_row(table, "", deviations.items[i], NULL);
    }
    if (box->running) {
        CLEANUP(freep)
        char *text = port->armed   ? xstrdup("armed: behind the walls, and it has a network")
                     : port->known ? xasprintf("NOT armed, it has no network: %s", port->reason)
                                   : xasprintf("unknown: %s", port->reason);
        row(table, "port", text);
    }
}

static void print_table(struct context *context, const struct box *box, const struct port *port,
                        const struct snapshot *snapshots, size_t count)
{
    CLEANUP(listing_reset) struct listing table = {0};
    CLEANUP(freep) char *state = portrait_state(box);

    listing_row(&table, "name", box->name, NULL);
    row(&table, "state", state);
    if (box->state) {
        CLEANUP(freep)
        char *text = xasprintf("%s%s%s", box->state, box->reason ? ": " : "", box->reason ? box->reason : "");
        row(&table, "incomplete", text);
    }
    row(&table, "type", box->vm ? "vm" : "container (weaker isolation than a VM)");
    row(&table, "user", box->user ? box->user : "root");
    row(&table, "ipv4", box->ipv4);
    row(&table, "mac", box->hwaddr);
    print_birth(&table, box);
    print_snapshots(&table, snapshots, count);
    print_limits(&table, box);
    print_isolation(&table, box, port);
    listing_print(&table, context->out);
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;

    struct snapshot *snapshots = NULL;
    size_t count = 0;

    if (context_client(context, &client, err) < 0 || box_find_address(client, context->box, err) < 0 ||
        snapshot_list(client, context->box->name, &snapshots, &count, err) < 0) {
        return -1;
    }
    struct port port = look_at_port(context->box);

    if (context->json) {
        print_json(context, context->box, &port, snapshots, count);
    } else {
        print_table(context, context->box, &port, snapshots, count);
    }
    snapshot_list_free(snapshots, count);
    if (context->box->state && !context->json) {
        narrate_note(context->narrator, "its mint did not end; remove it and mint again: box rm %s",
                     context->box->name);
    }
    return 0;
}

const struct command command_info = {
    .name = "info",
    .section = SECTION_DAILY,
    .arguments = "BOX",
    .summary = "show what is known of a box, and whether it keeps the isolation contract",
    .help = "contract compares the box's configuration with what a box may be made of; port\n"
            "says whether the walls let it speak, as the watcher has put it into the\n"
            "kernel.\n",
    .flags = NEEDS_BOX | TAKES_JSON,
    .run = run,
    .also = "inspect describe",
};
