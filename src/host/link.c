/* Interfaces, bridges, bridge ports and the bridge's table over rtnetlink.
 * What a port ought to be like is decided in src/stack; here it is only read and set.
 * Not for addresses and routes: route.c. */
#include "host/link.h"

#include "base/memory.h"
#include "host/netlink.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct link_vector {
    struct link *items;
    size_t count;
};

static void copy_text(char *to, size_t size, const struct rtattr *attribute)
{
    if (attribute == NULL) {
        return;
    }
    size_t length = strnlen(RTA_DATA(attribute), RTA_PAYLOAD(attribute));
    if (length >= size) {
        length = size - 1;
    }
    memcpy(to, RTA_DATA(attribute), length);
    to[length] = '\0';
}

static bool read_flag(const struct rtattr *attribute)
{
    return attribute != NULL && RTA_PAYLOAD(attribute) >= 1 && *(const uint8_t *)RTA_DATA(attribute) != 0;
}

static void read_bridge(struct link *link, const struct rtattr *data)
{
    const struct rtattr *table[IFLA_BR_MULTI_BOOLOPT + 1];
    netlink_attributes(RTA_DATA(data), RTA_PAYLOAD(data), table, IFLA_BR_MULTI_BOOLOPT);
    const struct rtattr *options = table[IFLA_BR_MULTI_BOOLOPT];
    link->linklocal_learn = true;
    if (options != NULL && RTA_PAYLOAD(options) >= sizeof(struct br_boolopt_multi)) {
        struct br_boolopt_multi value;
        memcpy(&value, RTA_DATA(options), sizeof(value));
        link->linklocal_learn = (value.optval & (1U << BR_BOOLOPT_NO_LL_LEARN)) == 0;
    }
}

static void read_port(struct link *link, const struct rtattr *data)
{
    const struct rtattr *table[IFLA_BRPORT_ISOLATED + 1];
    netlink_attributes(RTA_DATA(data), RTA_PAYLOAD(data), table, IFLA_BRPORT_ISOLATED);
    link->bridge_port = true;
    link->isolated = read_flag(table[IFLA_BRPORT_ISOLATED]);
    link->learning = read_flag(table[IFLA_BRPORT_LEARNING]);
}

static void read_info(struct link *link, const struct rtattr *info)
{
    const struct rtattr *table[IFLA_INFO_SLAVE_DATA + 1];
    char slave_kind[16] = "";
    netlink_attributes(RTA_DATA(info), RTA_PAYLOAD(info), table, IFLA_INFO_SLAVE_DATA);
    copy_text(link->kind, sizeof(link->kind), table[IFLA_INFO_KIND]);
    copy_text(slave_kind, sizeof(slave_kind), table[IFLA_INFO_SLAVE_KIND]);
    if (strcmp(link->kind, "bridge") == 0 && table[IFLA_INFO_DATA] != NULL) {
        read_bridge(link, table[IFLA_INFO_DATA]);
    }
    if (strcmp(slave_kind, "bridge") == 0 && table[IFLA_INFO_SLAVE_DATA] != NULL) {
        read_port(link, table[IFLA_INFO_SLAVE_DATA]);
    }
}

static void take_link(const struct nlmsghdr *header, void *context)
{
    if (header->nlmsg_type != RTM_NEWLINK) {
        return;
    }
    struct link_vector *vector = context;
    const struct ifinfomsg *body = NLMSG_DATA(header);
    const struct rtattr *table[IFLA_LINK_NETNSID + 1];
    netlink_attributes(IFLA_RTA(body), IFLA_PAYLOAD(header), table, IFLA_LINK_NETNSID);
    struct link link = {
        .index = body->ifi_index,
        .up = (body->ifi_flags & IFF_UP) != 0,
        .carrier = (body->ifi_flags & IFF_RUNNING) != 0,
    };
    copy_text(link.name, sizeof(link.name), table[IFLA_IFNAME]);
    if (table[IFLA_MTU] != NULL) {
        memcpy(&link.mtu, RTA_DATA(table[IFLA_MTU]), sizeof(link.mtu));
    }
    if (table[IFLA_MASTER] != NULL) {
        memcpy(&link.master, RTA_DATA(table[IFLA_MASTER]), sizeof(link.master));
    }
    if (table[IFLA_ADDRESS] != NULL && RTA_PAYLOAD(table[IFLA_ADDRESS]) == sizeof(link.mac)) {
        memcpy(link.mac, RTA_DATA(table[IFLA_ADDRESS]), sizeof(link.mac));
    }
    if (table[IFLA_LINKINFO] != NULL) {
        read_info(&link, table[IFLA_LINKINFO]);
        link.peer_here = strcmp(link.kind, "veth") == 0 && table[IFLA_LINK_NETNSID] == NULL;
    }
    vector->items = xreallocarray(vector->items, vector->count + 1, sizeof(link));
    vector->items[vector->count++] = link;
}

int link_list(struct link **ret_links, size_t *ret_count, struct error *err)
{
    for (int attempt = 0;; attempt++) {
        struct link_vector vector = {0};
        struct ifinfomsg body = {.ifi_family = AF_UNSPEC};
        struct netlink_message message;
        netlink_begin(&message, RTM_GETLINK, NLM_F_DUMP, &body, sizeof(body));
        uint32_t mask = RTEXT_FILTER_SKIP_STATS;
        netlink_put(&message, IFLA_EXT_MASK, &mask, sizeof(mask));
        CLEANUP(error_reset) struct error failure = {0};
        if (netlink_talk(&message, take_link, &vector, &failure) == 0) {
            *ret_links = vector.items;
            *ret_count = vector.count;
            return 0;
        }
        free(vector.items);
        if (failure.errnum != EINTR || attempt >= 20) {
            (void)error_move(err, &failure);
            return error_wrap(err, "cannot list the network interfaces");
        }
    }
}

const struct link *link_find(const struct link *links, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(links[i].name, name) == 0) {
            return &links[i];
        }
    }
    return NULL;
}

int link_set_port(int index, bool isolated, bool learning, struct error *err)
{
    struct ifinfomsg body = {.ifi_family = AF_BRIDGE, .ifi_index = index};
    struct netlink_message message;
    uint8_t isolated_value = isolated;
    uint8_t learning_value = learning;
    netlink_begin(&message, RTM_SETLINK, 0, &body, sizeof(body));
    size_t nest = netlink_open_nest(&message, IFLA_PROTINFO);
    netlink_put(&message, IFLA_BRPORT_ISOLATED, &isolated_value, sizeof(isolated_value));
    netlink_put(&message, IFLA_BRPORT_LEARNING, &learning_value, sizeof(learning_value));
    netlink_close_nest(&message, nest);
    if (netlink_talk(&message, NULL, NULL, err) < 0) {
        return error_wrap(err, "cannot set the flags of bridge port %d", index);
    }
    return 0;
}

int link_remove(int index, struct error *err)
{
    struct netlink_message message;
    struct ifinfomsg body = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    CLEANUP(error_reset) struct error failure = {0};
    netlink_begin(&message, RTM_DELLINK, 0, &body, sizeof(body));
    if (netlink_talk(&message, NULL, NULL, &failure) == 0 || failure.code == ERR_NOT_FOUND) {
        return 0;
    }
    return error_move(err, &failure);
}

int link_stop_linklocal_learning(int index, struct error *err)
{
    struct ifinfomsg body = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    struct netlink_message message;
    struct br_boolopt_multi option = {
        .optval = 1U << BR_BOOLOPT_NO_LL_LEARN,
        .optmask = 1U << BR_BOOLOPT_NO_LL_LEARN,
    };
    netlink_begin(&message, RTM_NEWLINK, 0, &body, sizeof(body));
    size_t info = netlink_open_nest(&message, IFLA_LINKINFO);
    netlink_put(&message, IFLA_INFO_KIND, "bridge", strlen("bridge"));
    size_t data = netlink_open_nest(&message, IFLA_INFO_DATA);
    netlink_put(&message, IFLA_BR_MULTI_BOOLOPT, &option, sizeof(option));
    netlink_close_nest(&message, data);
    netlink_close_nest(&message, info);
    if (netlink_talk(&message, NULL, NULL, err) < 0) {
        return error_wrap(err, "cannot set no_linklocal_learn on bridge %d", index);
    }
    return 0;
}

int link_pin_mac(int port, const uint8_t mac[6], struct error *err)
{
    /* NUD_NOARP is what iproute2 calls "static"; the kernel refuses sticky together with permanent. */
    struct ndmsg body = {
        .ndm_family = PF_BRIDGE,
        .ndm_ifindex = port,
        .ndm_state = NUD_NOARP,
        .ndm_flags = NTF_MASTER | NTF_STICKY,
    };
    struct netlink_message message;
    netlink_begin(&message, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof(body));
    netlink_put(&message, NDA_LLADDR, mac, 6);
    if (netlink_talk(&message, NULL, NULL, err) < 0) {
        return error_wrap(err, "cannot pin the MAC of bridge port %d", port);
    }
    return 0;
}

void link_format_mac(const uint8_t mac[6], char ret_text[18])
{
    (void)snprintf(ret_text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

bool link_parse_mac(const char *text, uint8_t ret_mac[6])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t mac[6];
    if (text == NULL || strlen(text) != 17) {
        return false;
    }
    for (size_t i = 0; i < 6; i++) {
        const char *high = strchr(digits, text[3 * i] | 0x20);
        const char *low = strchr(digits, text[3 * i + 1] | 0x20);
        if (high == NULL || low == NULL || (i < 5 && text[3 * i + 2] != ':')) {
            return false;
        }
        mac[i] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    memcpy(ret_mac, mac, sizeof(mac));
    return true;
}
