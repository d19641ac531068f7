/* What the daemon makes of its configuration in the kernel: the bridge, its address, a dnsmasq that serves it, NAT, the
 * ACL's rules, the filters of running boxes. The daemon's "Created" says nothing about any of them.
 * Repaired by having the daemon do it again: it lays network or filters anew when a key of theirs changes.
 * Not for the configuration: item_network.c, item_profile.c. */
#include "base/memory.h"
#include "base/text.h"
#include "host/link.h"
#include "host/nft.h"
#include "host/procfs.h"
#include "host/route.h"
#include "incus/instance.h"
#include "stack/filter.h"
#include "stack/names.h"
#include "stack/table.h"

#include <poll.h>
#include <string.h>

#define NAME     "service of " STACK_NETWORK
#define NETWORK  "/1.0/networks/" STACK_NETWORK
#define PROFILE  "/1.0/profiles/" STACK_PROFILE
#define FILTERED "filters of "
#define GHOST    "port "
#define GHOST_MS 700 /* a guest that starts has its interface on the host for a moment, too */

static int judge_bridge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(freep) struct route_address *addresses = NULL;
    size_t link_count = 0, address_count = 0;
    bool has_address = false;
    char gateway[SUBNET_TEXT];
    if (link_list(&links, &link_count, err) < 0 || route_addresses(&addresses, &address_count, err) < 0) {
        return -1;
    }
    const struct link *bridge = link_find(links, link_count, STACK_NETWORK);
    if (bridge == NULL) {
        table_change(changes, NAME, "bridge", NULL, "present", "boxes hang on nothing");
        return 0;
    }
    for (size_t i = 0; i < address_count; i++) {
        has_address |= addresses[i].link == bridge->index && addresses[i].address == stack->gateway;
    }
    subnet_format_address(stack->gateway, gateway);
    if (!has_address) {
        table_change(changes, NAME, "address", NULL, gateway, "boxes have no gateway");
    }
    if (!bridge->up) {
        table_change(changes, NAME, "bridge", "down", "up", "boxes have no network");
    }
    return 0;
}

/* True where a chain of that hook (NULL: any) holds an expression of that name. */
static bool has_expression(const json_t *listing, const char *chain, const char *expression)
{
    size_t i, k;
    const json_t *entry, *part;
    json_array_foreach(listing, i, entry)
    {
        const json_t *rule = json_object_get(entry, "rule");
        if (!text_equal(json_text(rule, "chain"), chain)) {
            continue;
        }
        json_array_foreach(json_object_get(rule, "expr"), k, part)
        {
            if (json_object_get(part, expression) != NULL) {
                return true;
            }
        }
    }
    return false;
}

static int judge_rules(struct nft *nft, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *listing = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    if (nft_query(nft, "list table inet incus", &listing, &failure) < 0 && failure.code != ERR_NOT_FOUND) {
        return error_move(err, &failure);
    }
    if (!has_expression(listing, "pstrt." STACK_NETWORK, "masquerade")) {
        table_change(changes, NAME, "NAT rule", NULL, "present", "boxes do not reach the internet");
    }
    if (!has_expression(listing, "acl." STACK_NETWORK, "drop")) {
        table_change(changes, NAME, "ACL rules", NULL, "present", "the daemon's layer against private networks is off");
    }
    return 0;
}

/* True where the expanded device asks for both filters on boxnet. */
static bool wants_filters(const json_t *device)
{
    return text_equal(json_text(device, "network"), STACK_NETWORK) &&
           text_equal(json_text(device, "security.mac_filtering"), "true") &&
           text_equal(json_text(device, "security.ipv4_filtering"), "true");
}

static void judge_instance(const json_t *instance, const struct filter *filters, size_t count, json_t *changes)
{
    const char *device_name;
    json_t *device;
    json_object_foreach(json_object_get(instance, "expanded_devices"), device_name, device)
    {
        CLEANUP(freep) char *key = xasprintf("volatile.%s.host_name", device_name);
        const char *interface = json_text(json_object_get(instance, "config"), key);
        const struct filter *filter = interface != NULL ? filter_find(filters, count, interface) : NULL;
        if (interface == NULL || !wants_filters(device) ||
            (filter != NULL && filter->mac_live && filter->address_live)) {
            continue;
        }
        CLEANUP(freep) char *item = xasprintf(FILTERED "%s", json_text(instance, "name"));
        table_change(changes, NAME, item, "not in the kernel", "live", "its port is not armed: it has no network");
    }
}

static bool has_guest(const json_t *instances, const char *interface)
{
    size_t i;
    const json_t *instance;
    json_array_foreach(instances, i, instance)
    {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(instance, "config"), key, value)
        {
            if (text_ends_with(key, ".host_name") && text_equal(json_string_value(value), interface)) {
                return true;
            }
        }
    }
    return false;
}

/* The daemon now and then leaves the port of a guest that is gone: both ends of its cable lie on the host. */
static int judge_ghosts(const json_t *instances, json_t *changes, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    size_t count = 0;
    if (link_list(&links, &count, err) < 0) {
        return -1;
    }
    const struct link *bridge = link_find(links, count, STACK_NETWORK);
    for (size_t i = 0; bridge != NULL && i < count; i++) {
        if (links[i].master == bridge->index && text_equal(links[i].kind, "veth") && links[i].peer_here &&
            !links[i].carrier && !has_guest(instances, links[i].name)) {
            CLEANUP(freep) char *item = xasprintf(GHOST "%s", links[i].name);
            table_change(changes, NAME, item, "left by a guest that is gone", NULL, "it claims a MAC and an address");
        }
    }
    return 0;
}

static int judge_filters(struct stack *stack, struct nft *nft, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    CLEANUP(freep) struct filter *filters = NULL;
    size_t count = 0, i;
    const json_t *instance;
    if (instance_list(stack->client, NULL, &instances, err) < 0 || filter_read(nft, &filters, &count, err) < 0) {
        return -1;
    }
    json_array_foreach(instances, i, instance)
    {
        if (text_equal(json_text(instance, "status"), "Running")) {
            judge_instance(instance, filters, count, changes);
        }
    }
    return judge_ghosts(instances, changes, err);
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(nft_closep) struct nft *nft = NULL;
    int found = table_get(stack, NETWORK, &network, err);
    if (found <= 0) {
        return found; /* no network: nothing can serve it, and its own row says so */
    }
    if (judge_bridge(stack, changes, err) < 0) {
        return -1;
    }
    if (procfs_find("dnsmasq", "--interface=" STACK_NETWORK) == 0) {
        table_change(changes, NAME, "dnsmasq", NULL, "running", "boxes get no address and resolve nothing");
    }
    if (nft_open(&nft, err) < 0 || judge_rules(nft, changes, err) < 0) {
        return -1;
    }
    return judge_filters(stack, nft, changes, err);
}

static bool holds_chain(const json_t *listing)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(listing, i, entry)
    {
        if (json_object_get(entry, "chain") != NULL) {
            return true;
        }
    }
    return false;
}

/* A key that changes and changes back: each time the daemon lays the network anew. */
static int lay_network(struct stack *stack, struct error *err)
{
    static const char *const values[] = {"managed", "none"};
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        CLEANUP(json_freep) json_t *body = json_pack("{s:{s:s}}", "config", "dns.mode", values[i]);
        if (client_request(stack->client, "PATCH", NETWORK, body, NULL, err) < 0) {
            return error_wrap(err, "the daemon cannot lay " STACK_NETWORK " anew");
        }
    }
    return 0;
}

static int lay_filters(struct stack *stack, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;
    static const char *const values[] = {"false", "true"};
    static const char *const keys[] = {"security.mac_filtering", "security.ipv4_filtering"};
    if (client_get(stack->client, PROFILE, &profile, err) < 0) {
        return -1;
    }
    json_t *device = json_path(profile, "devices", STACK_NIC, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        for (size_t k = 0; k < ARRAY_LENGTH(keys); k++) {
            (void)json_object_set_new(device, keys[k], json_string(values[i]));
        }
        if (client_request(stack->client, "PUT", PROFILE, profile, NULL, err) < 0) {
            return error_wrap(err, "the daemon cannot lay the filters of boxes anew");
        }
    }
    return 0;
}

static int remove_ghosts(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    CLEANUP(json_freep) json_t *ghosts = json_array();
    CLEANUP(freep) struct link *links = NULL;
    size_t count = 0, i;
    const json_t *ghost;
    (void)poll(NULL, 0, GHOST_MS);
    if (instance_list(stack->client, NULL, &instances, err) < 0 || judge_ghosts(instances, ghosts, err) < 0 ||
        link_list(&links, &count, err) < 0) {
        return -1;
    }
    json_array_foreach(ghosts, i, ghost)
    {
        const struct link *link = link_find(links, count, json_text(ghost, "item") + strlen(GHOST));
        if (link != NULL && link_remove(link->index, err) < 0) {
            return -1;
        }
        narrate_note(narrator, "removed the %s, which a guest that is gone left", json_text(ghost, "item"));
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    bool network = false, filters = false, ghosts = false;
    size_t i;
    const json_t *change;
    json_array_foreach(changes, i, change)
    {
        bool is_filter = text_starts_with(json_text(change, "item"), FILTERED);
        bool is_ghost = text_starts_with(json_text(change, "item"), GHOST);
        filters |= is_filter;
        ghosts |= is_ghost;
        network |= !is_filter && !is_ghost;
    }
    if (ghosts && remove_ghosts(stack, narrator, err) < 0) {
        return -1;
    }
    if (network) {
        narrate_note(narrator, "having the daemon lay " STACK_NETWORK " anew");
        if (lay_network(stack, err) < 0) {
            return -1;
        }
    }
    if (filters) {
        narrate_note(narrator, "having the daemon lay the filters of running boxes anew");
        if (lay_filters(stack, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* It goes with the network, but for a dnsmasq that the daemon lost track of; and the daemon leaves the tables behind
 * that held its rules. Where they are empty now they serve nobody, and the daemon makes them anew when it needs them.
 */
static int remove_service(struct stack *stack, struct narrator *narrator, struct error *err)
{
    static const char *const families[] = {"inet", "bridge"};
    CLEANUP(nft_closep) struct nft *nft = NULL;
    pid_t orphan = procfs_find("dnsmasq", "--interface=" STACK_NETWORK);
    (void)stack;
    (void)narrator;
    if ((orphan != 0 && procfs_end(orphan, "the dnsmasq of " STACK_NETWORK, err) < 0) || nft_open(&nft, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
        CLEANUP(json_freep) json_t *listing = NULL;
        CLEANUP(freep) char *list = xasprintf("list table %s incus", families[i]);
        CLEANUP(freep) char *remove = xasprintf("delete table %s incus", families[i]);
        if (nft_query(nft, list, &listing, NULL) == 0 && !holds_chain(listing) && nft_apply(nft, remove, err) < 0) {
            return error_wrap(err, "cannot remove the daemon's empty table");
        }
    }
    return 0;
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    int found = table_get(stack, NETWORK, &network, err);
    pid_t orphan = procfs_find("dnsmasq", "--interface=" STACK_NETWORK);
    if (found == 0 && orphan != 0) {
        argv_push_format(ret_standing, "dnsmasq of " STACK_NETWORK " (process %d)", (int)orphan);
    }
    return found < 0 ? -1 : 0;
}

const struct stack_object item_service = {
    .name = NAME,
    .why = "the configuration is a claim; this is the fact",
    .needs_root = true,
    .needs_daemon = true,
    .budget = 60000,
    .judge = judge,
    .converge = converge,
    .remove = remove_service,
    .stands = stands,
    .rank = 6,
};
