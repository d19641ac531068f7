/* Decides which ports of boxnet may speak, and what the rules are made of.
 * plan_make() is pure: facts in, verdicts out; everything that can go wrong with a port is a reason here.
 * Not for acting on it: watch.c. */
#include "stack/plan.h"

#include "base/memory.h"
#include "base/text.h"
#include "host/route.h"
#include "stack/names.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_address(struct plan_facts *facts, struct error *err)
{
    CLEANUP(freep) struct route_address *addresses = NULL;
    size_t count = 0;
    if (route_addresses(&addresses, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count && !facts->has_address; i++) {
        if (facts->bridge != NULL && addresses[i].link == facts->bridge->index && addresses[i].prefix <= 30) {
            facts->has_address = true;
            facts->gateway = addresses[i].address;
            facts->prefix = addresses[i].prefix;
        }
    }
    return 0;
}

static const char *name_of(const struct plan_facts *facts, int index)
{
    for (size_t i = 0; i < facts->link_count; i++) {
        if (facts->links[i].index == index) {
            return facts->links[i].name;
        }
    }
    return NULL;
}

static bool has_uplink(const struct plan_facts *facts, const struct ruleset_uplink *uplink)
{
    for (size_t i = 0; i < facts->uplink_count; i++) {
        if (memcmp(&facts->uplinks[i], uplink, sizeof(*uplink)) == 0) {
            return true;
        }
    }
    return false;
}

static int compare_uplinks(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ruleset_uplink));
}

/* Default routes of every table: a VPN keeps its own in a table of its own. A pair of half-internet routes is the other
 * way in which a VPN writes a default route. */
static int read_uplinks(struct plan_facts *facts, struct error *err)
{
    CLEANUP(freep) struct route_entry *entries = NULL;
    size_t count = 0;
    if (route_entries(&entries, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(facts, entries[i].link);
        if (entries[i].prefix > 1 || entries[i].type != RTN_UNICAST || name == NULL ||
            text_equal(name, STACK_NETWORK)) {
            continue;
        }
        struct ruleset_uplink uplink = {.gateway = entries[i].gateway};
        memcpy(uplink.interface, name, strlen(name));
        if (!has_uplink(facts, &uplink)) {
            facts->uplinks = xreallocarray(facts->uplinks, facts->uplink_count + 1, sizeof(*facts->uplinks));
            facts->uplinks[facts->uplink_count++] = uplink;
        }
    }
    if (facts->uplink_count > 1) {
        qsort(facts->uplinks, facts->uplink_count, sizeof(*facts->uplinks), compare_uplinks);
    }
    return 0;
}

int plan_read(struct nft *nft, struct plan_facts *ret_facts, struct error *err)
{
    CLEANUP(plan_facts_reset) struct plan_facts facts = {0};
    if (link_list(&facts.links, &facts.link_count, err) < 0) {
        return -1;
    }
    const struct link *bridge = link_find(facts.links, facts.link_count, STACK_NETWORK);
    facts.bridge = bridge != NULL && text_equal(bridge->kind, "bridge") ? bridge : NULL;
    if (read_address(&facts, err) < 0 || read_uplinks(&facts, err) < 0 ||
        filter_read(nft, &facts.filters, &facts.filter_count, err) < 0) {
        return -1;
    }
    *ret_facts = facts;
    facts = (struct plan_facts){0};
    return 0;
}

void plan_facts_reset(struct plan_facts *facts)
{
    free(facts->links);
    free(facts->filters);
    free(facts->uplinks);
    *facts = (struct plan_facts){0};
}

static void refuse(struct plan_port *port, const char *format, ...) PRINTF_LIKE(2, 3);
static void refuse(struct plan_port *port, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(port->reason, sizeof(port->reason), format, arguments);
    va_end(arguments);
}

/* What the daemon sometimes leaves behind of a guest that is gone: the port, its filters, and the guest's end back in the
 * host's namespace, without carrier. A port that is about to get its guest looks the same, so a ghost is only one beside
 * a port that has carrier. A guest cannot make its own port look like that. */
static bool is_ghost_beside(const struct link *other, const struct link *port)
{
    return port->carrier && !other->carrier && other->peer_here;
}

/* Names the port that has the same MAC or address. Two claimants are both refused: neither can be believed. */
static bool find_twin(const struct plan *plan, struct plan_port *port)
{
    for (size_t i = 0; i < plan->port_count; i++) {
        const struct plan_port *other = &plan->ports[i];
        if (other == port || other->filter == NULL || is_ghost_beside(other->link, port->link)) {
            continue;
        }
        if (memcmp(other->filter->mac, port->filter->mac, sizeof(port->filter->mac)) == 0) {
            refuse(port, "its MAC is that of %s too", other->link->name);
            return true;
        }
        if (other->filter->has_address && other->filter->address == port->filter->address) {
            refuse(port, "its address is that of %s too", other->link->name);
            return true;
        }
    }
    return false;
}

static void judge(const struct plan_facts *facts, const struct plan *plan, struct plan_port *port)
{
    const struct filter *filter = port->filter;
    struct subnet subnet = subnet_around(facts->gateway, facts->prefix);
    if (filter == NULL || !filter->has_mac || !filter->mac_live) {
        refuse(port, "its MAC filter (security.mac_filtering) is not live in the kernel");
    } else if (!filter->has_address || !filter->address_live) {
        refuse(port, "its address filter (security.ipv4_filtering) is not live in the kernel");
    } else if (!port->link->isolated) {
        refuse(port, "it is not isolated");
    } else if (!facts->has_address) {
        refuse(port, STACK_NETWORK " has no address");
    } else if (!subnet_contains(subnet, filter->address) || filter->address == facts->gateway ||
               filter->address == subnet.base || filter->address == subnet_broadcast(subnet)) {
        refuse(port, "its address is none of a box in " STACK_NETWORK);
    } else if (memcmp(filter->mac, facts->bridge->mac, sizeof(filter->mac)) == 0) {
        refuse(port, "its MAC is that of " STACK_NETWORK " itself");
    } else if ((filter->mac[0] & 1) != 0) {
        refuse(port, "its MAC is a group address");
    } else if (!find_twin(plan, port)) {
        port->armed = true;
    }
}

void plan_make(const struct plan_facts *facts, struct plan *ret_plan)
{
    struct plan plan = {.ports = xcalloc(facts->link_count + 1, sizeof(*plan.ports))};
    for (size_t i = 0; i < facts->link_count; i++) {
        const struct link *link = &facts->links[i];
        if (facts->bridge != NULL && link->bridge_port && link->master == facts->bridge->index) {
            plan.ports[plan.port_count++] = (struct plan_port){
                .link = link,
                .filter = filter_find(facts->filters, facts->filter_count, link->name),
            };
        }
    }
    for (size_t i = 0; i < plan.port_count; i++) {
        judge(facts, &plan, &plan.ports[i]);
    }
    *ret_plan = plan;
}

void plan_ruleset(const struct plan_facts *facts, const struct plan *plan, bool bridge_meta,
                  struct ruleset *ret_ruleset)
{
    struct ruleset ruleset = {
        .has_subnet = facts->has_address,
        .gateway = facts->gateway,
        .subnet = subnet_around(facts->gateway, facts->prefix),
        .bridge_meta = bridge_meta,
        .members = xcalloc(plan->port_count + 1, sizeof(*ruleset.members)),
        .ports = xcalloc(plan->port_count + 1, sizeof(*ruleset.ports)),
        .uplinks = xcalloc(facts->uplink_count + 1, sizeof(*ruleset.uplinks)),
        .uplink_count = facts->uplink_count,
    };
    for (size_t i = 0; i < plan->port_count; i++) {
        const struct plan_port *port = &plan->ports[i];
        ruleset.members[ruleset.member_count++] = port->link->index;
        if (port->armed) {
            struct ruleset_port *armed = &ruleset.ports[ruleset.port_count++];
            armed->index = port->link->index;
            armed->address = port->filter->address;
            memcpy(armed->mac, port->filter->mac, sizeof(armed->mac));
        }
    }
    for (size_t i = 0; i < facts->uplink_count; i++) {
        ruleset.uplinks[i] = facts->uplinks[i];
    }
    *ret_ruleset = ruleset;
}

void plan_reset(struct plan *plan)
{
    free(plan->ports);
    *plan = (struct plan){0};
}

struct arm_port *plan_publish(const struct plan *plan)
{
    struct arm_port *ports = xcalloc(plan->port_count + 1, sizeof(*ports));
    for (size_t i = 0; i < plan->port_count; i++) {
        const struct plan_port *port = &plan->ports[i];
        memcpy(ports[i].interface, port->link->name, sizeof(ports[i].interface));
        memcpy(ports[i].reason, port->reason, sizeof(ports[i].reason));
        ports[i].armed = port->armed;
        if (port->filter != NULL && port->filter->has_mac) {
            link_format_mac(port->filter->mac, ports[i].mac);
        }
        if (port->filter != NULL && port->filter->has_address) {
            char address[SUBNET_TEXT];
            subnet_format_address(port->filter->address, address);
            memcpy(ports[i].address, address, sizeof(ports[i].address));
        }
    }
    return ports;
}
