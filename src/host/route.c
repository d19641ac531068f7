/* IPv4 addresses, routes and policy rules over rtnetlink, read only.
 * Feeds the choice of a subnet and the watcher's uplinks.
 * Not for interfaces: link.c. */
#include "host/route.h"

#include "base/memory.h"
#include "host/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

struct vector {
    char *items;
    size_t count;
};

static void append(struct vector *vector, const void *item, size_t size)
{
    vector->items = xreallocarray(vector->items, vector->count + 1, size);
    memcpy(vector->items + vector->count * size, item, size);
    vector->count++;
}

static uint32_t read_number(const struct rtattr *attribute, uint32_t fallback)
{
    uint32_t value = fallback;
    if (attribute != NULL && RTA_PAYLOAD(attribute) >= sizeof(value)) {
        memcpy(&value, RTA_DATA(attribute), sizeof(value));
    }
    return value;
}

static uint32_t read_address(const struct rtattr *attribute)
{
    return ntohl(read_number(attribute, 0));
}

static void take_address(const struct nlmsghdr *header, void *context)
{
    const struct ifaddrmsg *body = NLMSG_DATA(header);
    const struct rtattr *table[IFA_LOCAL + 1];
    if (header->nlmsg_type != RTM_NEWADDR) {
        return;
    }
    netlink_attributes(IFA_RTA(body), IFA_PAYLOAD(header), table, IFA_LOCAL);
    struct route_address address = {
        .link = (int)body->ifa_index,
        .prefix = body->ifa_prefixlen,
        .address = read_address(table[IFA_LOCAL] != NULL ? table[IFA_LOCAL] : table[IFA_ADDRESS]),
    };
    append(context, &address, sizeof(address));
}

static void take_next_hops(struct vector *vector, struct route_entry entry, const struct rtattr *multipath)
{
    const struct rtnexthop *hop = RTA_DATA(multipath);
    int left = (int)RTA_PAYLOAD(multipath);
    while (left >= (int)sizeof(*hop) && RTNH_OK(hop, left)) {
        const struct rtattr *table[RTA_GATEWAY + 1];
        netlink_attributes(RTNH_DATA(hop), hop->rtnh_len - RTNH_LENGTH(0), table, RTA_GATEWAY);
        entry.link = hop->rtnh_ifindex;
        entry.gateway = read_address(table[RTA_GATEWAY]);
        append(vector, &entry, sizeof(entry));
        left -= (int)RTNH_ALIGN(hop->rtnh_len);
        hop = RTNH_NEXT(hop);
    }
}

static void take_route(const struct nlmsghdr *header, void *context)
{
    const struct rtmsg *body = NLMSG_DATA(header);
    const struct rtattr *table[RTA_TABLE + 1];
    if (header->nlmsg_type != RTM_NEWROUTE || (body->rtm_flags & RTM_F_CLONED) != 0) {
        return;
    }
    netlink_attributes(RTM_RTA(body), RTM_PAYLOAD(header), table, RTA_TABLE);
    struct route_entry entry = {
        .table = read_number(table[RTA_TABLE], body->rtm_table),
        .destination = read_address(table[RTA_DST]),
        .prefix = body->rtm_dst_len,
        .type = body->rtm_type,
        .link = (int)read_number(table[RTA_OIF], 0),
        .gateway = read_address(table[RTA_GATEWAY]),
    };
    if (table[RTA_MULTIPATH] != NULL) {
        take_next_hops(context, entry, table[RTA_MULTIPATH]);
    } else {
        append(context, &entry, sizeof(entry));
    }
}

static void take_rule(const struct nlmsghdr *header, void *context)
{
    const struct fib_rule_hdr *body = NLMSG_DATA(header);
    const struct rtattr *table[FRA_TABLE + 1];
    if (header->nlmsg_type != RTM_NEWRULE) {
        return;
    }
    netlink_attributes((const char *)body + NLMSG_ALIGN(sizeof(*body)),
                       NLMSG_PAYLOAD(header, NLMSG_ALIGN(sizeof(*body))), table, FRA_TABLE);
    struct route_rule rule = {
        .table = read_number(table[FRA_TABLE], body->table),
        .priority = read_number(table[FRA_PRIORITY], 0),
        .source = read_address(table[FRA_SRC]),
        .source_prefix = body->src_len,
        .destination = read_address(table[FRA_DST]),
        .destination_prefix = body->dst_len,
    };
    append(context, &rule, sizeof(rule));
}

/* Asks for a dump, again and again while changes cut through it. */
static int dump(uint16_t type, const void *body, size_t length, netlink_handler *handler, struct vector *ret_vector,
                const char *what, struct error *err)
{
    for (int attempt = 0;; attempt++) {
        struct vector vector = {0};
        struct netlink_message message;
        CLEANUP(error_reset) struct error failure = {0};
        netlink_begin(&message, type, NLM_F_DUMP, body, length);
        if (netlink_talk(&message, handler, &vector, &failure) == 0) {
            *ret_vector = vector;
            return 0;
        }
        free(vector.items);
        if (failure.errnum != EINTR || attempt >= 20) {
            (void)error_move(err, &failure);
            return error_wrap(err, "cannot list the %s", what);
        }
    }
}

int route_addresses(struct route_address **ret_addresses, size_t *ret_count, struct error *err)
{
    struct ifaddrmsg body = {.ifa_family = AF_INET};
    struct vector vector;
    if (dump(RTM_GETADDR, &body, sizeof(body), take_address, &vector, "addresses", err) < 0) {
        return -1;
    }
    *ret_addresses = (struct route_address *)(void *)vector.items;
    *ret_count = vector.count;
    return 0;
}

int route_entries(struct route_entry **ret_entries, size_t *ret_count, struct error *err)
{
    struct rtmsg body = {.rtm_family = AF_INET};
    struct vector vector;
    if (dump(RTM_GETROUTE, &body, sizeof(body), take_route, &vector, "routes", err) < 0) {
        return -1;
    }
    *ret_entries = (struct route_entry *)(void *)vector.items;
    *ret_count = vector.count;
    return 0;
}

int route_rules(struct route_rule **ret_rules, size_t *ret_count, struct error *err)
{
    struct fib_rule_hdr body = {.family = AF_INET};
    struct vector vector;
    if (dump(RTM_GETRULE, &body, sizeof(body), take_rule, &vector, "policy rules", err) < 0) {
        return -1;
    }
    *ret_rules = (struct route_rule *)(void *)vector.items;
    *ret_count = vector.count;
    return 0;
}
