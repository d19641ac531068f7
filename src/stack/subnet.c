/* IPv4 subnets: reading, comparing, and choosing the one that boxnet gets.
 * A claim is whatever the kernel already routes or answers for; a file that says so is none.
 * Not for giving the subnet to the network: item_network.c. */
#include "stack/subnet.h"

#include "base/memory.h"
#include "base/text.h"
#include "host/link.h"
#include "host/route.h"

#include <stdio.h>
#include <string.h>

static uint32_t mask(unsigned prefix)
{
    return prefix == 0 ? 0 : UINT32_MAX << (32 - prefix);
}

/* One number of at most three digits, and the character that must follow. */
static bool take_number(const char **cursor, char next, unsigned maximum, unsigned *ret_value)
{
    size_t length = strspn(*cursor, "0123456789");
    char digits[4] = "";
    uint64_t value;
    if (length == 0 || length > 3 || (*cursor)[length] != next) {
        return false;
    }
    memcpy(digits, *cursor, length);
    if (!text_parse_number(digits, 0, maximum, &value)) {
        return false;
    }
    *cursor += length + (next != '\0' ? 1 : 0);
    *ret_value = (unsigned)value;
    return true;
}

static bool take_address(const char **cursor, char next, uint32_t *ret_address)
{
    unsigned a, b, c, d;
    if (!take_number(cursor, '.', 255, &a) || !take_number(cursor, '.', 255, &b) ||
        !take_number(cursor, '.', 255, &c) || !take_number(cursor, next, 255, &d)) {
        return false;
    }
    *ret_address = (uint32_t)a << 24 | b << 16 | c << 8 | d;
    return true;
}

bool subnet_parse_address(const char *text, uint32_t *ret_address)
{
    uint32_t address;
    if (text == NULL || !take_address(&text, '\0', &address)) {
        return false;
    }
    *ret_address = address;
    return true;
}

bool subnet_parse(const char *text, struct subnet *ret_subnet)
{
    struct subnet subnet;
    if (text == NULL || !take_address(&text, '/', &subnet.base) || !take_number(&text, '\0', 32, &subnet.prefix) ||
        (subnet.base & ~mask(subnet.prefix)) != 0) {
        return false;
    }
    *ret_subnet = subnet;
    return true;
}

struct subnet subnet_around(uint32_t address, unsigned prefix)
{
    return (struct subnet){.base = address & mask(prefix), .prefix = prefix};
}

bool subnet_equal(struct subnet a, struct subnet b)
{
    return a.base == b.base && a.prefix == b.prefix;
}

bool subnet_overlap(struct subnet a, struct subnet b)
{
    uint32_t common = mask(a.prefix < b.prefix ? a.prefix : b.prefix);
    return (a.base & common) == (b.base & common);
}

bool subnet_contains(struct subnet subnet, uint32_t address)
{
    return (address & mask(subnet.prefix)) == subnet.base;
}

bool subnet_is_public(uint32_t address)
{
    static const char *const special[] = {
        "0.0.0.0/8",     "10.0.0.0/8",     "100.64.0.0/10",   "127.0.0.0/8",   "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24",   "192.0.2.0/24",    "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(special); i++) {
        struct subnet range;
        if (subnet_parse(special[i], &range) && subnet_contains(range, address)) {
            return false;
        }
    }
    return true;
}

uint32_t subnet_gateway(struct subnet subnet)
{
    return subnet.base + 1;
}

uint32_t subnet_broadcast(struct subnet subnet)
{
    return subnet.base | ~mask(subnet.prefix);
}

void subnet_format_address(uint32_t address, char ret_text[SUBNET_TEXT])
{
    (void)snprintf(ret_text, SUBNET_TEXT, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
                   address & 255);
}

void subnet_format(struct subnet subnet, char ret_text[SUBNET_TEXT])
{
    subnet_format_address(subnet.base, ret_text);
    size_t length = strlen(ret_text);
    (void)snprintf(ret_text + length, SUBNET_TEXT - length, "/%u", subnet.prefix);
}

static const struct subnet_claim *find_claim(struct subnet subnet, const struct subnet_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (subnet_overlap(subnet, claims[i].subnet)) {
            return &claims[i];
        }
    }
    return NULL;
}

int subnet_pick(const struct subnet_claim *claims, size_t count, struct subnet *ret_subnet, struct error *err)
{
    for (uint32_t second = 88; second <= 127; second++) {
        struct subnet subnet = {.base = 10U << 24 | second << 16, .prefix = 24};
        if (find_claim(subnet, claims, count) == NULL) {
            *ret_subnet = subnet;
            return 0;
        }
    }
    (void)error_set(err, ERR_STATE,
                    "every subnet from 10.88.0.0/24 to 10.127.0.0/24 is in use on this host (the "
                    "first by %s)",
                    count > 0 ? claims[0].owner : "nobody");
    return error_remedy(err, "name a free one: BOX_SUBNET=10.200.0.0/24 box setup-host");
}

int subnet_check_pin(const char *text, const struct subnet_claim *claims, size_t count, struct subnet *ret_subnet,
                     struct error *err)
{
    static const struct subnet private_ranges[] = {
        {10U << 24, 8},
        {172U << 24 | 16U << 16, 12},
        {192U << 24 | 168U << 16, 16},
    };
    struct subnet subnet;
    if (!subnet_parse(text, &subnet)) {
        return error_set(err, ERR_USAGE, "BOX_SUBNET=%s is no subnet; it looks like 10.88.0.0/24, host bits zero",
                         text);
    }
    bool is_private = false;
    for (size_t i = 0; i < ARRAY_LENGTH(private_ranges); i++) {
        is_private |= subnet.prefix >= private_ranges[i].prefix && subnet_overlap(subnet, private_ranges[i]);
    }
    if (!is_private || subnet.prefix < 16 || subnet.prefix > 28) {
        return error_set(err, ERR_USAGE, "BOX_SUBNET=%s must be a private subnet between /16 and /28", text);
    }
    const struct subnet_claim *claim = find_claim(subnet, claims, count);
    if (claim != NULL) {
        (void)error_set(err, ERR_USAGE, "BOX_SUBNET=%s is in use on this host: %s", text, claim->owner);
        return error_remedy(err, "leave BOX_SUBNET unset for the first free subnet, or name another");
    }
    *ret_subnet = subnet;
    return 0;
}

struct claim_list {
    struct subnet_claim *items;
    size_t count;
    const struct link *links;
    size_t link_count;
    const char *except;
};

static const char *link_name(const struct claim_list *list, int index)
{
    for (size_t i = 0; i < list->link_count; i++) {
        if (list->links[i].index == index) {
            return list->links[i].name;
        }
    }
    return "-";
}

static void claim(struct claim_list *list, struct subnet subnet, const char *kind, const char *interface)
{
    char text[SUBNET_TEXT];
    struct subnet_claim item = {.subnet = subnet};
    /* 127.0.0.0/8 and multicast cannot collide with a private subnet, and a default route claims nothing. */
    if (subnet.prefix == 0 || (interface != NULL && text_equal(interface, list->except))) {
        return;
    }
    subnet_format(subnet, text);
    if (interface != NULL) {
        (void)snprintf(item.owner, sizeof(item.owner), "%s %s on %s", kind, text, interface);
    } else {
        (void)snprintf(item.owner, sizeof(item.owner), "%s %s", kind, text);
    }
    list->items = xreallocarray(list->items, list->count + 1, sizeof(item));
    list->items[list->count++] = item;
}

static int claim_addresses(struct claim_list *list, struct error *err)
{
    CLEANUP(freep) struct route_address *addresses = NULL;
    size_t count = 0;
    if (route_addresses(&addresses, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        claim(list, subnet_around(addresses[i].address, addresses[i].prefix), "an address in",
              link_name(list, addresses[i].link));
    }
    return 0;
}

static int claim_routes(struct claim_list *list, struct error *err)
{
    CLEANUP(freep) struct route_entry *entries = NULL;
    size_t count = 0;
    if (route_entries(&entries, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        /* 0.0.0.0/1 and 128.0.0.0/1 are a VPN's way of writing a default route. */
        if (entries[i].prefix > 1) {
            claim(list, subnet_around(entries[i].destination, entries[i].prefix), "a route to",
                  link_name(list, entries[i].link));
        }
        if (entries[i].gateway != 0) {
            claim(list, subnet_around(entries[i].gateway, 32), "the gateway", link_name(list, entries[i].link));
        }
    }
    return 0;
}

static int claim_rules(struct claim_list *list, struct error *err)
{
    CLEANUP(freep) struct route_rule *rules = NULL;
    size_t count = 0;
    if (route_rules(&rules, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        claim(list, subnet_around(rules[i].source, rules[i].source_prefix), "a policy rule from", NULL);
        claim(list, subnet_around(rules[i].destination, rules[i].destination_prefix), "a policy rule to", NULL);
    }
    return 0;
}

int subnet_claims(const char *except, struct subnet_claim **ret_claims, size_t *ret_count, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    struct claim_list list = {.except = except};
    if (link_list(&links, &list.link_count, err) < 0) {
        return -1;
    }
    list.links = links;
    if (claim_addresses(&list, err) < 0 || claim_routes(&list, err) < 0 || claim_rules(&list, err) < 0) {
        free(list.items);
        return -1;
    }
    *ret_claims = list.items;
    *ret_count = list.count;
    return 0;
}
