/* The watcher: facts in, walls out. It holds no opinion of its own: plan.c judges, ruleset.c words, rulecheck.c
 * compares. Level-triggered: an event only says that the facts must be read again, so a lost one costs time and nothing
 * else. Not for the daemon: it works before incusd runs and never asks it. */
#include "stack/watch.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/netlink.h"
#include "host/nft.h"
#include "host/systemd.h"
#include "stack/arm.h"
#include "stack/bridge.h"
#include "stack/names.h"
#include "stack/plan.h"
#include "stack/rulecheck.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Kernel parameters change without an event, so everything is read again this often; and this soon after a failure. */
#define CHECK_MS 15000
#define RETRY_MS 1000

struct watcher {
    struct narrator *narrator;
    struct nft *owner;  /* makes the owned copy and must not be closed; only for loading */
    struct nft *reader; /* a broken dump may cost a handle its socket: reading goes through this one */
    bool with_owned;
    bool bridge_meta;

    struct ruleset loaded; /* what was last put into the kernel */
    struct rulecheck checks[2];
    bool has_loaded;
    struct arm_port *ports; /* as published */
    size_t port_count;

    int bridge; /* index of boxnet, 0: none */
    bool facts_dirty, rules_dirty;
    bool heard_rules, heard_filters; /* in the transaction whose end is still to come */
    char culprit[64];                /* who changed our rules */
};

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- loading ---- */

static int load_rules(struct watcher *watcher, const struct ruleset *ruleset, enum ruleset_copy copy, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    ruleset_write(ruleset, copy, &text);
    if (nft_apply(watcher->owner, text.data, err) < 0) {
        return error_wrap(err, "cannot load the tables %s", ruleset_table(copy));
    }
    return 0;
}

static size_t copies(const struct watcher *watcher)
{
    return watcher->with_owned ? 2 : 1;
}

/* Other rules than before: both copies anew, and the references they are compared with. */
static int replace_rules(struct watcher *watcher, const struct ruleset *ruleset, struct error *err)
{
    for (size_t copy = 0; copy < copies(watcher); copy++) {
        if (load_rules(watcher, ruleset, copy, err) < 0) {
            return -1;
        }
        rulecheck_reset(&watcher->checks[copy]);
        if (rulecheck_expect(ruleset, copy, &watcher->checks[copy], err) < 0) {
            return -1;
        }
    }
    char subnet[SUBNET_TEXT];
    subnet_format(ruleset->subnet, subnet);
    narrate_note(watcher->narrator, "loaded the walls for " STACK_NETWORK " (%s)",
                 ruleset->has_subnet ? subnet : "no address yet: nothing passes");
    return 0;
}

static int replace_elements(struct watcher *watcher, const struct ruleset *ruleset, const bool damaged[2],
                            struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    for (size_t copy = 0; copy < copies(watcher); copy++) {
        if (!damaged[copy]) {
            ruleset_write_elements(ruleset, copy, &text);
        }
    }
    return text.length > 0 ? nft_apply(watcher->owner, text.data, err) : 0;
}

/* Somebody else's transaction touched our tables, or the time for a check has come: whatever is not as we left it is
 * loaded anew, with the facts of now. */
static int restore_rules(struct watcher *watcher, const struct ruleset *ruleset, bool ret_damaged[2], struct error *err)
{
    for (size_t copy = 0; copy < copies(watcher); copy++) {
        CLEANUP(freep) char *difference = NULL;
        if (rulecheck_compare(watcher->reader, &watcher->checks[copy], &watcher->loaded, copy, &difference, err) < 0) {
            return -1;
        }
        ret_damaged[copy] = difference != NULL;
        if (difference == NULL) {
            continue;
        }
        if (load_rules(watcher, ruleset, copy, err) < 0) {
            return -1;
        }
        narrate_warn(watcher->narrator, "loaded the tables %s again after %s: %s", ruleset_table(copy),
                     watcher->culprit[0] != '\0' ? watcher->culprit : "a change by somebody unknown", difference);
    }
    return 0;
}

/* What is loaded counts as unknown until all of it succeeded, so that a failure ends in a full load. */
static int load(struct watcher *watcher, struct ruleset *ruleset, struct error *err)
{
    bool check = watcher->rules_dirty;
    bool anew = !watcher->has_loaded || !ruleset_same_rules(&watcher->loaded, ruleset);
    bool damaged[2] = {false, false};
    watcher->rules_dirty = false;
    watcher->has_loaded = false;
    if (anew) {
        if (replace_rules(watcher, ruleset, err) < 0) {
            return -1;
        }
    } else {
        if (check && restore_rules(watcher, ruleset, damaged, err) < 0) {
            return -1;
        }
        if (!ruleset_same_elements(&watcher->loaded, ruleset) && replace_elements(watcher, ruleset, damaged, err) < 0) {
            return -1;
        }
    }
    watcher->has_loaded = true;
    watcher->culprit[0] = '\0';
    ruleset_reset(&watcher->loaded);
    watcher->loaded = *ruleset;
    *ruleset = (struct ruleset){0};
    return 0;
}

/* ---- ports ---- */

/* Every port of boxnet is isolated and learns nothing, armed or not: what Incus sets a moment later, or what somebody
 * switched off. The facts are corrected in place, for the kernel acknowledged the change. */
static int isolate_ports(struct watcher *watcher, struct plan_facts *facts, struct error *err)
{
    for (size_t i = 0; i < facts->link_count; i++) {
        struct link *link = &facts->links[i];
        if (!link->bridge_port || link->master != facts->bridge->index || (link->isolated && !link->learning)) {
            continue;
        }
        CLEANUP(error_reset) struct error failure = {0};
        if (link_set_port(link->index, true, false, &failure) < 0) {
            if (failure.code == ERR_NOT_FOUND) {
                continue; /* gone meanwhile */
            }
            return error_move(err, &failure);
        }
        for (size_t k = 0; k < watcher->port_count; k++) {
            if (watcher->ports[k].armed && strcmp(watcher->ports[k].interface, link->name) == 0) {
                narrate_warn(watcher->narrator, "port %s had lost its %s: set again", link->name,
                             link->isolated ? "switched-off learning" : "isolation");
            }
        }
        link->isolated = true;
        link->learning = false;
    }
    return 0;
}

/* A port whose MAC cannot be pinned is not armed: its neighbours could be robbed of their frames. */
static void pin_ports(struct watcher *watcher, struct plan *plan)
{
    for (size_t i = 0; i < plan->port_count; i++) {
        struct plan_port *port = &plan->ports[i];
        CLEANUP(error_reset) struct error failure = {0};
        if (port->armed && link_pin_mac(port->link->index, port->filter->mac, &failure) < 0) {
            port->armed = false;
            (void)snprintf(port->reason, sizeof(port->reason), "%s", failure.message);
        }
    }
}

static const struct arm_port *find_port(const struct arm_port *ports, size_t count, const char *interface)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ports[i].interface, interface) == 0) {
            return &ports[i];
        }
    }
    return NULL;
}

static void tell_changes(struct watcher *watcher, const struct arm_port *ports, size_t count, int64_t since)
{
    for (size_t i = 0; i < count; i++) {
        const struct arm_port *before = find_port(watcher->ports, watcher->port_count, ports[i].interface);
        bool was_armed = before != NULL && before->armed;
        if (ports[i].armed && !was_armed) {
            narrate_note(watcher->narrator, "armed %s (%s, %s) in %.1f ms", ports[i].interface, ports[i].mac,
                         ports[i].address, (double)(now_us() - since) / 1000);
        } else if (!ports[i].armed && (before == NULL || was_armed || strcmp(before->reason, ports[i].reason) != 0)) {
            narrate_warn(watcher->narrator, "%s %s: %s", was_armed ? "disarmed" : "not arming", ports[i].interface,
                         ports[i].reason);
        }
    }
    for (size_t i = 0; i < watcher->port_count; i++) {
        if (watcher->ports[i].armed && find_port(ports, count, watcher->ports[i].interface) == NULL) {
            narrate_note(watcher->narrator, "%s is gone", watcher->ports[i].interface);
        }
    }
}

static int publish(struct watcher *watcher, const struct plan *plan, int64_t since, struct error *err)
{
    CLEANUP(freep) struct arm_port *ports = plan_publish(plan);
    bool same = watcher->ports != NULL && plan->port_count == watcher->port_count &&
                memcmp(ports, watcher->ports, plan->port_count * sizeof(*ports)) == 0;
    if (same) {
        return 0;
    }
    tell_changes(watcher, ports, plan->port_count, since);
    if (arm_publish(ports, plan->port_count, err) < 0) {
        return -1;
    }
    free(watcher->ports);
    watcher->ports = steal(&ports);
    watcher->port_count = plan->port_count;
    return 0;
}

/* Reads the facts and makes the kernel agree with them. */
static int reconcile(struct watcher *watcher, struct error *err)
{
    CLEANUP(plan_facts_reset) struct plan_facts facts = {0};
    CLEANUP(plan_reset) struct plan plan = {0};
    CLEANUP(ruleset_reset) struct ruleset ruleset = {0};
    int64_t since = now_us();
    watcher->facts_dirty = false;
    if (plan_read(watcher->reader, &facts, err) < 0) {
        return -1;
    }
    if (facts.bridge != NULL) {
        CLEANUP(error_reset) struct error failure = {0};
        if (isolate_ports(watcher, &facts, err) < 0) {
            return -1;
        }
        /* Not at each port's arrival: parameters change without an event anyway. */
        if ((watcher->rules_dirty || !watcher->has_loaded || facts.bridge->index != watcher->bridge ||
             facts.bridge->linklocal_learn) &&
            bridge_converge(facts.bridge, watcher->narrator, &failure) < 0 && failure.code != ERR_NOT_FOUND) {
            return error_move(err, &failure);
        }
    }
    watcher->bridge = facts.bridge != NULL ? facts.bridge->index : 0;
    plan_make(&facts, &plan);
    pin_ports(watcher, &plan);
    plan_ruleset(&facts, &plan, watcher->bridge_meta, &ruleset);
    if (load(watcher, &ruleset, err) < 0) {
        return -1;
    }
    return publish(watcher, &plan, since, err);
}

/* ---- events ---- */

static void hear_route(const struct nlmsghdr *header, void *context)
{
    struct watcher *watcher = context;
    switch (header->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
    case RTM_NEWADDR:
    case RTM_DELADDR:
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
        watcher->facts_dirty = true;
        break;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH: {
        const struct ndmsg *body = NLMSG_DATA(header);
        const struct rtattr *table[NDA_MASTER + 1];
        int master = 0;
        if (body->ndm_family != AF_BRIDGE) {
            break;
        }
        netlink_attributes((const char *)body + NLMSG_ALIGN(sizeof(*body)), NLMSG_PAYLOAD(header, sizeof(*body)), table,
                           NDA_MASTER);
        if (table[NDA_MASTER] != NULL) {
            memcpy(&master, RTA_DATA(table[NDA_MASTER]), sizeof(master));
        }
        watcher->facts_dirty |= master != 0 && master == watcher->bridge;
        break;
    }
    default:
        break;
    }
}

/* Every message of nftables but the end of a transaction carries its table's name as the first attribute. */
static void hear_object(struct watcher *watcher, const struct nfgenmsg *body, const struct rtattr *name)
{
    if (name == NULL) {
        return;
    }
    const char *text = RTA_DATA(name);
    size_t length = strnlen(text, RTA_PAYLOAD(name));
    for (size_t copy = 0; copy < 2; copy++) {
        const char *ours = ruleset_table(copy);
        watcher->heard_rules |= length == strlen(ours) && memcmp(text, ours, length) == 0;
    }
    watcher->heard_filters |=
        body->nfgen_family == NFPROTO_BRIDGE && length == strlen("incus") && memcmp(text, "incus", length) == 0;
}

static void hear_end(struct watcher *watcher, const struct rtattr *const *table)
{
    uint32_t pid = 0;
    const struct rtattr *name = table[NFTA_GEN_PROC_NAME];
    if (table[NFTA_GEN_PROC_PID] != NULL && RTA_PAYLOAD(table[NFTA_GEN_PROC_PID]) >= sizeof(pid)) {
        memcpy(&pid, RTA_DATA(table[NFTA_GEN_PROC_PID]), sizeof(pid));
        pid = ntohl(pid);
    }
    watcher->facts_dirty |= watcher->heard_filters;
    if (watcher->heard_rules && pid != (uint32_t)getpid()) {
        watcher->rules_dirty = true;
        (void)snprintf(watcher->culprit, sizeof(watcher->culprit), "a change by %.*s (process %u)",
                       name != NULL ? (int)strnlen(RTA_DATA(name), RTA_PAYLOAD(name)) : 0,
                       name != NULL ? (const char *)RTA_DATA(name) : "", pid);
    }
    watcher->heard_rules = false;
    watcher->heard_filters = false;
}

static void hear_nftables(const struct nlmsghdr *header, void *context)
{
    struct watcher *watcher = context;
    const struct rtattr *table[NFTA_GEN_PROC_NAME + 1];
    if (header->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || header->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg))) {
        return;
    }
    const struct nfgenmsg *body = NLMSG_DATA(header);
    netlink_attributes((const char *)body + NLMSG_ALIGN(sizeof(*body)), NLMSG_PAYLOAD(header, sizeof(*body)), table,
                       NFTA_GEN_PROC_NAME);
    if ((header->nlmsg_type & 0xff) == NFT_MSG_NEWGEN) {
        hear_end(watcher, table);
    } else {
        hear_object(watcher, body, table[1]);
    }
}

/* Drains a socket. Where the kernel had to drop events, everything may have changed. */
static int drain(int fd, netlink_handler *handler, struct watcher *watcher, struct error *err)
{
    for (;;) {
        CLEANUP(error_reset) struct error failure = {0};
        int got = netlink_hear(fd, handler, watcher, &failure);
        if (got == 0) {
            return 0;
        }
        if (got < 0 && failure.errnum != ENOBUFS) {
            return error_move(err, &failure);
        }
        if (got < 0) {
            watcher->facts_dirty = true;
            watcher->rules_dirty = true;
        }
    }
}

static int subscribe(int *ret_route, int *ret_nftables, struct error *err)
{
    static const unsigned groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_NEIGH};
    CLEANUP(fd_closep) int route = -1;
    CLEANUP(fd_closep) int nftables = -1;
    if (netlink_open(NETLINK_ROUTE, &route, err) < 0 || netlink_open(NETLINK_NETFILTER, &nftables, err) < 0 ||
        netlink_subscribe(nftables, NFNLGRP_NFTABLES, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
        if (netlink_subscribe(route, groups[i], err) < 0) {
            return -1;
        }
    }
    *ret_route = route;
    *ret_nftables = nftables;
    route = -1;
    nftables = -1;
    return 0;
}

static int follow_events(struct watcher *watcher, int route, int nftables, struct error *err)
{
    int timeout = CHECK_MS;
    while (!cancel_requested()) {
        struct pollfd polled[3] = {
            {.fd = route, .events = POLLIN},
            {.fd = nftables, .events = POLLIN},
            {.fd = cancel_fd(), .events = POLLIN},
        };
        int ready = poll(polled, ARRAY_LENGTH(polled), timeout);
        if (ready < 0 && errno != EINTR) {
            return error_set_errno(err, errno, "cannot wait for events");
        }
        if (ready == 0) {
            watcher->facts_dirty = true;
            watcher->rules_dirty = true;
        }
        if (drain(route, hear_route, watcher, err) < 0 || drain(nftables, hear_nftables, watcher, err) < 0) {
            return -1;
        }
        timeout = CHECK_MS;
        CLEANUP(error_reset) struct error failure = {0};
        if ((watcher->facts_dirty || watcher->rules_dirty) && reconcile(watcher, &failure) < 0) {
            narrate_warn(watcher->narrator, "%s; trying again", failure.message);
            timeout = RETRY_MS;
        }
    }
    return 0;
}

/* ---- life ---- */

static void watcher_reset(struct watcher *watcher)
{
    nft_close(watcher->owner);
    nft_close(watcher->reader);
    ruleset_reset(&watcher->loaded);
    rulecheck_reset(&watcher->checks[0]);
    rulecheck_reset(&watcher->checks[1]);
    free(watcher->ports);
}

static int need_root(struct error *err)
{
    if (geteuid() != 0) {
        (void)error_set(err, ERR_DENIED, "only root may change the host's firewall");
        return error_remedy(err, "run it with sudo");
    }
    return 0;
}

int watch_run(struct narrator *narrator, struct error *err)
{
    CLEANUP(watcher_reset) struct watcher watcher = {.narrator = narrator, .with_owned = true};
    CLEANUP(fd_closep) int lock = -1;
    CLEANUP(fd_closep) int route = -1;
    CLEANUP(fd_closep) int nftables = -1;
    if (need_root(err) < 0 || arm_lock(&lock, err) < 0 || nft_open(&watcher.owner, err) < 0 ||
        nft_open(&watcher.reader, err) < 0 || rulecheck_probe_bridge_meta(&watcher.bridge_meta, err) < 0) {
        return -1;
    }
    /* Subscribed before the first look, so that nothing falls between the two. */
    if (subscribe(&route, &nftables, err) < 0 || reconcile(&watcher, err) < 0) {
        return -1;
    }
    narrate_note(narrator, "watching");
    systemd_notify("READY=1");
    if (follow_events(&watcher, route, nftables, err) < 0) {
        return -1;
    }
    narrate_note(narrator, "ending on request; the static tables stay, no new port is armed");
    return 0;
}

int watch_apply(struct narrator *narrator, struct error *err)
{
    CLEANUP(watcher_reset) struct watcher watcher = {.narrator = narrator};
    CLEANUP(plan_facts_reset) struct plan_facts facts = {0};
    CLEANUP(plan_reset) struct plan plan = {0};
    CLEANUP(ruleset_reset) struct ruleset ruleset = {0};
    if (need_root(err) < 0 || nft_open(&watcher.owner, err) < 0 || nft_open(&watcher.reader, err) < 0 ||
        rulecheck_probe_bridge_meta(&watcher.bridge_meta, err) < 0 || plan_read(watcher.reader, &facts, err) < 0) {
        return -1;
    }
    if (facts.bridge != NULL &&
        (isolate_ports(&watcher, &facts, err) < 0 || bridge_converge(facts.bridge, narrator, err) < 0)) {
        return -1;
    }
    plan_make(&facts, &plan);
    pin_ports(&watcher, &plan);
    plan_ruleset(&facts, &plan, watcher.bridge_meta, &ruleset);
    return load(&watcher, &ruleset, err);
}
