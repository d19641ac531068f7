/* Converges a host on the table: reads every row, and changes what differs, walls first.
 * A run that was killed anywhere is finished by the next one: no row remembers anything but what the host itself holds.
 * Not for installing the daemon: src/cli/command_setup_host.c. */
#include "stack/setup.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "stack/arm.h"
#include "stack/names.h"
#include "stack/table.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_DNS "1.1.1.1 8.8.8.8"

/* The resolvers, checked: they end up in a configuration file of dnsmasq's. */
static int check_dns(const char *dns, struct error *err)
{
    CLEANUP(freep) char *copy = xstrdup(dns);
    char *rest = copy;
    size_t count = 0;
    for (char *word; (word = strsep(&rest, " ,")) != NULL;) {
        uint32_t address;
        if (word[0] == '\0') {
            continue;
        }
        if (!subnet_parse_address(word, &address)) {
            return error_set(err, ERR_USAGE, "BOX_DNS: \"%s\" is no IPv4 address of a resolver", word);
        }
        count++;
    }
    return count > 0 ? 0 : error_set(err, ERR_USAGE, "BOX_DNS names no resolver");
}

/* The address of an existing boxnet as the daemon has it: boxes have it in their leases, so it stays. */
static int take_existing(struct stack *stack, const char *pin, const json_t *network, struct error *err)
{
    const char *live = json_text(json_object_get(network, "config"), "ipv4.address");
    CLEANUP(freep) char *address = xstrdup(live != NULL ? live : "");
    char *slash = strchr(address, '/');
    uint64_t prefix = 0;
    struct subnet pinned;
    if (slash != NULL) {
        *slash = '\0';
    }
    if (slash == NULL || !text_parse_number(slash + 1, 16, 28, &prefix) ||
        !subnet_parse_address(address, &stack->gateway)) {
        return 0; /* damaged: a subnet is chosen as for a new one */
    }
    stack->subnet = subnet_around(stack->gateway, (unsigned)prefix);
    if (pin != NULL && (!subnet_parse(pin, &pinned) || !subnet_equal(pinned, stack->subnet))) {
        (void)error_set(err, ERR_USAGE, "BOX_SUBNET=%s, but " STACK_NETWORK " exists with %s and is never re-addressed",
                        pin, live);
        return error_remedy(err, "leave BOX_SUBNET unset, or take the old stack down first: box teardown-host");
    }
    return 1;
}

static int choose_subnet(struct stack *stack, const char *pin, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(freep) struct subnet_claim *claims = NULL;
    size_t count = 0;
    int found = table_get(stack, "/1.0/networks/" STACK_NETWORK, &network, err);
    if (found < 0) {
        return -1;
    }
    if (found > 0 && json_truth(network, "managed")) {
        int taken = take_existing(stack, pin, network, err);
        if (taken != 0) {
            return taken < 0 ? -1 : 0;
        }
    }
    if (subnet_claims(found > 0 && json_truth(network, "managed") ? STACK_NETWORK : NULL, &claims, &count, err) < 0) {
        return -1;
    }
    int chosen = pin != NULL ? subnet_check_pin(pin, claims, count, &stack->subnet, err)
                             : subnet_pick(claims, count, &stack->subnet, err);
    if (chosen == 0) {
        stack->gateway = subnet_gateway(stack->subnet);
    }
    return chosen;
}

/* The resolvers that an existing boxnet is pinned to: NULL where it is pinned to none, or to one that is no public
 * address, for a resolver of the LAN tells boxes the LAN's names. The caller frees. */
static char *pinned_dns(struct stack *stack)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(buffer_reset) struct buffer dns = {0};
    if (table_get(stack, "/1.0/networks/" STACK_NETWORK, &network, NULL) <= 0) {
        return NULL;
    }
    const char *live = json_text(json_object_get(network, "config"), "raw.dnsmasq");
    CLEANUP(freep) char *copy = xstrdup(live != NULL ? live : "");
    for (char *rest = copy, *line; (line = strsep(&rest, "\n")) != NULL;) {
        uint32_t address;
        if (!text_starts_with(line, "server=")) {
            continue;
        }
        if (!subnet_parse_address(line + strlen("server="), &address) || !subnet_is_public(address)) {
            return NULL;
        }
        buffer_append_format(&dns, "%s%s", dns.length > 0 ? " " : "", line + strlen("server="));
    }
    return dns.length > 0 ? buffer_steal(&dns) : NULL;
}

static char *choose_dns(struct stack *stack, const struct setup_options *options)
{
    char *pinned = NULL;
    if (!text_is_empty(options->dns)) {
        return xstrdup(options->dns);
    }
    if (!options->fresh_dns && stack->client != NULL) {
        pinned = pinned_dns(stack);
    }
    return pinned != NULL ? pinned : xstrdup(DEFAULT_DNS);
}

static int judge_all(struct stack *stack, json_t *changes, struct error *err)
{
    for (size_t i = 0; i < table_object_count; i++) {
        if (table_objects[i]->judge(stack, changes, err) < 0) {
            return error_wrap(err, "%s", table_objects[i]->name);
        }
    }
    return 0;
}

static void mark_done(json_t *changes)
{
    size_t i;
    json_t *change;
    json_array_foreach(changes, i, change)
    {
        (void)json_object_set_new(change, "done", json_true());
    }
}

/* Reads the row back: what was written is a claim until it is seen. */
static int verify(struct stack *stack, const struct stack_object *object, struct error *err)
{
    CLEANUP(json_freep) json_t *left = json_array();
    if (object->judge(stack, left, err) < 0) {
        return -1;
    }
    if (json_array_size(left) > 0) {
        const json_t *first = json_array_get(left, 0);
        const char *live = json_text(first, "live");
        return error_set(err, ERR_STATE, "it was set, but %s still reads %s", json_text(first, "item"),
                         live != NULL ? live : "absent");
    }
    return 0;
}

static int converge_object(struct stack *stack, const struct stack_object *object, json_t *own,
                           struct narrator *narrator, struct error *err)
{
    size_t count = json_array_size(own);
    if (count == 0) {
        return 0;
    }
    narrate_step(narrator, "setting up: %s (%zu to change, at most %d s)", object->name, count,
                 (int)(object->budget / 1000));
    if (object->converge(stack, own, narrator, err) < 0 || verify(stack, object, err) < 0) {
        return error_wrap(err, "cannot set up %s", object->name);
    }
    mark_done(own);
    narrate_done(narrator, "%s stands", object->name);
    return cancel_check(err);
}

static void forget_changes(json_t *changes, const char *object)
{
    for (size_t i = json_array_size(changes); i > 0; i--) {
        if (text_equal(json_text(json_array_get(changes, i - 1), "object"), object)) {
            (void)json_array_remove(changes, i - 1);
        }
    }
}

/* Once a row was changed, those after it are judged anew: repairing the network may have repaired its service, and the
 * bridge's parameters can only be read where there is a bridge. */
static int converge_all(struct stack *stack, json_t *changes, struct narrator *narrator, struct error *err)
{
    bool changed = false;
    for (size_t i = 0; i < table_object_count; i++) {
        const struct stack_object *object = table_objects[i];
        if (changed) {
            forget_changes(changes, object->name);
            if (object->judge(stack, changes, err) < 0) {
                return error_wrap(err, "%s", object->name);
            }
        }
        CLEANUP(json_freep) json_t *own = table_changes_of(changes, object->name);
        changed |= json_array_size(own) > 0;
        if (converge_object(stack, object, own, narrator, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static char *own_program(void)
{
    char path[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    return xstrdup(length > 0 ? path : "/usr/local/bin/box");
}

static void stack_reset(struct stack *stack)
{
    argv_reset(&stack->notes);
}

/* Notes come with each judgement of a row: each is told once. */
static void take_notes(const struct argv *notes, struct argv *ret)
{
    for (size_t i = 0; i < notes->count; i++) {
        if (!argv_contains(ret, notes->items[i])) {
            argv_push(ret, notes->items[i]);
        }
    }
}

int setup_run(struct client *client, const struct setup_options *options, struct narrator *narrator,
              struct setup_report *ret_report, struct error *err)
{
    CLEANUP(freep) char *program = options->program != NULL ? xstrdup(options->program) : own_program();
    CLEANUP(json_freep) json_t *changes = json_array();
    CLEANUP(stack_reset)
    struct stack stack = {
        .client = client,
        .pool_size = options->pool_size,
        .program = program,
    };
    const char *pin = text_is_empty(options->subnet) ? NULL : options->subnet;
    char subnet[SUBNET_TEXT];
    if (geteuid() != 0) {
        (void)error_set(err, ERR_DENIED, "only root may set up a host");
        return error_remedy(err, "sudo box setup-host");
    }
    CLEANUP(freep) char *dns = choose_dns(&stack, options);
    stack.dns = dns;
    if (check_dns(stack.dns, err) < 0 || choose_subnet(&stack, pin, err) < 0 || judge_all(&stack, changes, err) < 0) {
        return -1;
    }
    if (!options->dry_run && converge_all(&stack, changes, narrator, err) < 0) {
        return -1;
    }
    subnet_format(stack.subnet, subnet);
    struct setup_report report = {.changes = steal(&changes), .subnet = xstrdup(subnet), .dns = xstrdup(dns)};
    take_notes(&stack.notes, &report.notes);
    *ret_report = report;
    return 0;
}

/* One row as it stands. */
static json_t *look_at(struct stack *stack, const struct stack_object *object)
{
    CLEANUP(error_reset) struct error failure = {0};
    json_t *changes = json_array();
    if ((object->needs_root && geteuid() != 0)) {
        (void)error_set(&failure, ERR_DENIED, "only root can read it");
        (void)error_remedy(&failure, "sudo box doctor");
    } else if (object->needs_daemon && stack->client == NULL) {
        (void)error_set(&failure, ERR_NO_DAEMON, "the daemon does not answer");
    } else {
        (void)object->judge(stack, changes, &failure);
    }
    json_t *row = json_pack("{s:s, s:s, s:o}", "object", object->name, "why", object->why, "changes", changes);
    if (failure.code != ERR_NONE) {
        bool unseen = failure.code == ERR_DENIED || failure.code == ERR_NO_DAEMON || failure.code == ERR_TIMEOUT;
        (void)json_object_set_new(row, "failure", json_string(failure.message));
        (void)json_object_set_new(row, "remedy", failure.remedy != NULL ? json_string(failure.remedy) : json_null());
        (void)json_object_set_new(row, "unseen", json_boolean(unseen));
    }
    return row;
}

static bool stack_is_there(struct stack *stack)
{
    static const struct stack_object *const witnesses[] = {&item_network, &item_profile, &item_acl};
    CLEANUP(argv_reset) struct argv standing = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(witnesses) && stack->client != NULL; i++) {
        (void)witnesses[i]->stands(stack, &standing, NULL);
    }
    return standing.count > 0 || stack->client == NULL || arm_watcher_runs();
}

void setup_look(struct client *client, const struct setup_options *options, struct setup_view *ret_view)
{
    CLEANUP(freep) char *program = options->program != NULL ? xstrdup(options->program) : own_program();
    CLEANUP(stack_reset) struct stack stack = {.client = client, .program = program};
    CLEANUP(freep) char *dns = choose_dns(&stack, options);
    struct setup_view view = {.rows = json_array()};
    stack.dns = dns;
    view.has_subnet = client != NULL && choose_subnet(&stack, NULL, NULL) == 0;
    for (size_t i = 0; i < table_object_count; i++) {
        (void)json_array_append_new(view.rows, look_at(&stack, table_objects[i]));
    }
    view.is_set_up = stack_is_there(&stack);
    view.subnet = stack.subnet;
    view.gateway = stack.gateway;
    view.dns = steal(&dns);
    *ret_view = view;
}

void setup_view_reset(struct setup_view *view)
{
    json_decref(view->rows);
    free(view->dns);
    *view = (struct setup_view){0};
}

void setup_report_reset(struct setup_report *report)
{
    json_decref(report->changes);
    argv_reset(&report->notes);
    free(report->subnet);
    free(report->dns);
    *report = (struct setup_report){0};
}
