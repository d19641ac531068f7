/* Attacks of several steps: victims that talk meanwhile, answers that are counted, names that are looked into.
 * Not for: attacks that one probe and one control tell; those are rows alone. What disturbs the whole network is in
 * havoc.c. */
#include "drill/siege.h"

#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "drill/havoc.h"
#include "drill/restricted.h"
#include "drill/siegecraft.h"

#include <string.h>

/* The baseline --------------------------------------------------------------------------------------------------------
 */

static void siege_address(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply reply = {0};
    const char *ip = ground_fact(trial->ground, "box.ip");
    const char *peer = ground_fact(trial->ground, "peer.ip");

    if (!ip) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the box has no lease");
        return;
    }
    if (!siegecraft_probe(trial, "attack", "box: interfaces", &reply)) {
        return;
    }
    CLEANUP(freep) char *text = json_write(reply.evidence, 0);
    CLEANUP(freep) char *quoted = xasprintf("\"%s\"", ip);
    if (text_equal(ip, peer)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the box has the address of its sibling: nothing can be told apart");
    } else if (!strstr(text, quoted)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the lease says %s, and no interface of the box holds it", ip);
    } else {
        trial_say(trial, VERDICT_HOLDS, "it holds %s", ip);
    }
}

static void siege_instrument(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply refused = {0};

    if (!siegecraft_probe(trial, "attack", "box: connect {box.ip} 9 --timeout 1000", &refused)) {
        return;
    }
    if (refused.verdict == REPLY_REFUSED) {
        trial_say(trial, VERDICT_HOLDS, "a closed port of its own is refused");
    } else {
        trial_say(trial, VERDICT_NOT_JUDGED, "a closed port of its own is %s, not refused",
                  reply_verdict_name(refused.verdict));
    }
}

/* Names ---------------------------------------------------------------------------------------------------------------
 */

/* Whether the resolver answers the question with a record, where it does answer `{public.name}`. */
static void judge_records(struct trial *trial, const char *question, const char *secret)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};

    if (!siegecraft_probe(trial, "attack", question, &attack) ||
        !siegecraft_probe(trial, "control", "box: dns {public.name} --server {gateway} --timeout 2000", &control)) {
        return;
    }
    if (attack.verdict == REPLY_REACHABLE && json_number(attack.evidence, "answers", 0) > 0) {
        trial_say(trial, VERDICT_BROKEN, "%s", secret);
    } else if (json_number(control.evidence, "answers", 0) == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the resolver answers nothing");
    } else {
        trial_say(trial, VERDICT_HOLDS, "no record, and another question was answered");
    }
}

static void siege_reverse(struct trial *trial)
{
    const char *ip = ground_fact(trial->ground, ground_fact(trial->ground, "peer.ip") ? "peer.ip" : "box.ip");
    unsigned a, b, c, d;

    if (!ip || sscanf(ip, "%u.%u.%u.%u", &a, &b, &c, &d) != 4) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no address to ask for");
        return;
    }
    CLEANUP(freep)
    char *question =
        xasprintf("box: dns %u.%u.%u.%u.in-addr.arpa --type PTR --server {gateway} --timeout 2000", d, c, b, a);
    judge_records(trial, question, "the address has a name");
}

static void siege_chaos(struct trial *trial)
{
    CLEANUP(freep)
    char *question = xasprintf("box: dns %s --class CH --type TXT --server {gateway} --timeout 2000",
                               trial->claim->argument + strlen("chaos "));
    judge_records(trial, question, "the resolver tells about itself");
}

static void siege_search(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply reply = {0};
    const json_t *row;
    size_t at;

    if (!siegecraft_probe(trial, "attack", "box: resolve", &reply)) {
        return;
    }
    json_array_foreach(json_object_get(reply.evidence, "search"), at, row)
    {
        const char *domain = json_string_value(row);
        if (domain && !text_equal(domain, ".") && *domain) {
            trial_say(trial, VERDICT_BROKEN, "names are searched in a domain that the box was given");
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "none");
}

static int64_t ttl_of(const struct reply *reply)
{
    return json_number(json_array_get(json_object_get(reply->evidence, "records"), 0), "ttl", -1);
}

/* Only where the upstream gives one constant TTL, as the lab's does, does a lower one prove a cache here. */
static void siege_cache(struct trial *trial)
{
    static const char sibling[] = "peer: dns {public.name} --server {gateway} --timeout 2000";
    CLEANUP(reply_reset) struct reply first = {0};
    CLEANUP(reply_reset) struct reply second = {0};
    CLEANUP(reply_reset) struct reply upstream = {0};

    if (!trial->ground->world) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the public resolvers count their own TTLs down: this needs a lab");
        return;
    }
    if (!siegecraft_probe(trial, "sibling", sibling, &first) || !trial_pause(trial, 1500) ||
        !siegecraft_probe(trial, "attack", "box: dns {public.name} --server {gateway} --timeout 2000", &second) ||
        !siegecraft_probe(trial, "control", "host: dns {public.name} --server {resolver} --timeout 2000", &upstream)) {
        return;
    }
    if (ttl_of(&first) < 0 || ttl_of(&second) < 0 || ttl_of(&upstream) < 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "a question was not answered");
    } else if (ttl_of(&second) < ttl_of(&upstream)) {
        trial_say(trial, VERDICT_BROKEN, "its TTL is %lld where the upstream says %lld", (long long)ttl_of(&second),
                  (long long)ttl_of(&upstream));
    } else {
        trial_say(trial, VERDICT_HOLDS, "the TTL is the upstream's");
    }
}

static void siege_plant(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply lease = {0};
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};

    if (!siegecraft_probe(trial, "planting", "box: dhcp request --hostname drillwpad --timeout 5000", &lease) ||
        !siegecraft_probe(trial, "attack", "peer: dns drillwpad --server {gateway} --timeout 1500", &attack) ||
        !siegecraft_probe(trial, "control", "peer: dns {public.name} --server {gateway} --timeout 1500", &control)) {
        return;
    }
    if (attack.verdict == REPLY_REACHABLE && json_number(attack.evidence, "answers", 0) > 0) {
        trial_say(trial, VERDICT_BROKEN, "a sibling resolves the name that the box claimed");
    } else if (lease.verdict != REPLY_REACHABLE) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the box's request with a name got no lease");
    } else if (json_number(control.evidence, "answers", 0) == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the resolver answers nothing");
    } else {
        trial_say(trial, VERDICT_HOLDS, "the lease was given, the name was not taken");
    }
}

/* Flows of this host
 * ---------------------------------------------------------------------------------------------------- */

/* This host talks with the other box, while `from` sends datagrams that pretend to be its part of it. Whether this host
 * took one; -1 with the trial not judged. */
static int try_injection(struct trial *trial, const char *role, const char *from)
{
    CLEANUP(reply_reset) struct reply victim = {0};
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply echo = {0};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep)
    char *talk = xasprintf("host: udp {peer.ip} {port} --all --count 12 --interval-ms 100 --source-port %u "
                           "--timeout 1600",
                           siegecraft_port());
    struct trial_probe *listener, *flow;
    unsigned port = 0;

    (void)sscanf(strstr(talk, "--source-port"), "--source-port %u", &port);
    CLEANUP(freep)
    char *forged = xasprintf(
        "%s: spoof udp {gateway} %u --source {peer.ip} --source-port {port} --count 5 --token forged", from, port);
    if (trial_listen(trial, "peer: listen udp --echo --count 0 --timeout 6000", &listener, &err) < 0) {
        trial_not_judged(trial, &err);
        return -1;
    }
    bool started = siegecraft_start(trial, talk, &flow);
    bool made = started && trial_pause(trial, 400) && siegecraft_probe(trial, role, forged, &attack);
    bool told = started && trial_finish(trial, "victim", flow, &victim, &err) == 0;
    trial_stop(listener);
    (void)trial_finish(trial, "listener", listener, &echo, NULL);
    if (!made || !told || json_number(victim.evidence, "answered", 0) == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "this host could not talk with the other box");
        return -1;
    }
    return json_number(victim.evidence, "foreign", 0) > 0;
}

static void siege_inject(struct trial *trial)
{
    int attack = try_injection(trial, "attack", "box");
    int control = attack < 0 ? -1 : try_injection(trial, "control", "peer");

    if (attack > 0) {
        trial_say(trial, VERDICT_BROKEN, "this host took a datagram that the box forged");
    } else if (control > 0) {
        trial_say(trial, VERDICT_HOLDS, "it took what the other box itself sent, and nothing that was forged");
    } else if (control == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: what the other box itself sent was not taken either");
    }
}

/* This host talks with the web's echo, while `from` sends it ICMP errors about that. True where the talk suffered. */
static int try_icmp(struct trial *trial, const char *role, const char *from, bool reset)
{
    CLEANUP(reply_reset) struct reply victim = {0};
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(process_result_reset) struct process_result flushed = {0};
    static const char *const flush[] = {"ip", "route", "flush", "cache", NULL};
    unsigned port = siegecraft_port();
    CLEANUP(freep)
    char *talk =
        xasprintf("host: udp {web} 7 --all --count 12 --interval-ms 100 --source-port %u --timeout 1600", port);
    CLEANUP(freep)
    char *forged = xasprintf("%s: icmp-error {uplink} --kind %s --quote udp --quote-source {uplink}:%u "
                             "--quote-destination {web}:7 --mtu 576 --count 5",
                             from, reset ? "port" : "frag", port);
    struct trial_probe *flow;

    if (!siegecraft_start(trial, talk, &flow)) {
        return -1;
    }
    bool made = trial_pause(trial, 400) && siegecraft_probe(trial, role, forged, &attack);
    bool told = trial_finish(trial, "victim", flow, &victim, &err) == 0;
    /* A path MTU that was believed would last for ten minutes. */
    (void)trial_command(trial, "host", flush, &flushed, NULL);
    if (!made || !told || json_number(victim.evidence, "sent", 0) == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "this host could not talk with the web, or the error could not be sent");
        return -1;
    }
    if (reset) {
        return json_object_get(victim.evidence, "icmp") != NULL;
    }
    return json_number(victim.evidence, "path_mtu", 1500) < 1280;
}

static void siege_icmp(struct trial *trial)
{
    bool reset = text_equal(trial->claim->argument, "reset");
    int attack = try_icmp(trial, "attack", "box", reset);
    int control =
        attack < 0 ? -1 : try_icmp(trial, "control", trial->ground->world_namespace >= 0 ? "world" : "host", reset);

    if (attack > 0) {
        trial_say(trial, VERDICT_BROKEN, "%s", reset ? "the flow was reset" : "the path MTU was believed");
    } else if (control > 0) {
        trial_say(trial, VERDICT_HOLDS, "the same error from a router was believed, the box's was not");
    } else if (control == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: an error from a router was not believed either");
    }
}

/* Segments that belong to no connection carry no word of ours: they are told apart by who sent them. */
static void siege_stray(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};
    CLEANUP(reply_reset) struct reply heard = {0};
    CLEANUP(error_reset) struct error err = {0};
    unsigned port = siegecraft_port();
    CLEANUP(freep)
    char *listen =
        xasprintf("host: listen ip --protocol tcp --port %u --address {gateway} --count 0 --timeout 6000", port);
    CLEANUP(freep) char *stray = xasprintf("box: spoof tcp {gateway} %u --tcp-flags A --count 3", port);
    CLEANUP(freep) char *own = xasprintf("host: spoof tcp {gateway} %u --tcp-flags A --source {gateway}", port);
    struct trial_probe *listener;
    bool by_box = false, by_host = false;
    const json_t *event;
    size_t at;

    if (trial_listen(trial, listen, &listener, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool made = siegecraft_probe(trial, "attack", stray, &attack) &&
                siegecraft_probe(trial, "control", own, &control) && trial_pause(trial, 150);
    trial_stop(listener);
    if (trial_finish(trial, "listener", listener, &heard, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    json_array_foreach(json_object_get(heard.evidence, "events"), at, event)
    {
        by_box |= text_equal(json_text(event, "from"), ground_fact(trial->ground, "box.ip"));
        by_host |= text_equal(json_text(event, "from"), ground_fact(trial->ground, "gateway"));
    }
    if (by_box) {
        trial_say(trial, VERDICT_BROKEN, "the segment arrived");
    } else if (made) {
        trial_say(trial, by_host ? VERDICT_HOLDS : VERDICT_NOT_JUDGED, "%s",
                  by_host ? "this host's own arrived, the box's did not"
                          : "the control failed: this host's own did not arrive");
    }
}

/* Dispatch
 * -------------------------------------------------------------------------------------------------------------- */

void siege_claim(struct trial *trial)
{
    static const struct {
        const char *argument;
        void (*run)(struct trial *trial);
    } rows[] = {
        {"address", siege_address},
        {"instrument", siege_instrument},
        {"reverse", siege_reverse},
        {"search", siege_search},
        {"cache", siege_cache},
        {"plant", siege_plant},
        {"inject", siege_inject},
        {"stray", siege_stray},
        {"frag", siege_icmp},
        {"reset", siege_icmp},
        {"arp", havoc_arp},
        {"arp-vlan", havoc_arp},
        {"flood", havoc_flood},
        {"table", havoc_table},
        {"rogue", havoc_rogue},
        {"starve", havoc_starve},
        {"v6-gateway", havoc_ipv6},
        {"v6-neighbours", havoc_ipv6},
        {"v6-internet", havoc_ipv6},
        {"v6-advertise", havoc_ipv6},
        {"watcher", havoc_watcher},
        {"flows", havoc_flows},
        {"restricted", restricted_claim},
    };

    if (text_starts_with(trial->claim->argument, "chaos ")) {
        siege_chaos(trial);
        return;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (text_equal(trial->claim->argument, rows[i].argument)) {
            rows[i].run(trial);
            return;
        }
    }
    trial_say(trial, VERDICT_NOT_JUDGED, "the row names an attack that is not known");
}
