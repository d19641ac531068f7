/* Attacks that would disturb other trials: taking addresses, flooding, playing servers, IPv6, a stopped watcher. Each
 * undoes what it did.
 * Not for: anything that may run beside others; see siege.c. */
#include "drill/havoc.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "drill/siegecraft.h"
#include "host/link.h"
#include "incus/instance.h"
#include "stack/arm.h"
#include "stack/names.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { FLOW_LIMIT = 2000, GROWTH_ALLOWED = 64, STATE_MS = 30000, STOPPED_MS = 30000 };

/* Taking a sibling's place
 * --------------------------------------------------------------------------------------------- */

static void judge_takeover(struct trial *trial, const char *attack)
{
    struct siegecraft_result quiet, under;

    if (siegecraft_beside_talk(trial, "control", NULL, &quiet) < 0) {
        return;
    }
    if (quiet.sent == 0 || quiet.answered * 10 < quiet.sent * 9) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: of %lld pings without an attack %lld were answered",
                  (long long)quiet.sent, (long long)quiet.answered);
        return;
    }
    if (siegecraft_beside_talk(trial, "attack", attack, &under) < 0) {
        return;
    }
    if (under.captured > 0) {
        trial_say(trial, VERDICT_BROKEN,
                  "%lld packets for the sibling came to the attacker, and it lost %lld of %lld pings",
                  (long long)under.captured, (long long)(under.sent - under.answered), (long long)under.sent);
    } else if (under.answered * 10 < under.sent * 8) {
        trial_say(trial, VERDICT_BROKEN, "the sibling lost %lld of %lld pings",
                  (long long)(under.sent - under.answered), (long long)under.sent);
    } else {
        trial_say(trial, VERDICT_HOLDS, "nothing was captured, and %lld of %lld pings were answered",
                  (long long)under.answered, (long long)under.sent);
    }
}

void havoc_arp(struct trial *trial)
{
    judge_takeover(trial, text_equal(trial->claim->argument, "arp")
                              ? "box: arp claim {peer.ip} --timeout 2200"
                              : "box: arp claim {peer.ip} --vlan 0 --timeout 2200");
}

void havoc_flood(struct trial *trial)
{
    judge_takeover(trial,
                   "box: raw broadcast --source-mac {peer.mac} --send-ms 1800 --capture {peer.ip} --timeout 2200");
}

/* Entries of the bridge's table, or -1. */
static int64_t count_entries(struct trial *trial)
{
    static const char *const words[] = {"bridge", "fdb", "show", "br", STACK_NETWORK, NULL};
    CLEANUP(process_result_reset) struct process_result result = {0};
    int64_t lines = 0;

    if (trial_command(trial, "host", words, &result, NULL) < 0 || result.status != 0) {
        return -1;
    }
    for (size_t i = 0; i < result.output.length; i++) {
        lines += result.output.data[i] == '\n';
    }
    return lines;
}

/* Frames that came in at the box's port, or -1. */
static int64_t count_frames(const struct trial *trial)
{
    const char *port = ground_fact(trial->ground, "box.port");
    CLEANUP(freep) char *path = xasprintf("/sys/class/net/%s/statistics/rx_packets", port ? port : "");
    CLEANUP(buffer_reset) struct buffer text = {0};

    if (fd_read_file(path, 64, &text, NULL) < 0) {
        return -1;
    }
    return strtoll(text.data, NULL, 10);
}

void havoc_table(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply reply = {0};
    int64_t before = count_entries(trial);
    int64_t frames = count_frames(trial);

    if (!siegecraft_probe(trial, "attack", "box: raw broadcast --flood-macs --count 5000 --timeout 4000", &reply)) {
        return;
    }
    int64_t after = count_entries(trial);
    int64_t came = count_frames(trial) - frames;
    trial_note(trial, "counts",
               json_pack("{s:I, s:I, s:I}", "entries before", (json_int_t)before, "entries after", (json_int_t)after,
                         "frames at the port", (json_int_t)came));
    if (before < 0 || after < 0 || frames < 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the bridge's table could not be read");
    } else if (after - before > GROWTH_ALLOWED) {
        trial_say(trial, VERDICT_BROKEN, "the table grew by %lld entries", (long long)(after - before));
    } else if (came < 4000) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: only %lld of 5000 frames came to the bridge",
                  (long long)came);
    } else {
        trial_say(trial, VERDICT_HOLDS, "%lld frames came, and the table grew by %lld", (long long)came,
                  (long long)(after - before));
    }
}

/* DHCP
 * ------------------------------------------------------------------------------------------------------------------ */

void havoc_rogue(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply rogue = {0};
    CLEANUP(reply_reset) struct reply victim = {0};
    CLEANUP(error_reset) struct error err = {0};
    struct trial_probe *server;

    if (!siegecraft_start(trial, "box: dhcp rogue --offer {stranger} --timeout 5000", &server)) {
        return;
    }
    bool asked =
        trial_pause(trial, 500) && siegecraft_probe(trial, "control", "peer: dhcp discover --timeout 3500", &victim);
    if (trial_finish(trial, "attack", server, &rogue, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (json_number(rogue.evidence, "discovers", 0) > 0 || rogue.verdict == REPLY_REACHABLE) {
        trial_say(trial, VERDICT_BROKEN, "a sibling's question came to the box");
    } else if (asked && victim.verdict != REPLY_REACHABLE) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the sibling's question was answered by nobody");
    } else if (asked) {
        trial_say(trial, VERDICT_HOLDS, "the sibling was served by the real server, and the box heard nothing");
    }
}

void havoc_starve(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};

    if (!siegecraft_probe(trial, "attack", "box: dhcp starve --count 12 --discover-only --timeout 6000", &attack) ||
        !siegecraft_probe(trial, "control", "box: dhcp discover --timeout 4000", &control)) {
        return;
    }
    int64_t offers = json_number(attack.evidence, "offers", 0);
    if (offers > 0) {
        trial_say(trial, VERDICT_BROKEN, "%lld leases were offered for hardware addresses that are not the box's",
                  (long long)offers);
    } else if (control.verdict != REPLY_REACHABLE) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the box is not even offered its own lease");
    } else {
        trial_say(trial, VERDICT_HOLDS, "its own lease is offered, and no other");
    }
}

/* IPv6
 * ------------------------------------------------------------------------------------------------------------------ */

/* The link-local address that goes with a MAC (RFC 4291, appendix A), as the fact `name`. */
static bool set_linklocal(struct trial *trial, const char *name, const char *mac)
{
    uint8_t bytes[6];

    if (!mac || !link_parse_mac(mac, bytes)) {
        return false;
    }
    CLEANUP(freep)
    char *text = xasprintf("fe80::%02x%02x:%02xff:fe%02x:%02x%02x", bytes[0] ^ 2, bytes[1], bytes[2], bytes[3],
                           bytes[4], bytes[5]);
    ground_set(trial->ground, name, text);
    return true;
}

static void judge_ipv6(struct trial *trial, const char *attack, const char *control)
{
    CLEANUP(reply_reset) struct reply reply = {0};
    CLEANUP(reply_reset) struct reply other = {0};

    if (!siegecraft_probe(trial, "attack", attack, &reply) || !siegecraft_probe(trial, "control", control, &other)) {
        return;
    }
    struct observation seen = {.made = true, .said = reply.verdict, .why = reply.why};
    struct observation checked = {.made = true, .said = other.verdict, .why = other.why};
    char *reason;
    enum verdict verdict = verdict_judge(EXPECT_SILENCE, &seen, &checked, &reason);
    trial_say(trial, verdict, "%s", reason);
    free(reason);
}

/* A router advertisement carries no word of ours: it is known by the MAC of the box. */
static void judge_advertisement(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply reply = {0};
    CLEANUP(reply_reset) struct reply control = {0};
    CLEANUP(reply_reset) struct reply heard = {0};
    CLEANUP(error_reset) struct error err = {0};
    struct trial_probe *listener;
    bool by_box = false, by_host = false;
    const json_t *event;
    size_t at;

    if (trial_listen(trial, "peer: listen ether --ethertype 0x86dd --count 0 --timeout 6000", &listener, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool made = siegecraft_probe(trial, "attack", "box: ipv6 advertise --count 3 --timeout 1500", &reply) &&
                siegecraft_probe(trial, "control",
                                 "host: raw 33:33:00:00:00:01 --interface boxnet --ip ff02::1 --source "
                                 "{gateway.linklocal} --proto udp --port 9",
                                 &control) &&
                trial_pause(trial, 200);
    trial_stop(listener);
    if (trial_finish(trial, "listener", listener, &heard, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    json_array_foreach(json_object_get(heard.evidence, "events"), at, event)
    {
        by_box |= text_equal(json_text(event, "source_mac"), ground_fact(trial->ground, "box.mac"));
        by_host |= text_equal(json_text(event, "source_mac"), ground_fact(trial->ground, "gateway.mac"));
    }
    if (by_box) {
        trial_say(trial, VERDICT_BROKEN, "a sibling heard the box's advertisement");
    } else if (made) {
        trial_say(trial, by_host ? VERDICT_HOLDS : VERDICT_NOT_JUDGED, "%s",
                  by_host ? "the sibling heard this host, and not the box"
                          : "the control failed: the sibling did not hear this host either");
    }
}

void havoc_ipv6(struct trial *trial)
{
    const char *which = trial->claim->argument;
    CLEANUP(reply_reset) struct reply on = {0};
    CLEANUP(reply_reset) struct reply off = {0};

    if (!set_linklocal(trial, "gateway.linklocal", ground_fact(trial->ground, "gateway.mac")) ||
        !siegecraft_probe(trial, "preparation",
                          text_equal(which, "v6-internet")
                              ? "box: ipv6 enable --address 2600:3c00:77::5 --gateway {gateway.linklocal}"
                              : "box: ipv6 enable",
                          &on)) {
        return;
    }
    if (text_equal(which, "v6-gateway")) {
        judge_ipv6(trial, "box: icmp {gateway.linklocal}%{box.nic} --count 3 --timeout 1500",
                   "host: icmp {uplink6.gateway} --timeout 1500");
    } else if (text_equal(which, "v6-neighbours")) {
        judge_ipv6(trial, "box: ipv6 neighbours --timeout 1500",
                   "host: ipv6 neighbours --interface {uplink.link} --timeout 1500");
    } else if (text_equal(which, "v6-internet")) {
        judge_ipv6(trial, "box: connect {public6.1} 80 --timeout 1500", "host: connect {public6.1} 80 --timeout 1500");
    } else {
        judge_advertisement(trial);
    }
    (void)trial_probe(trial, "undoing", "box: ipv6 disable", &off, NULL);
}

/* A stopped watcher
 * ------------------------------------------------------------------------------------------------------- */

/* A process apart that lets the watcher go on when we are gone, however we go. Returns the descriptor whose closing
 * does it, or -1. */
static int guard_watcher(pid_t watcher)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    pid_t guard = fork();
    if (guard == 0) {
        char byte;
        (void)setsid();
        (void)close(ends[1]);
        struct pollfd wait = {.fd = ends[0], .events = POLLIN};
        (void)poll(&wait, 1, STOPPED_MS);
        (void)!read(ends[0], &byte, 0);
        (void)kill(watcher, SIGCONT);
        _exit(0);
    }
    (void)close(ends[0]);
    if (guard < 0) {
        (void)close(ends[1]);
        return -1;
    }
    return ends[1];
}

static void judge_stopped(struct trial *trial, pid_t watcher, int *guard, const char *name)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};
    struct client *client;
    struct error err = {0};

    if (trial_client(trial, &client, &err) < 0 ||
        instance_change_state(client, name, "restart", 10, true, STATE_MS, NULL, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool made = trial_pause(trial, 2500) &&
                siegecraft_probe(trial, "attack", "peer: connect {web} {web.port} --timeout 2000", &attack);
    (void)kill(watcher, SIGCONT);
    fd_closep(guard);
    if (!made) {
        return;
    }
    for (int64_t until = clock_deadline(20000); clock_left(until) > 0 && trial_pause(trial, 500);) {
        reply_reset(&control);
        if (!siegecraft_probe(trial, "control", "peer: connect {web} {web.port} --timeout 1500", &control)) {
            return;
        }
        if (control.verdict == REPLY_REACHABLE) {
            break;
        }
    }
    if (attack.verdict == REPLY_REACHABLE || attack.verdict == REPLY_REFUSED) {
        trial_say(trial, VERDICT_BROKEN, "a port that nobody had armed passed packets");
    } else if (control.verdict != REPLY_REACHABLE) {
        trial_say(trial, VERDICT_NOT_JUDGED,
                  "the control failed: with the watcher back, the box has no network either");
    } else {
        trial_say(trial, VERDICT_HOLDS, "nothing while it was stopped; the internet once it went on");
    }
}

void havoc_watcher(struct trial *trial)
{
    const char *name = ground_fact(trial->ground, "peer.name");
    pid_t watcher = arm_watcher();

    if (!name || watcher <= 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "%s", name ? "no watcher runs" : "there is no second box to restart");
        return;
    }
    CLEANUP(fd_closep) int guard = guard_watcher(watcher);
    if (guard < 0 || kill(watcher, SIGSTOP) < 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the watcher could not be stopped");
        return;
    }
    judge_stopped(trial, watcher, &guard, name);
    (void)kill(watcher, SIGCONT);
}

/* Exhaustion
 * ------------------------------------------------------------------------------------------------------------ */

void havoc_flows(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};

    if (!trial->ground->world) {
        trial_say(trial, VERDICT_NOT_JUDGED,
                  "thousands of flows are not sent into the real internet: this needs a lab");
        return;
    }
    if (!siegecraft_probe(trial, "attack", "box: flows {web} 7 --count 2600 --per-second 1300 --timeout 4500",
                          &attack) ||
        !siegecraft_probe(trial, "control", "host: flows {web} 7 --count 2600 --per-second 1300 --timeout 5000",
                          &control)) {
        return;
    }
    int64_t answered = json_number(attack.evidence, "answered", 0);
    int64_t could = json_number(control.evidence, "answered", 0);
    if (could <= FLOW_LIMIT + FLOW_LIMIT / 10) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: this host itself had %lld flows answered",
                  (long long)could);
    } else if (answered > FLOW_LIMIT + FLOW_LIMIT / 10) {
        trial_say(trial, VERDICT_BROKEN, "%lld flows were answered", (long long)answered);
    } else {
        trial_say(trial, VERDICT_HOLDS, "%lld of 2600 were answered, where this host itself has %lld",
                  (long long)answered, (long long)could);
    }
}
