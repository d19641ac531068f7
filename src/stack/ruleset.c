/* Writes the walls as nftables text, from facts: one generator for the static and the owned copy.
 * Each rule that is not plain names the attack that it stops; docs/isolation.md has the measurements.
 * Not for loading them (watch.c) nor for judging what is loaded (rulecheck.c). */
#include "stack/ruleset.h"

#include "base/memory.h"
#include "host/link.h"
#include "stack/names.h"

#include <string.h>

/* Set on a frame of an armed port on its way from the bridge to the inet chains ("box" in ASCII). */
#define MARK "0x626f7800"

/* Flows that one box may hold: 20,000 to the gateway's DNS were kept without a limit. */
#define FLOWS "2000"

/* What is not the public internet: IANA's special-purpose registry. */
#define SPECIAL_RANGES                                                                                                 \
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, "                 \
    "192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, "                   \
    "224.0.0.0/4, 240.0.0.0/4"

const char *const ruleset_families[3] = {"bridge", "arp", "inet"};

const char *ruleset_table(enum ruleset_copy copy)
{
    return copy == RULESET_OWNED ? STACK_NFT_TABLE "-owned" : STACK_NFT_TABLE;
}

/* Each lists a set's elements as nftables writes them. */
static void list_armed(const struct ruleset *ruleset, struct argv *ret)
{
    for (size_t i = 0; i < ruleset->port_count; i++) {
        char mac[18], address[SUBNET_TEXT];
        link_format_mac(ruleset->ports[i].mac, mac);
        subnet_format_address(ruleset->ports[i].address, address);
        argv_push_format(ret, "%d . %s . %s", ruleset->ports[i].index, mac, address);
        /* DHCP and ARP probes come from 0.0.0.0. */
        argv_push_format(ret, "%d . %s . 0.0.0.0", ruleset->ports[i].index, mac);
    }
}

static void list_pairs(const struct ruleset *ruleset, struct argv *ret)
{
    for (size_t i = 0; i < ruleset->port_count; i++) {
        char mac[18], address[SUBNET_TEXT];
        link_format_mac(ruleset->ports[i].mac, mac);
        subnet_format_address(ruleset->ports[i].address, address);
        argv_push_format(ret, "%s . %s", mac, address);
        argv_push_format(ret, "%s . 0.0.0.0", mac);
    }
}

static void list_members(const struct ruleset *ruleset, struct argv *ret)
{
    for (size_t i = 0; i < ruleset->member_count; i++) {
        argv_push_format(ret, "%d", ruleset->members[i]);
    }
}

static void list_uplinks(const struct ruleset *ruleset, struct argv *ret)
{
    for (size_t i = 0; i < ruleset->uplink_count; i++) {
        char gateway[SUBNET_TEXT];
        subnet_format_address(ruleset->uplinks[i].gateway, gateway);
        if (ruleset->uplinks[i].gateway != 0) {
            argv_push_format(ret, "\"%s\" . %s", ruleset->uplinks[i].interface, gateway);
        }
    }
}

static void list_direct(const struct ruleset *ruleset, struct argv *ret)
{
    for (size_t i = 0; i < ruleset->uplink_count; i++) {
        if (ruleset->uplinks[i].gateway == 0) {
            argv_push_format(ret, "\"%s\"", ruleset->uplinks[i].interface);
        }
    }
}

const struct ruleset_set ruleset_sets[RULESET_SET_COUNT] = {
    {"bridge", "armed", "iface_index . ether_addr . ipv4_addr", list_armed},
    {"bridge", "pairs", "ether_addr . ipv4_addr", list_pairs},
    {"bridge", "ports", "iface_index", list_members},
    {"inet", "uplink", "ifname . ipv4_addr", list_uplinks},
    {"inet", "direct", "ifname", list_direct},
};

void ruleset_write_elements(const struct ruleset *ruleset, enum ruleset_copy copy, struct buffer *text)
{
    for (size_t i = 0; i < RULESET_SET_COUNT; i++) {
        const struct ruleset_set *set = &ruleset_sets[i];
        CLEANUP(argv_reset) struct argv elements = {0};
        buffer_append_format(text, "flush set %s %s %s\n", set->family, ruleset_table(copy), set->name);
        set->list(ruleset, &elements);
        if (elements.count > 0) {
            CLEANUP(freep) char *list = argv_join(&elements, ", ");
            buffer_append_format(text, "add element %s %s %s { %s }\n", set->family, ruleset_table(copy), set->name,
                                 list);
        }
    }
}

static void open_table(struct buffer *text, const char *family, enum ruleset_copy copy)
{
    const char *name = ruleset_table(copy);
    const char *flags = copy == RULESET_OWNED ? "\tflags owner\n" : "";
    /* Declared first, so that the deletion finds it; all of it is one transaction. */
    buffer_append_format(text, "table %s %s {\n%s}\ndelete table %s %s\ntable %s %s {\n%s", family, name, flags, family,
                         name, family, name, flags);
    for (size_t i = 0; i < RULESET_SET_COUNT; i++) {
        if (strcmp(ruleset_sets[i].family, family) == 0) {
            buffer_append_format(text, "\tset %s {\n\t\ttype %s\n\t}\n", ruleset_sets[i].name, ruleset_sets[i].type);
        }
    }
}

static void write_bridge(const struct ruleset *ruleset, enum ruleset_copy copy, struct buffer *text)
{
    open_table(text, "bridge", copy);
    buffer_append_text(text, "\tchain pre {\n"
                             "\t\ttype filter hook prerouting priority -300; policy accept;\n"
                             "\t\tiif . ether saddr . ip saddr @armed meta mark set " MARK "\n"
                             "\t\tiif . ether saddr . arp saddr ip @armed arp saddr ether . arp saddr ip @pairs "
                             "meta mark set " MARK "\n"
                             "\t}\n"
                             "\tchain forward {\n"
                             "\t\ttype filter hook forward priority 0; policy accept;\n"
                             "\t\tiif @ports drop\n"
                             "\t\toif @ports drop\n");
    if (ruleset->bridge_meta) {
        buffer_append_text(text, "\t\tmeta ibrname \"" STACK_NETWORK "\" drop\n"
                                 "\t\tmeta obrname \"" STACK_NETWORK "\" drop\n");
    }
    buffer_append_text(text, "\t}\n}\n");
}

static void write_arp(enum ruleset_copy copy, struct buffer *text)
{
    open_table(text, "arp", copy);
    buffer_append_text(text, "\tchain input {\n"
                             "\t\ttype filter hook input priority 0; policy accept;\n"
                             "\t\tiifname \"" STACK_NETWORK "\" meta mark != " MARK " drop\n"
                             "\t}\n}\n");
}

static void write_prerouting(const struct ruleset *ruleset, struct buffer *text)
{
    char subnet[SUBNET_TEXT], base[SUBNET_TEXT], gateway[SUBNET_TEXT], broadcast[SUBNET_TEXT];
    /* An IP frame to a reserved group address comes in with the port as its interface: no rule on boxnet sees it. */
    buffer_append_text(text, "\tchain prerouting {\n"
                             "\t\ttype filter hook prerouting priority -310; policy accept;\n"
                             "\t\tiiftype ether ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop\n"
                             "\t\tiifname \"" STACK_NETWORK "\" meta mark != " MARK " drop\n"
                             "\t\tiifname != \"" STACK_NETWORK "\" accept\n"
                             "\t\tmeta nfproto ipv6 drop\n");
    if (ruleset->has_subnet) {
        subnet_format(ruleset->subnet, subnet);
        subnet_format_address(ruleset->subnet.base, base);
        subnet_format_address(ruleset->gateway, gateway);
        subnet_format_address(subnet_broadcast(ruleset->subnet), broadcast);
        /* Sources: only the box's own; the destination range catches route_localnet; source routes have options. */
        buffer_append_format(text,
                             "\t\tip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept\n"
                             "\t\tip saddr != %s drop\n"
                             "\t\tip saddr { %s, %s, %s } drop\n"
                             "\t\tip daddr 127.0.0.0/8 drop\n"
                             "\t\tip hdrlength != 5 drop\n",
                             subnet, base, gateway, broadcast);
    } else {
        buffer_append_text(text, "\t\tdrop\n");
    }
    /* A chain of its own, after both copies have read the mark. */
    buffer_append_text(text, "\t}\n"
                             "\tchain unmark {\n"
                             "\t\ttype filter hook prerouting priority -309; policy accept;\n"
                             "\t\tiifname \"" STACK_NETWORK "\" meta mark set 0x00000000\n"
                             "\t}\n");
}

static void write_input(const struct ruleset *ruleset, struct buffer *text)
{
    char subnet[SUBNET_TEXT], gateway[SUBNET_TEXT];
    buffer_append_text(text, "\tchain input {\n"
                             "\t\ttype filter hook input priority -10; policy accept;\n"
                             "\t\tiifname != \"" STACK_NETWORK "\" accept\n");
    if (ruleset->has_subnet) {
        subnet_format(ruleset->subnet, subnet);
        subnet_format_address(ruleset->gateway, gateway);
        /* Only answers to what the host began: a flow that was open before the rules, or a forged ICMP error about one
         * of the host's own flows, is none. */
        buffer_append_format(text,
                             "\t\tct state established,related ct direction reply ct reply ip saddr %s accept\n"
                             "\t\tct state new add @conns { ip saddr ct count over " FLOWS " } drop\n"
                             "\t\tip daddr %s udp dport { 53, 67 } accept\n"
                             "\t\tip daddr %s tcp dport 53 accept\n"
                             "\t\tip saddr 0.0.0.0 ip daddr 255.255.255.255 udp dport 67 accept\n",
                             subnet, gateway, gateway);
    }
    buffer_append_text(text, "\t\tdrop\n\t}\n");
}

static void write_forward(struct buffer *text)
{
    /* The first drop: a hairpin through the host. The second: whoever knocks from outside by a static route. The two on
     * uplink: the gateway's own public address; public neighbours on the uplink's subnet and split routes of a VPN,
     * which go another way than the default route. */
    buffer_append_text(text, "\tchain forward {\n"
                             "\t\ttype filter hook forward priority -10; policy accept;\n"
                             "\t\tiifname \"" STACK_NETWORK "\" oifname \"" STACK_NETWORK "\" drop\n"
                             "\t\toifname \"" STACK_NETWORK "\" ct direction original drop\n"
                             "\t\tiifname != \"" STACK_NETWORK "\" accept\n"
                             "\t\tmeta nfproto ipv6 drop\n"
                             "\t\tct state invalid drop\n"
                             "\t\tct direction reply accept\n"
                             "\t\tip daddr { " SPECIAL_RANGES " } drop\n"
                             "\t\toifname . ip daddr @uplink drop\n"
                             "\t\toifname != @direct oifname . rt ip nexthop != @uplink drop\n"
                             "\t\tct state new add @conns { ip saddr ct count over " FLOWS " } drop\n"
                             "\t}\n");
}

/* The address of a box never leaves this host: not when somebody has flushed the daemon's masquerading either. */
static void write_postrouting(const struct ruleset *ruleset, struct buffer *text)
{
    char subnet[SUBNET_TEXT];
    if (!ruleset->has_subnet) {
        return;
    }
    subnet_format(ruleset->subnet, subnet);
    buffer_append_format(text,
                         "\tchain postrouting {\n"
                         "\t\ttype filter hook postrouting priority 300; policy accept;\n"
                         "\t\toifname { \"" STACK_NETWORK "\", \"lo\" } accept\n"
                         "\t\tip saddr %s drop\n"
                         "\t}\n",
                         subnet);
}

void ruleset_write(const struct ruleset *ruleset, enum ruleset_copy copy, struct buffer *text)
{
    write_bridge(ruleset, copy, text);
    write_arp(copy, text);
    open_table(text, "inet", copy);
    buffer_append_text(text, "\tset conns {\n\t\ttype ipv4_addr\n\t\tsize 1024\n\t\tflags dynamic\n\t}\n");
    write_prerouting(ruleset, text);
    write_input(ruleset, text);
    write_forward(text);
    write_postrouting(ruleset, text);
    buffer_append_text(text, "}\n");
    ruleset_write_elements(ruleset, copy, text);
}

void ruleset_write_removal(enum ruleset_copy copy, struct buffer *text)
{
    for (size_t i = 0; i < ARRAY_LENGTH(ruleset_families); i++) {
        buffer_append_format(text, "table %s %s\ndelete table %s %s\n", ruleset_families[i], ruleset_table(copy),
                             ruleset_families[i], ruleset_table(copy));
    }
}

bool ruleset_same_rules(const struct ruleset *a, const struct ruleset *b)
{
    return a->has_subnet == b->has_subnet && a->bridge_meta == b->bridge_meta &&
           (!a->has_subnet || (subnet_equal(a->subnet, b->subnet) && a->gateway == b->gateway));
}

bool ruleset_same_elements(const struct ruleset *a, const struct ruleset *b)
{
    CLEANUP(buffer_reset) struct buffer left = {0};
    CLEANUP(buffer_reset) struct buffer right = {0};
    ruleset_write_elements(a, RULESET_STATIC, &left);
    ruleset_write_elements(b, RULESET_STATIC, &right);
    return strcmp(left.data, right.data) == 0;
}

void ruleset_reset(struct ruleset *ruleset)
{
    free(ruleset->ports);
    free(ruleset->members);
    free(ruleset->uplinks);
    *ruleset = (struct ruleset){0};
}
