/* The walls as the kernel has them: each layer by itself, so that one that is lost is told although another still
 * holds. Not for: attacks. A configuration is never read here; bridge ports, filters and tables are. */
#include "drill/walls.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "drill/trial.h"
#include "host/link.h"
#include "host/nft.h"
#include "host/sysctl.h"
#include "stack/arm.h"
#include "stack/bridge.h"
#include "stack/inspect.h"
#include "stack/names.h"
#include "stack/plan.h"
#include "stack/ruleset.h"

#include <string.h>

/* Description -------------------------------------------------------------------------------------------------------
 */

/* Feeds the listings of a copy's tables; returns how many of them are loaded. */
static size_t feed_copy(struct nft *nft, enum ruleset_copy copy, struct sha256 *digest)
{
    size_t loaded = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(ruleset_families); i++) {
        CLEANUP(freep) char *command = xasprintf("list table %s %s", ruleset_families[i], ruleset_table(copy));
        CLEANUP(freep) char *listing = NULL;
        if (nft_list(nft, command, &listing, NULL) == 0) {
            sha256_feed(digest, listing, strlen(listing));
            loaded++;
        }
    }
    return loaded;
}

json_t *walls_describe(void)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    struct sha256 digest;
    char hex[SHA256_HEX_SIZE];

    if (nft_open(&nft, NULL) < 0) {
        return json_pack("{s:n, s:s}", "digest", "form", "could not be read");
    }
    sha256_start(&digest);
    size_t fixed = feed_copy(nft, RULESET_STATIC, &digest);
    size_t owned = feed_copy(nft, RULESET_OWNED, &digest);
    sha256_finish(&digest, hex);
    bool watched = arm_watcher_runs();
    CLEANUP(freep)
    char *form = xasprintf("%zu static and %zu owned tables of %zu, %s", fixed, owned, ARRAY_LENGTH(ruleset_families),
                           watched ? "watched" : "NOT watched");
    return json_pack("{s:s, s:s, s:i, s:i, s:b}", "digest", hex, "form", form, "static", (int)fixed, "owned",
                     (int)owned, "watcher", watched);
}

/* Claims ------------------------------------------------------------------------------------------------------------
 */

static void judge(struct trial *trial, bool holds, const char *good, const char *bad)
{
    trial_say(trial, holds ? VERDICT_HOLDS : VERDICT_BROKEN, "%s", holds ? good : bad);
}

/* A watcher that is stopped or wedged holds its lock and arms nothing: its state tells. */
static char process_state(pid_t pid)
{
    CLEANUP(freep) char *path = xasprintf("/proc/%d/stat", (int)pid);
    CLEANUP(buffer_reset) struct buffer text = {0};

    if (fd_read_file(path, 4096, &text, NULL) < 0) {
        return '?';
    }
    const char *close = strrchr(text.data, ')');
    return close && close[1] == ' ' ? close[2] : '?';
}

static void claim_watcher(struct trial *trial, const struct inspection *walls)
{
    if (walls->watcher == 0) {
        trial_say(trial, VERDICT_BROKEN, "no watcher runs");
        return;
    }
    char state = process_state(walls->watcher);
    trial_note(trial, "process", json_pack("{s:i, s:s#}", "pid", (int)walls->watcher, "state", &state, (size_t)1));
    judge(trial, state == 'S' || state == 'R' || state == 'D', "it runs",
          "it holds its lock, but it is stopped or dying");
}

/* The differences that name the copy's tables. "box" is the beginning of "box-owned": the blank or colon behind
 * decides. */
static void claim_rules(struct trial *trial, const struct inspection *walls, enum ruleset_copy copy)
{
    const char *table = ruleset_table(copy);
    size_t found = 0;

    for (size_t i = 0; i < walls->differences.count; i++) {
        const char *line = walls->differences.items[i];
        bool owned = strstr(line, ruleset_table(RULESET_OWNED)) != NULL;
        if (owned == (copy == RULESET_OWNED)) {
            trial_note(trial, "difference", json_string(line));
            found++;
        }
    }
    if (copy == RULESET_OWNED && walls->watcher == 0) {
        trial_say(trial, VERDICT_BROKEN, "nobody holds the owned copy: no watcher runs");
    } else if (found) {
        trial_say(trial, VERDICT_BROKEN, "the tables %s are not as they must be", table);
    } else {
        trial_say(trial, VERDICT_HOLDS, "rules and elements are as they must be");
    }
}

static void claim_armed(struct trial *trial, const struct inspection *walls)
{
    const char *port = ground_fact(trial->ground, "box.port");

    for (size_t i = 0; i < walls->port_count; i++) {
        const struct arm_port *row = &walls->ports[i];
        if (!text_equal(row->interface, port)) {
            continue;
        }
        bool own = text_equal(row->mac, ground_fact(trial->ground, "box.mac")) &&
                   text_equal(row->address, ground_fact(trial->ground, "box.ip"));
        trial_note(trial, "port",
                   json_pack("{s:s, s:s, s:s, s:b, s:s}", "interface", row->interface, "mac", row->mac, "address",
                             row->address, "armed", row->armed, "reason", row->reason));
        judge(trial, row->armed && own, "armed with its own MAC and address",
              row->armed ? "it is armed with a MAC or an address that is not the box's" : row->reason);
        return;
    }
    trial_say(trial, VERDICT_BROKEN, "the box's port is not on the bridge");
}

static void claim_inspected(struct trial *trial)
{
    CLEANUP(inspect_reset) struct inspection walls = {0};
    CLEANUP(error_reset) struct error err = {0};
    const char *which = trial->claim->argument;

    if (inspect_walls(&walls, &err) < 0) {
        trial_not_judged(trial, &err);
    } else if (text_equal(which, "watcher")) {
        claim_watcher(trial, &walls);
    } else if (text_equal(which, "armed")) {
        claim_armed(trial, &walls);
    } else {
        claim_rules(trial, &walls, text_equal(which, "owned") ? RULESET_OWNED : RULESET_STATIC);
    }
}

/* Every port of the bridge, not only the drill's: one open port is a way in for all of them. */
static void claim_ports(struct trial *trial, bool isolation)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(error_reset) struct error err = {0};
    size_t count, ports = 0, bad = 0;

    if (link_list(&links, &count, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    const struct link *bridge = link_find(links, count, STACK_NETWORK);
    for (size_t i = 0; bridge && i < count; i++) {
        if (links[i].master != bridge->index) {
            continue;
        }
        ports++;
        bool holds = isolation ? links[i].isolated : !links[i].learning;
        if (!holds) {
            trial_note(trial, "port", json_string(links[i].name));
            bad++;
        }
    }
    if (ports == 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the bridge has no port");
    } else if (bad > 0) {
        trial_say(trial, VERDICT_BROKEN, "%zu of %zu ports: %s", bad, ports,
                  isolation ? "isolation is off" : "learning is on");
    } else {
        trial_say(trial, VERDICT_HOLDS, "on all %zu ports", ports);
    }
}

static void claim_filters(struct trial *trial, bool mac)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) struct filter *filters = NULL;
    CLEANUP(error_reset) struct error err = {0};
    const char *port = ground_fact(trial->ground, "box.port");
    size_t count;

    if (nft_open(&nft, &err) < 0 || filter_read(nft, &filters, &count, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    const struct filter *filter = port ? filter_find(filters, count, port) : NULL;
    judge(trial, filter && (mac ? filter->mac_live : filter->address_live), "its rules are loaded",
          filter ? "its rules are not loaded" : "no filter stands before the box's port");
}

/* The entry of the bridge's table for the box: on its port, static, sticky. */
static void claim_sticky(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    CLEANUP(error_reset) struct error err = {0};
    const char *port = ground_fact(trial->ground, "box.port");
    const char *mac = ground_fact(trial->ground, "box.mac");

    if (!port || !mac) {
        trial_say(trial, VERDICT_NOT_JUDGED, "there is no box");
        return;
    }
    const char *const words[] = {"bridge", "fdb", "show", "dev", port, NULL};
    if (trial_command(trial, "host", words, &result, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    char *rest = result.output.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (text_starts_with(line, mac) && strstr(line, "sticky") && strstr(line, "master")) {
            trial_say(trial, VERDICT_HOLDS, "%s", line);
            return;
        }
    }
    trial_say(trial, VERDICT_BROKEN, "no sticky entry binds the box's MAC to its port");
}

static void claim_settings(struct trial *trial)
{
    size_t bad = 0;

    for (size_t i = 0; i < BRIDGE_SETTING_COUNT; i++) {
        const struct bridge_setting *setting = &bridge_settings[i];
        CLEANUP(freep) char *live = NULL;
        (void)sysctl_read(setting->path, &live, NULL);
        bool holds = text_equal(live, setting->value);
        trial_note(trial, setting->name, json_pack("{s:s?, s:s}", "live", live, "want", setting->value));
        bad += !holds;
    }
    judge(trial, bad == 0, "all as they must be", "a parameter of the bridge is not as it must be");
}

static void claim_linklocal(struct trial *trial)
{
    CLEANUP(freep) struct link *links = NULL;
    CLEANUP(error_reset) struct error err = {0};
    size_t count;

    if (link_list(&links, &count, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    const struct link *bridge = link_find(links, count, STACK_NETWORK);
    judge(trial, bridge && !bridge->linklocal_learn, "such frames do not enter the table",
          "they write the bridge's table");
}

void walls_claim(struct trial *trial)
{
    static const struct {
        const char *argument;
        void (*simple)(struct trial *trial);
    } rows[] = {
        {"watcher", claim_inspected},   {"static", claim_inspected}, {"owned", claim_inspected},
        {"armed", claim_inspected},     {"sticky", claim_sticky},    {"settings", claim_settings},
        {"linklocal", claim_linklocal},
    };
    const char *which = trial->claim->argument;

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (text_equal(which, rows[i].argument)) {
            rows[i].simple(trial);
            return;
        }
    }
    if (text_equal(which, "isolated") || text_equal(which, "learning")) {
        claim_ports(trial, text_equal(which, "isolated"));
    } else {
        claim_filters(trial, text_equal(which, "mac"));
    }
}
