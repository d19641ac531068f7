/* Asks the kernel for its links, addresses and routes.
 * It only reads; what changes them for an attack is in ipv6.c.
 */
#include "netdump.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct endpoint endpoint_of(int family, const struct rtattr *attribute)
{
    if (family == AF_INET && RTA_PAYLOAD(attribute) >= 4) {
        return endpoint_from_v4(RTA_DATA(attribute));
    }
    if (family == AF_INET6 && RTA_PAYLOAD(attribute) >= 16) {
        return endpoint_from_v6(RTA_DATA(attribute));
    }
    return (struct endpoint){0};
}

static uint32_t number_of(const struct rtattr *attribute)
{
    uint32_t number = 0;

    memcpy(&number, RTA_DATA(attribute), RTA_PAYLOAD(attribute) < 4 ? RTA_PAYLOAD(attribute) : 4);
    return number;
}

static void take_link(struct netdump *dump, const struct nlmsghdr *message)
{
    const struct ifinfomsg *info = NLMSG_DATA(message);
    int left = (int)IFLA_PAYLOAD(message);

    if (dump->link_count == NETDUMP_LINKS) {
        dump->left_out = true;
        return;
    }
    struct netdump_link *link = &dump->links[dump->link_count++];
    link->index = (unsigned)info->ifi_index;
    link->up = info->ifi_flags & IFF_UP;
    link->carrier = info->ifi_flags & IFF_LOWER_UP;
    link->loopback = info->ifi_flags & IFF_LOOPBACK;
    for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFLA_IFNAME) {
            (void)snprintf(link->name, sizeof(link->name), "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
        } else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) == 6 && info->ifi_type == ARPHRD_ETHER) {
            memcpy(link->mac, RTA_DATA(a), 6);
            link->has_mac = true;
        } else if (a->rta_type == IFLA_MTU) {
            link->mtu = number_of(a);
        }
    }
}

static void take_address(struct netdump *dump, const struct nlmsghdr *message)
{
    const struct ifaddrmsg *info = NLMSG_DATA(message);
    int left = (int)IFA_PAYLOAD(message);
    struct endpoint found = {0};

    if (dump->address_count == NETDUMP_ADDRESSES) {
        dump->left_out = true;
        return;
    }
    for (const struct rtattr *a = IFA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        /* On a point-to-point link IFA_ADDRESS is the peer's, IFA_LOCAL ours. */
        if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !found.family)) {
            found = endpoint_of(info->ifa_family, a);
        }
    }
    if (found.family) {
        dump->addresses[dump->address_count++] =
            (struct netdump_address){.index = info->ifa_index, .address = found, .prefix = info->ifa_prefixlen};
    }
}

static void take_route(struct netdump *dump, const struct nlmsghdr *message)
{
    const struct rtmsg *info = NLMSG_DATA(message);
    int left = (int)RTM_PAYLOAD(message);
    bool told = info->rtm_type == RTN_UNICAST || info->rtm_type == RTN_BLACKHOLE || info->rtm_type == RTN_UNREACHABLE ||
                info->rtm_type == RTN_PROHIBIT;

    if (!told || info->rtm_flags & RTM_F_CLONED || info->rtm_table == RT_TABLE_LOCAL) {
        return;
    }
    if (dump->route_count == NETDUMP_ROUTES) {
        dump->left_out = true;
        return;
    }
    struct netdump_route *route = &dump->routes[dump->route_count++];
    *route = (struct netdump_route){.table = info->rtm_table, .prefix = info->rtm_dst_len, .type = info->rtm_type};
    route->destination.family = info->rtm_family;
    for (const struct rtattr *a = RTM_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        switch (a->rta_type) {
        case RTA_DST:
            route->destination = endpoint_of(info->rtm_family, a);
            break;
        case RTA_GATEWAY:
            route->gateway = endpoint_of(info->rtm_family, a);
            break;
        case RTA_PREFSRC:
            route->source = endpoint_of(info->rtm_family, a);
            break;
        case RTA_OIF:
            route->index = number_of(a);
            break;
        case RTA_TABLE:
            route->table = number_of(a);
            break;
        case RTA_PRIORITY:
            route->metric = number_of(a);
            break;
        default:
            break;
        }
    }
}

/* One dump: 1 when its end was seen, 0 for more to come, -1 with errno. */
static int take_messages(struct netdump *dump, const char *buffer, size_t size)
{
    unsigned left = (unsigned)size;

    for (const struct nlmsghdr *m = (const struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
        switch (m->nlmsg_type) {
        case NLMSG_DONE:
            return 1;
        case NLMSG_ERROR:
            errno = -((const struct nlmsgerr *)NLMSG_DATA(m))->error;
            return -1;
        case RTM_NEWLINK:
            take_link(dump, m);
            break;
        case RTM_NEWADDR:
            take_address(dump, m);
            break;
        case RTM_NEWROUTE:
            take_route(dump, m);
            break;
        default:
            break;
        }
    }
    return 0;
}

static int dump_of(int fd, uint16_t type, struct netdump *dump)
{
    struct {
        struct nlmsghdr header;
        struct rtgenmsg family;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = type,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                   .nlmsg_seq = type},
        .family = {.rtgen_family = AF_UNSPEC},
    };
    char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
    int done = 0;

    if (send(fd, &question, sizeof(question), 0) < 0) {
        return -1;
    }
    while (done == 0) {
        ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
        if (size <= 0) {
            return -1;
        }
        done = take_messages(dump, buffer, (size_t)size);
    }
    return done < 0 ? -1 : 0;
}

int netdump_read(struct netdump *ret_dump, struct outcome *outcome)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int failed;

    if (fd < 0) {
        return outcome_fail(outcome, errno, "opening rtnetlink");
    }
    memset(ret_dump, 0, sizeof(*ret_dump));
    failed = dump_of(fd, RTM_GETLINK, ret_dump) < 0 || dump_of(fd, RTM_GETADDR, ret_dump) < 0 ||
             dump_of(fd, RTM_GETROUTE, ret_dump) < 0;
    int saved = errno;
    (void)close(fd);
    return failed ? outcome_fail(outcome, saved, "asking the kernel for links, addresses and routes") : 0;
}

const struct netdump_link *netdump_link_named(const struct netdump *dump, const char *name)
{
    for (size_t i = 0; i < dump->link_count; i++) {
        if (strcmp(dump->links[i].name, name) == 0) {
            return &dump->links[i];
        }
    }
    return NULL;
}

const struct netdump_link *netdump_link_at(const struct netdump *dump, unsigned index)
{
    for (size_t i = 0; i < dump->link_count; i++) {
        if (dump->links[i].index == index) {
            return &dump->links[i];
        }
    }
    return NULL;
}

const struct netdump_route *netdump_default_route(const struct netdump *dump, unsigned index)
{
    const struct netdump_route *best = NULL;

    for (size_t i = 0; i < dump->route_count; i++) {
        const struct netdump_route *route = &dump->routes[i];
        if (route->destination.family == AF_INET && route->prefix == 0 && route->type == RTN_UNICAST &&
            route->table == RT_TABLE_MAIN && (index == 0 || route->index == index) &&
            (!best || route->metric < best->metric)) {
            best = route;
        }
    }
    return best;
}

const struct netdump_link *netdump_main_link(const struct netdump *dump)
{
    const struct netdump_route *route = netdump_default_route(dump, 0);
    const struct netdump_link *link = route ? netdump_link_at(dump, route->index) : NULL;

    for (size_t i = 0; !link && i < dump->link_count; i++) {
        if (dump->links[i].has_mac && dump->links[i].up && !dump->links[i].loopback) {
            link = &dump->links[i];
        }
    }
    return link;
}

const struct netdump_address *netdump_address_on(const struct netdump *dump, unsigned index, int family)
{
    for (size_t i = 0; i < dump->address_count; i++) {
        if (dump->addresses[i].index == index && dump->addresses[i].address.family == family) {
            return &dump->addresses[i];
        }
    }
    return NULL;
}

bool netdump_is_own_address(const struct netdump *dump, const struct endpoint *address)
{
    for (size_t i = 0; i < dump->address_count; i++) {
        if (endpoint_same_address(&dump->addresses[i].address, address)) {
            return true;
        }
    }
    return false;
}
