/* The bridge network boxnet and each of its keys.
 * Changes go out as one PATCH of the keys that differ: with boxes attached every network change reaches every NIC.
 * Not for choosing the subnet: setup.c and subnet.c. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/link.h"
#include "host/procfs.h"
#include "host/route.h"
#include "stack/names.h"
#include "stack/table.h"

#include <linux/rtnetlink.h>
#include <string.h>

#define NAME      "network " STACK_NETWORK
#define PATH      "/1.0/networks/" STACK_NETWORK
#define USUAL_MTU 1500
#define LEAST_MTU 576 /* RFC 791; a link below it is no uplink */

/* An empty value: the key must be unset. */
static const struct {
    const char *key, *value, *why;
} keys[] = {
    {"ipv4.nat", "true", "boxes do not reach the internet"},
    {"ipv6.address", "none", "boxes speak IPv6, past the IPv4 walls"},
    {"ipv6.nat", "", "boxes speak IPv6, past the IPv4 walls"},
    {"ipv4.firewall", "", "the daemon's own rules for DHCP, DNS and forwarding are gone"},
    {"ipv4.dhcp", "", "boxes get no address"},
    {"ipv4.routing", "", "boxes do not reach the internet"},
    {"ipv4.dhcp.ranges", "", "boxes may get no address"},
    {"ipv4.ovn.ranges", "", ""},
    {"ipv4.routes", "", "more of the network is routed to boxes"},
    {"bridge.external_interfaces", "", "a bridge port of somebody else's lets boxes out past the walls"},
    {"dns.mode", "none", "boxes resolve each other's names"},
    {"dns.search", "", "boxes are told names of this host's networks"},
    {"dns.nameservers", "", "boxes ask another resolver than the pinned one"},
    {"security.acls", STACK_ACL, "the daemon's own layer against private networks is off"},
    {"security.acls.default.egress.action", "allow", "boxes do not reach the internet"},
    {"security.acls.default.ingress.action", "drop", "others may begin a flow to a box"},
};

/* The resolver's own configuration, line by line; each closes a leak that was measured. */
static char *wanted_dnsmasq(const struct stack *stack)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(freep) char *dns = xstrdup(stack->dns);
    char *rest = dns;
    buffer_append_text(&text, "no-resolv\n");
    for (char *server; (server = strsep(&rest, " ,")) != NULL;) {
        if (server[0] != '\0') {
            buffer_append_format(&text, "server=%s\n", server);
        }
    }
    buffer_append_text(&text, "no-hosts\n"
                              "dhcp-ignore-names\n"
                              "dhcp-ignore=tag:!known\n"
                              "stop-dns-rebind\n"
                              "bogus-priv\n"
                              "domain-needed\n"
                              "cache-size=0\n"
                              "no-ident");
    return buffer_steal(&text);
}

static void want(json_t *wanted, json_t *why, const char *key, const char *value, const char *reason)
{
    (void)json_object_set_new(wanted, key, json_string(value));
    (void)json_object_set_new(why, key, json_string(reason));
}

static const struct link *find_index(const struct link *links, size_t count, int index)
{
    for (size_t i = 0; i < count; i++) {
        if (links[i].index == index) {
            return &links[i];
        }
    }
    return NULL;
}

/* The smallest MTU among the links that a default route of any table leaves by. */
static int narrowest_uplink(uint32_t *ret_mtu, struct error *err)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(freep) struct route_entry *entries = NULL;
    size_t link_count = 0, count = 0;
    if (link_list(&links, &link_count, err) < 0 || route_entries(&entries, &count, err) < 0) {
        return -1;
    }
    *ret_mtu = USUAL_MTU;
    for (size_t i = 0; i < count; i++) {
        const struct link *link = find_index(links, link_count, entries[i].link);
        bool is_default = entries[i].prefix <= 1 && entries[i].type == RTN_UNICAST; /* or a VPN's half of one */
        if (is_default && link != NULL && !text_equal(link->name, STACK_NETWORK) && link->mtu >= LEAST_MTU &&
            link->mtu < *ret_mtu) {
            *ret_mtu = link->mtu;
        }
    }
    return 0;
}

/* boxnet is no wider than what leads out: nobody tells a box reliably that its packets are too large. It is never made
 * wider again: a VPN comes and goes, and each change of the network reaches every box. `live` may be NULL. */
static int want_mtu(const json_t *live, json_t *wanted, json_t *why, struct error *err)
{
    const char *text = json_text(live, "bridge.mtu");
    uint64_t have = USUAL_MTU;
    uint32_t narrowest;
    if (narrowest_uplink(&narrowest, err) < 0) {
        return -1;
    }
    if ((text == NULL || text_parse_number(text, 1, UINT32_MAX, &have)) && have > narrowest) {
        CLEANUP(freep) char *value = xasprintf("%u", narrowest);
        want(wanted, why, "bridge.mtu", value,
             "this host's uplink is that narrow, and larger packets of boxes get lost; a box that runs now takes it at "
             "its next start");
    }
    return 0;
}

static void make_wanted(const struct stack *stack, json_t *wanted, json_t *why)
{
    char address[SUBNET_TEXT];
    CLEANUP(freep) char *dnsmasq = wanted_dnsmasq(stack);
    subnet_format_address(stack->gateway, address);
    CLEANUP(freep) char *full = xasprintf("%s/%u", address, stack->subnet.prefix);
    want(wanted, why, "ipv4.address", full, "boxes have no gateway");
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        want(wanted, why, keys[i].key, keys[i].value, keys[i].why);
    }
    want(wanted, why, "raw.dnsmasq", dnsmasq,
         "the host's resolver, names and VPN zones answer boxes, or a box's name is told to others");
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(json_freep) json_t *wanted = json_object();
    CLEANUP(json_freep) json_t *why = json_object();
    int found = table_get(stack, PATH, &network, err);
    if (found < 0) {
        return -1;
    }
    if (found == 0) {
        char subnet[SUBNET_TEXT];
        subnet_format(stack->subnet, subnet);
        table_change(changes, NAME, "network", NULL, subnet, "boxes have no network");
        return 0;
    }
    if (!json_truth(network, "managed")) {
        (void)error_set(err, ERR_STATE, "an interface " STACK_NETWORK " exists that the daemon does not manage");
        return error_remedy(err, "find out whose it is (ip -d link show " STACK_NETWORK ") and rename or remove it");
    }
    if (table_check_mark(network, NAME, err) < 0) {
        return -1;
    }
    if (table_is_half_made(network)) {
        table_change(changes, NAME, "network", "half made", "made", "boxes have no network");
        return 0;
    }
    make_wanted(stack, wanted, why);
    if (want_mtu(json_object_get(network, "config"), wanted, why, err) < 0) {
        return -1;
    }
    table_compare(changes, NAME, json_object_get(network, "config"), wanted, why);
    return 0;
}

/* A creation whose client died may leave the daemon's dnsmasq behind without a network: it holds the gateway's port,
 * and nobody ends it. */
static int end_orphan(struct error *err)
{
    pid_t orphan = procfs_find("dnsmasq", "--interface=" STACK_NETWORK);
    return orphan == 0 ? 0 : procfs_end(orphan, "an old dnsmasq of " STACK_NETWORK, err);
}

static int create(struct stack *stack, const json_t *half, struct error *err)
{
    CLEANUP(json_freep) json_t *config = json_object();
    CLEANUP(json_freep) json_t *why = json_object();
    make_wanted(stack, config, why);
    if (want_mtu(NULL, config, why, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (keys[i].value[0] == '\0') {
            (void)json_object_del(config, keys[i].key);
        }
    }
    (void)json_object_set_new(config, TABLE_MARK, json_string("1"));
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:s, s:O}", "name", STACK_NETWORK, "type", "bridge", "description",
                             "The network of boxes (made by box setup-host)", "config", config);
    if (half != NULL) {
        (void)client_request(stack->client, "DELETE", PATH, NULL, NULL, NULL); /* it may be too early: tried again */
    }
    if (end_orphan(err) < 0) {
        return -1;
    }
    return table_create(stack, "/1.0/networks", PATH, half != NULL, body, err);
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    CLEANUP(json_freep) json_t *config = json_object();
    size_t i;
    const json_t *change;
    (void)narrator;
    int found = table_get(stack, PATH, &network, err);
    if (found < 0) {
        return -1;
    }
    if (found == 0 || table_is_half_made(network)) {
        return create(stack, network, err);
    }
    json_array_foreach(changes, i, change)
    {
        const char *value = json_text(change, "want");
        (void)json_object_set_new(config, json_text(change, "item"), json_string(value != NULL ? value : ""));
    }
    CLEANUP(json_freep) json_t *body = json_pack("{s:O}", "config", config);
    return client_request(stack->client, "PATCH", PATH, body, NULL, err);
}

static int remove_network(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(json_freep) json_t *network = NULL;
    int found = table_get(stack, PATH, &network, err);
    (void)narrator;
    if (found <= 0) {
        return found;
    }
    if (!table_is_half_made(network) && table_check_mark(network, NAME, err) < 0) {
        return -1;
    }
    return client_request(stack->client, "DELETE", PATH, NULL, NULL, err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    return table_stands(stack, PATH, NAME, ret_standing, err);
}

const struct stack_object item_network = {
    .name = NAME,
    .why = "boxes have no network without it",
    .needs_daemon = true,
    .budget = 60000,
    .judge = judge,
    .converge = converge,
    .remove = remove_network,
    .stands = stands,
    .rank = 2,
};
