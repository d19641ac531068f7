/* Phase D: candidate settings, one at a time, on a network and a profile that the drill makes for itself: what each
 * stops and what it breaks. Reverted, and the revert read back, before the next. Not for: the boxes' own network, which
 * is never touched here. */
#include "drill/hardening.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/remove.h"
#include "drill/crew.h"
#include "drill/phases.h"
#include "drill/siegecraft.h"
#include "incus/instance.h"
#include "incus/server.h"
#include "stack/names.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OPERATION_MS = 30000,
    LEASE_MS = 45000,
    SETTLE_MS = 400,
    RECOVERY_MS = 10000,
    RETRY_MS = 1500,
    GUARD_MS = 900000
};

/* The guard: a process apart that removes the disposable network when the drill is gone without having done so. */
static void arm_guard(pid_t drill)
{
    if (fork() != 0) {
        return;
    }
    (void)setsid();
    /* The pipe to the drill above all: it ends with its last writer. */
    (void)close_range(3, ~0U, 0);
    CLEANUP(client_closep) struct client *client = NULL;
    int fd = (int)syscall(SYS_pidfd_open, drill, 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (fd >= 0 && poll(&wait, 1, GUARD_MS) >= 0 && client_open(&client, NULL) == 0) {
        hardening_revert(client);
    }
    _exit(0);
}

static void instance_names(const struct trial *trial, char **ret_first, char **ret_second)
{
    const char *id = ground_fact(trial->ground, "run");

    *ret_first = xasprintf(CREW_PREFIX "h-%s", id);
    *ret_second = xasprintf(CREW_PREFIX "i-%s", id);
}

/* Making
 * ---------------------------------------------------------------------------------------------------------------- */

static int make_network(struct client *client, const char *id, struct error *err)
{
    CLEANUP(json_freep)
    json_t *network = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "name", CREW_NETWORK, "type", "bridge", "config",
                                "ipv4.address", "auto", "ipv4.nat", "true", "ipv6.address", "none", CREW_TAG, id);
    CLEANUP(json_freep)
    json_t *profile = json_pack("{s:s, s:{s:s}, s:{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s}}}", "name", CREW_PROFILE,
                                "config", CREW_TAG, id, "devices", "root", "type", "disk", "path", "/", "pool",
                                STACK_POOL, STACK_NIC, "type", "nic", "network", CREW_NETWORK, "name", "eth0");

    return client_request(client, "POST", "/1.0/networks", network, NULL, err) < 0 ||
                   client_request(client, "POST", "/1.0/profiles", profile, NULL, err) < 0
               ? -1
               : 0;
}

static int make_instance(struct trial *trial, struct client *client, const char *name, struct error *err)
{
    CLEANUP(json_freep) json_t *box = NULL;
    const char *like = ground_fact(trial->ground, "box.name");

    if (!like) {
        return error_set(err, ERR_STATE, "there is no box whose image could be taken");
    }
    if (instance_get(client, like, &box, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:s, s:[s], s:{s:s, s:s}, s:{s:s, s:s}, s:b}", "name", name, "type", "container",
                             "profiles", CREW_PROFILE, "config", CREW_TAG, ground_fact(trial->ground, "run"),
                             "security.nesting", "true", "source", "type", "image", "fingerprint",
                             json_text(json_object_get(box, "config"), "volatile.base_image"), "start", 1);
    return instance_create(client, body, 2 * OPERATION_MS, NULL, err);
}

/* Facts of an instance on the disposable network under `prefix`, once it has a lease. */
static int learn(struct trial *trial, struct client *client, const char *prefix, const char *name, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;
    int64_t until = clock_deadline(LEASE_MS);

    if (instance_get(client, name, &instance, err) < 0) {
        return -1;
    }
    const char *mac = json_text(json_object_get(instance, "config"), "volatile.eth0.hwaddr");
    for (;;) {
        CLEANUP(json_freep) json_t *leases = NULL;
        const json_t *row;
        size_t at;
        if (server_leases(client, CREW_NETWORK, &leases, err) < 0) {
            return -1;
        }
        json_array_foreach(leases, at, row)
        {
            if (text_equal(json_text(row, "hwaddr"), mac) && !strchr(json_text(row, "address"), ':')) {
                CLEANUP(freep) char *name_key = xasprintf("%s.name", prefix);
                CLEANUP(freep) char *ip_key = xasprintf("%s.ip", prefix);
                CLEANUP(freep) char *mac_key = xasprintf("%s.mac", prefix);
                ground_set(trial->ground, name_key, name);
                ground_set(trial->ground, ip_key, json_text(row, "address"));
                ground_set(trial->ground, mac_key, mac);
                return 0;
            }
        }
        if (clock_left(until) == 0 || !trial_pause(trial, 200)) {
            return error_set(err, ERR_TIMEOUT, "%s got no lease", name);
        }
    }
}

/* Both instances and the network's gateway, as facts "h", "i", "dgw". */
static bool learn_all(struct trial *trial, struct client **ret_client)
{
    CLEANUP(freep) char *first = NULL;
    CLEANUP(freep) char *second = NULL;
    CLEANUP(json_freep) json_t *network = NULL;
    struct error err = {0};

    instance_names(trial, &first, &second);
    if (trial_client(trial, ret_client, &err) < 0 ||
        client_get(*ret_client, "/1.0/networks/" CREW_NETWORK, &network, &err) < 0 ||
        learn(trial, *ret_client, "h", first, &err) < 0 || learn(trial, *ret_client, "i", second, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    const char *address = json_text(json_object_get(network, "config"), "ipv4.address");
    CLEANUP(freep) char *gateway = xstrndup(address ? address : "", strcspn(address ? address : "", "/"));
    ground_set(trial->ground, "dgw", gateway);
    return true;
}

static bool routes_and_resolves(struct trial *trial, const char *role)
{
    int64_t until = clock_deadline(RECOVERY_MS);

    /* dnsmasq restarts with each change: what comes back within the time is no damage. */
    do {
        CLEANUP(reply_reset) struct reply web = {0};
        CLEANUP(reply_reset) struct reply name = {0};
        bool both = trial_probe(trial, role, "h: connect {web} {web.port} --timeout 1200", &web, NULL) == 0 &&
                    web.verdict == REPLY_REACHABLE &&
                    trial_probe(trial, role, "h: dns {public.name} --server {dgw} --timeout 1200", &name, NULL) == 0 &&
                    json_number(name.evidence, "answers", 0) > 0;
        if (both) {
            return true;
        }
    } while (clock_left(until) > 0 && trial_pause(trial, 500));
    return false;
}

static void claim_prepare(struct trial *trial)
{
    CLEANUP(freep) char *first = NULL;
    CLEANUP(freep) char *second = NULL;
    struct client *client;
    struct error err = {0};

    instance_names(trial, &first, &second);
    arm_guard(getppid());
    if (trial_client(trial, &client, &err) < 0 || make_network(client, ground_fact(trial->ground, "run"), &err) < 0 ||
        make_instance(trial, client, first, &err) < 0 || make_instance(trial, client, second, &err) < 0 ||
        crew_equip(trial->ground, client, first, &err) < 0 || crew_equip(trial->ground, client, second, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    if (!learn_all(trial, &client)) {
        return;
    }
    if (routes_and_resolves(trial, "baseline")) {
        trial_say(trial, VERDICT_HOLDS, "two instances on a network of the drill's own route and resolve");
    } else {
        trial_say(trial, VERDICT_NOT_JUDGED, "an instance on the drill's own network does not route or resolve");
    }
}

/* Candidates
 * -------------------------------------------------------------------------------------------------------------- */

enum target { TARGET_NETWORK, TARGET_NIC, TARGET_ACL };

/* A setting, the attack that it is for, and what should become of it. */
struct candidate {
    const char *argument;
    enum target target;
    const char *key, *value;
    const char *attack; /* from "h" */
    bool by_answers;    /* the attack counts where the resolver gave a record */
};

static const struct candidate candidates[] = {
    {"dns.mode", TARGET_NETWORK, "dns.mode", "none", "h: dns {i.name}.incus --server {dgw} --timeout 1200", true},
    {"no-hosts", TARGET_NETWORK, "raw.dnsmasq", "no-hosts", "h: dns {private.name} --server {dgw} --timeout 1200",
     true},
    {"rebind", TARGET_NETWORK, "raw.dnsmasq", "stop-dns-rebind",
     "h: dns rebind.example.com --server {dgw} --timeout 1200", true},
    {"ident", TARGET_NETWORK, "raw.dnsmasq", "no-ident",
     "h: dns version.bind --class CH --type TXT --server {dgw} --timeout 1200", true},
    {"isolation", TARGET_NIC, "security.port_isolation", "true", "h: icmp {i.ip} --count 2 --timeout 900", false},
    {"mac", TARGET_NIC, "security.mac_filtering", "true",
     "h: raw gateway --source-mac 02:de:ad:be:ef:02 --ip {web} --proto icmp --wait --timeout 900", false},
    {"address", TARGET_NIC, "security.ipv4_filtering", "true", "h: arp who-has {dgw} --sender-ip {i.ip} --timeout 900",
     false},
    {"known", TARGET_NETWORK, "raw.dnsmasq", "dhcp-ignore=tag:!known",
     "h: dhcp discover --mac 02:de:ad:be:ef:04 --timeout 2500", false},
    {"internal", TARGET_ACL, "@internal", "", "h: icmp {i.ip} --count 2 --timeout 900", false},
};

static int set_network(struct client *client, const char *key, const char *value, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:{s:s}}", "config", key, value);

    return client_request(client, "PATCH", "/1.0/networks/" CREW_NETWORK, body, NULL, err);
}

static int set_nic(struct client *client, const char *key, const char *value, struct error *err)
{
    CLEANUP(json_freep) json_t *profile = NULL;

    if (client_get(client, "/1.0/profiles/" CREW_PROFILE, &profile, err) < 0) {
        return -1;
    }
    json_t *nic = json_path(profile, "devices", STACK_NIC, NULL);
    json_object_set_new(nic, key, json_string(value));
    json_object_del(profile, "used_by");
    return client_request(client, "PUT", "/1.0/profiles/" CREW_PROFILE, profile, NULL, err);
}

static int set_acl(struct client *client, struct error *err)
{
    CLEANUP(json_freep)
    json_t *acl = json_pack("{s:s, s:{s:s}, s:[{s:s, s:s, s:s}]}", "name", CREW_ACL, "config", CREW_TAG, "1", "egress",
                            "action", "drop", "destination", "@internal", "state", "enabled");

    return client_request(client, "POST", "/1.0/network-acls", acl, NULL, err) < 0 ||
                   set_network(client, "security.acls", CREW_ACL, err) < 0 ||
                   set_network(client, "security.acls.default.egress.action", "allow", err) < 0
               ? -1
               : 0;
}

static int apply(struct client *client, const struct candidate *candidate, struct error *err)
{
    switch (candidate->target) {
    case TARGET_NETWORK:
        return set_network(client, candidate->key, candidate->value, err);
    case TARGET_NIC:
        return set_nic(client, candidate->key, candidate->value, err);
    case TARGET_ACL:
        break;
    }
    return set_acl(client, err);
}

/* Puts the whole of the object back as it was read before, and reads it again. */
static int revert(struct client *client, const struct candidate *candidate, const char *path, const json_t *clean,
                  struct error *err)
{
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:O, s:s}", "config", json_object_get(clean, "config"), "description", "");
    CLEANUP(json_freep) json_t *now = NULL;
    json_t *devices = json_object_get(clean, "devices");

    if (devices) {
        json_object_set(body, "devices", devices);
    }
    if (client_request(client, "PUT", path, body, NULL, err) < 0 ||
        (candidate->target == TARGET_ACL &&
         client_request(client, "DELETE", "/1.0/network-acls/" CREW_ACL, NULL, NULL, err) < 0) ||
        client_get(client, path, &now, err) < 0) {
        return error_wrap(err, "it could not be reverted");
    }
    if (!json_equal(json_object_get(clean, "config"), json_object_get(now, "config")) ||
        (devices && !json_equal(devices, json_object_get(now, "devices")))) {
        return error_set(err, ERR_STATE, "after the revert the configuration is not what it was");
    }
    return 0;
}

/* Whether the attack gets through: 1, 0, or -1 with the trial not judged. */
static int try_attack(struct trial *trial, const char *role, const struct candidate *candidate)
{
    CLEANUP(reply_reset) struct reply reply = {0};

    if (!siegecraft_probe(trial, role, candidate->attack, &reply)) {
        return -1;
    }
    if (candidate->by_answers) {
        return json_number(reply.evidence, "answers", 0) > 0;
    }
    return reply.verdict == REPLY_REACHABLE || reply.verdict == REPLY_REFUSED;
}

/* A bridge inside the instance, with a network behind it, still gets out: what Docker in a box does. */
static bool nests(struct trial *trial)
{
    static const char script[] =
        "ip netns add drilln && ip link add drillv type veth peer name drillp && ip link set drillp netns drilln && "
        "ip addr add 172.31.255.1/24 dev drillv && ip link set drillv up && ip netns exec drilln ip addr add "
        "172.31.255.2/24 dev drillp && "
        "ip netns exec drilln ip link set drillp up && ip netns exec drilln ip route add default via 172.31.255.1 && "
        "echo 1 > /proc/sys/net/ipv4/ip_forward && ip netns exec drilln ip route get 1.1.1.1 >/dev/null; status=$?; "
        "ip netns del drilln 2>/dev/null; ip link del drillv 2>/dev/null; exit $status";
    static const char *const words[] = {"sh", "-c", script, NULL};
    CLEANUP(process_result_reset) struct process_result result = {0};

    return trial_command(trial, "h", words, &result, NULL) == 0 && result.status == 0;
}

static const struct candidate *candidate_of(const struct trial *trial)
{
    for (size_t i = 0; i < ARRAY_LENGTH(candidates); i++) {
        if (text_equal(candidates[i].argument, trial->claim->argument)) {
            return &candidates[i];
        }
    }
    return NULL;
}

static void judge_candidate(struct trial *trial, const struct candidate *candidate, int before, int after, bool usable,
                            bool nested)
{
    trial_note(trial, "measured",
               json_pack("{s:b, s:b, s:b, s:b}", "attack works without it", before > 0, "attack works with it",
                         after > 0, "routes and resolves with it", usable, "nested network with it", nested));
    if (before < 0 || after < 0) {
        return; /* said already */
    }
    if (!usable) {
        trial_say(trial, VERDICT_BROKEN, "with it an instance does not route or resolve");
    } else if (after) {
        trial_say(trial, before ? VERDICT_BROKEN : VERDICT_NOT_JUDGED, "it does not stop the attack");
    } else if (!before) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the attack does not work without it either");
    } else {
        trial_say(trial, VERDICT_HOLDS, "stops the attack; the instance routes and resolves%s",
                  nested ? ", a network nested in it too" : "");
    }
}

static void claim_candidate(struct trial *trial)
{
    const struct candidate *candidate = candidate_of(trial);
    CLEANUP(json_freep) json_t *clean = NULL;
    struct client *client;
    struct error err = {0};
    int after = -1;
    bool usable = false, nested = false;

    if (!learn_all(trial, &client)) {
        return;
    }
    const char *path = candidate->target == TARGET_NIC ? "/1.0/profiles/" CREW_PROFILE : "/1.0/networks/" CREW_NETWORK;
    if (client_get(client, path, &clean, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    int before = try_attack(trial, "without", candidate);
    if (before < 0) {
        return;
    }
    if (apply(client, candidate, &err) < 0) {
        (void)error_wrap(&err, "this Incus takes no %s=%s", candidate->key, candidate->value);
        trial_not_judged(trial, &err);
    } else if (trial_pause(trial, SETTLE_MS)) {
        after = try_attack(trial, "with", candidate);
        usable = routes_and_resolves(trial, "what it breaks");
        nested = usable && nests(trial);
        judge_candidate(trial, candidate, before, after, usable, nested);
    }
    int failed = revert(client, candidate, path, clean, &err);
    if (failed && trial_pause(trial, RETRY_MS)) {
        error_reset(&err);
        failed = revert(client, candidate, path, clean, &err);
    }
    if (failed) {
        trial_say(trial, VERDICT_BROKEN, "%s", err.message);
        error_reset(&err);
    }
}

/* Reverting
 * --------------------------------------------------------------------------------------------------------------- */

static void remove_instances(struct client *client)
{
    CLEANUP(json_freep) json_t *array = NULL;
    const json_t *row;
    size_t at;

    if (instance_list(client, NULL, &array, NULL) < 0) {
        return;
    }
    json_array_foreach(array, at, row)
    {
        const json_t *profiles = json_object_get(row, "profiles");
        if (text_equal(json_string_value(json_array_get(profiles, 0)), CREW_PROFILE)) {
            (void)remove_instance(client, json_text(row, "name"), NULL, NULL);
        }
    }
}

/* True where the object is there and carries the drill's mark. */
static bool is_ours(struct client *client, const char *path)
{
    CLEANUP(json_freep) json_t *object = NULL;

    return client_get(client, path, &object, NULL) == 0 && json_text(json_object_get(object, "config"), CREW_TAG);
}

bool hardening_revert(struct client *client)
{
    static const char *const paths[] = {"/1.0/profiles/" CREW_PROFILE, "/1.0/networks/" CREW_NETWORK,
                                        "/1.0/network-acls/" CREW_ACL};
    bool gone = true;

    if (is_ours(client, paths[0])) {
        remove_instances(client);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        if (is_ours(client, paths[i])) {
            (void)client_request(client, "DELETE", paths[i], NULL, NULL, NULL);
            gone &= !is_ours(client, paths[i]);
        }
    }
    return gone;
}

static void claim_revert(struct trial *trial)
{
    struct client *client;
    struct error err = {0};

    if (trial_client(trial, &client, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (hardening_revert(client)) {
        trial_say(trial, VERDICT_HOLDS, "network, profile and instances are gone");
    } else {
        trial_say(trial, VERDICT_BROKEN, "something of it is still there");
    }
}

#define CANDIDATE(id, what, name)                                                                                      \
    {                                                                                                                  \
        id, what, .run = claim_candidate, .argument = name, .flags = CLAIM_ALONE                                       \
    }

static const struct claim claims[] = {
    {"D01", "A network of the drill's own carries two instances", .run = claim_prepare,
     .flags = CLAIM_FIRST | CLAIM_ALONE, .budget = 150000},
    CANDIDATE("D02", "dns.mode=none takes siblings' names away, and breaks nothing", "dns.mode"),
    CANDIDATE("D03", "no-hosts takes the names of this host's /etc/hosts away, and breaks nothing", "no-hosts"),
    CANDIDATE("D04", "stop-dns-rebind takes private answers of public names away, and breaks nothing", "rebind"),
    CANDIDATE("D05", "no-ident silences the resolver about itself, and breaks nothing", "ident"),
    CANDIDATE("D06", "security.port_isolation parts siblings, and breaks nothing", "isolation"),
    CANDIDATE("D07", "security.mac_filtering stops a foreign MAC, and breaks nothing", "mac"),
    CANDIDATE("D08", "security.ipv4_filtering stops ARP from a sibling's address, and breaks nothing", "address"),
    CANDIDATE("D09", "dhcp-ignore=tag:!known stops leases for unknown MACs, and keeps those that are held", "known"),
    CANDIDATE("D10", "@internal as an ACL destination parts siblings, and breaks nothing", "internal"),
    {"D99", "All of it is reverted", .run = claim_revert, .flags = CLAIM_ALONE, .budget = 60000},
};

const struct claim_table hardening_table = {
    .phase = PHASE_HARDENING,
    .title = "candidate settings on a network of the drill's own",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 40000,
};
