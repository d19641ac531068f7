/* Reads from the kernel which MAC and address Incus lets each port use.
 * A filter counts as live only where it drops both on the way to the host and across the bridge.
 * Not for laying filters: that is Incus's own work. */
#include "stack/filter.h"

#include "base/memory.h"
#include "base/text.h"
#include "host/link.h"
#include "stack/subnet.h"

#include <string.h>

#define FILTER_COMMAND "list table bridge incus"

/* What has been seen of an interface while the rules are read; a bit for each of (what it drops, at which hook). */
enum {
    SEEN_MAC = 1 << 0,
    SEEN_IP = 1 << 1,
    SEEN_ARP = 1 << 2,
    SEEN_HOOK_FORWARD = 3, /* shift of the forward hook's bits above the input hook's */
    SEEN_CONFLICT = 1 << 6,
};

struct list {
    struct filter *items;
    unsigned *seen;
    size_t count;
};

static size_t find_or_add(struct list *list, const char *interface)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].interface, interface) == 0) {
            return i;
        }
    }
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    list->seen = xreallocarray(list->seen, list->count + 1, sizeof(*list->seen));
    list->items[list->count] = (struct filter){0};
    memcpy(list->items[list->count].interface, interface, strlen(interface));
    list->seen[list->count] = 0;
    return list->count++;
}

/* The one value on the right: a text, or a set or /32 prefix of one. NULL where there are several. */
static const char *single_value(const json_t *right)
{
    const json_t *set = json_object_get(right, "set");
    if (json_is_array(set)) {
        return json_array_size(set) == 1 ? single_value(json_array_get(set, 0)) : NULL;
    }
    const json_t *prefix = json_object_get(right, "prefix");
    if (prefix != NULL) {
        return json_number(prefix, "len", 0) == 32 ? json_text(prefix, "addr") : NULL;
    }
    return json_string_value(right);
}

static void take_mac(struct filter *filter, unsigned *seen, unsigned shift, const char *text)
{
    uint8_t mac[6];
    if (!link_parse_mac(text, mac) || (filter->has_mac && memcmp(mac, filter->mac, sizeof(mac)) != 0)) {
        *seen |= SEEN_CONFLICT;
        return;
    }
    memcpy(filter->mac, mac, sizeof(mac));
    filter->has_mac = true;
    *seen |= SEEN_MAC << shift;
}

static void take_address(struct filter *filter, unsigned *seen, unsigned bit, const char *text)
{
    uint32_t address;
    if (!subnet_parse_address(text, &address) || (filter->has_address && address != filter->address)) {
        *seen |= SEEN_CONFLICT;
        return;
    }
    filter->address = address;
    filter->has_address = true;
    *seen |= bit;
}

/* Conditions that only name the protocol which the comparison implies: some versions list them, some do not. */
static bool is_protocol(const json_t *left)
{
    return text_equal(json_text(json_object_get(left, "payload"), "field"), "type") ||
           text_equal(json_text(json_object_get(left, "meta"), "key"), "protocol");
}

/* A rule of the shape: iifname X, one comparison with "!=", drop. A rule with a further condition drops less than
 * that, so it says nothing about X. */
static void take_rule(struct list *list, const json_t *rule, unsigned shift)
{
    const json_t *expressions = json_object_get(rule, "expr");
    const json_t *found = NULL;
    const char *interface = NULL;
    bool drops = false, narrowed = false;
    size_t i;
    const json_t *expression;
    json_array_foreach(expressions, i, expression)
    {
        const json_t *match = json_object_get(expression, "match");
        const json_t *left = json_object_get(match, "left");
        drops |= json_object_get(expression, "drop") != NULL;
        if (match == NULL) {
            continue;
        }
        if (text_equal(json_text(json_object_get(left, "meta"), "key"), "iifname")) {
            interface = json_text(match, "right");
        } else if (text_equal(json_text(match, "op"), "!=") && found == NULL) {
            found = match;
        } else {
            narrowed |= !is_protocol(left);
        }
    }
    if (!drops || narrowed || found == NULL || interface == NULL || strlen(interface) > 15) {
        return;
    }
    const json_t *payload = json_path(found, "left", "payload", NULL);
    const char *protocol = json_text(payload, "protocol");
    const char *field = json_text(payload, "field");
    const char *value = single_value(json_object_get(found, "right"));
    bool is_mac = text_equal(protocol, "ether") && text_equal(field, "saddr");
    bool is_ip = text_equal(protocol, "ip") && text_equal(field, "saddr");
    bool is_arp = text_equal(protocol, "arp") && text_equal(field, "saddr ip");
    if (!is_mac && !is_ip && !is_arp) {
        return;
    }
    size_t place = find_or_add(list, interface);
    if (is_mac) {
        take_mac(&list->items[place], &list->seen[place], shift, value);
    } else {
        take_address(&list->items[place], &list->seen[place], (is_ip ? SEEN_IP : SEEN_ARP) << shift, value);
    }
}

/* The hook of a base chain decides whether its rules are reached at all. */
static const char *hook_of(const json_t *listing, const char *chain)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(listing, i, entry)
    {
        const json_t *object = json_object_get(entry, "chain");
        if (object != NULL && text_equal(json_text(object, "name"), chain)) {
            return json_text(object, "hook");
        }
    }
    return NULL;
}

void filter_parse(const json_t *listing, struct filter **ret_filters, size_t *ret_count)
{
    struct list list = {0};
    const char *chain = NULL, *hook = NULL;
    size_t i;
    const json_t *entry;
    json_array_foreach(listing, i, entry)
    {
        const json_t *rule = json_object_get(entry, "rule");
        const char *name = json_text(rule, "chain");
        if (name == NULL) {
            continue;
        }
        /* Rules come chain by chain: the look-up runs once a chain. */
        if (!text_equal(name, chain)) {
            chain = name;
            hook = hook_of(listing, name);
        }
        if (text_equal(hook, "input")) {
            take_rule(&list, rule, 0);
        } else if (text_equal(hook, "forward")) {
            take_rule(&list, rule, SEEN_HOOK_FORWARD);
        }
    }
    for (size_t k = 0; k < list.count; k++) {
        unsigned mac = SEEN_MAC | SEEN_MAC << SEEN_HOOK_FORWARD;
        unsigned address = (SEEN_IP | SEEN_ARP) | (SEEN_IP | SEEN_ARP) << SEEN_HOOK_FORWARD;
        bool conflict = (list.seen[k] & SEEN_CONFLICT) != 0;
        list.items[k].mac_live = !conflict && (list.seen[k] & mac) == mac;
        list.items[k].address_live = !conflict && (list.seen[k] & address) == address;
    }
    free(list.seen);
    *ret_filters = list.items;
    *ret_count = list.count;
}

int filter_read(struct nft *nft, struct filter **ret_filters, size_t *ret_count, struct error *err)
{
    CLEANUP(json_freep) json_t *listing = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    if (nft_query(nft, FILTER_COMMAND, &listing, &failure) < 0) {
        if (failure.code != ERR_NOT_FOUND) {
            (void)error_move(err, &failure);
            return error_wrap(err, "cannot read the filters of Incus");
        }
        *ret_filters = NULL;
        *ret_count = 0;
        return 0;
    }
    filter_parse(listing, ret_filters, ret_count);
    return 0;
}

const struct filter *filter_find(const struct filter *filters, size_t count, const char *interface)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(filters[i].interface, interface) == 0) {
            return &filters[i];
        }
    }
    return NULL;
}
