/* The drill's own stack of the older generation, with one box on it.
 * Not for: moving that box; see migration.c. */
#include "drill/legacy.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/tag.h"
#include "drill/crew.h"
#include "drill/siegecraft.h"
#include "host/nft.h"
#include "incus/instance.h"
#include "incus/server.h"
#include "stack/dismantle.h"
#include "stack/names.h"
#include "stack/subnet.h"

#include <string.h>

enum { OPERATION_MS = 60000, LEASE_MS = 60000 };

static const char tables[] =
    "table inet " OLDER_NFT_TABLE " {\n chain forward {\n  type filter hook forward priority 0;\n"
    "  iifname \"" OLDER_NETWORK "\" counter\n }\n}\n"
    "table bridge " OLDER_NFT_TABLE " {\n chain forward {\n  type filter hook forward priority "
    "0;\n  iifname \"" OLDER_NETWORK "\" counter\n }\n}\n";

char *legacy_name(const char *run)
{
    return xasprintf(CREW_PREFIX "m-%s", run);
}

/* Somebody's older generation is his, whatever state it is in. */
static int check_free(struct client *client, struct error *err)
{
    CLEANUP(argv_reset) struct argv standing = {0};
    CLEANUP(freep) struct subnet_claim *claims = NULL;
    struct subnet wanted;
    size_t count = 0;

    if (dismantle_list(client, DISMANTLE_OLDER, STORAGE_KEPT, NULL, &standing, err) < 0 ||
        subnet_claims(NULL, &claims, &count, err) < 0 || !subnet_parse(LEGACY_SUBNET, &wanted)) {
        return -1;
    }
    if (standing.count > 0) {
        CLEANUP(freep) char *names = argv_join(&standing, ", ");
        return error_set(err, ERR_EXISTS, "this host carries the older generation, which is not the drill's: %s",
                         names);
    }
    for (size_t i = 0; i < count; i++) {
        if (subnet_overlap(claims[i].subnet, wanted)) {
            return error_set(err, ERR_EXISTS, "%s uses " LEGACY_SUBNET, claims[i].owner);
        }
    }
    return 0;
}

static int lay_tables(struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;

    return crew_note("table", OLDER_NFT_TABLE, err) < 0 || nft_open(&nft, err) < 0 || nft_apply(nft, tables, err) < 0
               ? -1
               : 0;
}

static int lay_stack(struct client *client, const char *run, struct error *err)
{
    CLEANUP(json_freep)
    json_t *network =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "name", OLDER_NETWORK, "type", "bridge", "config", CREW_TAG,
                  run, "ipv4.address", LEGACY_GATEWAY "/24", "ipv4.nat", "true", "ipv6.address", "none");
    CLEANUP(json_freep) json_t *acl = json_pack("{s:s, s:{s:s}}", "name", OLDER_ACL, "config", CREW_TAG, run);
    CLEANUP(json_freep)
    json_t *profile = json_pack("{s:s, s:{s:s, s:s}, s:{s:{s:s, s:s}, s:{s:s, s:s, s:s}}}", "name", OLDER_PROFILE,
                                "config", CREW_TAG, run, LEGACY_KEY, LEGACY_VALUE, "devices", STACK_NIC, "type", "nic",
                                "network", OLDER_NETWORK, "root", "type", "disk", "path", "/", "pool", STACK_POOL);

    return lay_tables(err) < 0 || client_request(client, "POST", "/1.0/networks", network, NULL, err) < 0 ||
                   client_request(client, "POST", "/1.0/network-acls", acl, NULL, err) < 0 ||
                   client_request(client, "POST", "/1.0/profiles", profile, NULL, err) < 0
               ? -1
               : 0;
}

/* A copy of the drill's first box as it was minted. */
static int copy_box(struct trial *trial, const char *name, struct error *err)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    const char *source = ground_fact(trial->ground, "box.name");
    CLEANUP(freep) char *from = xasprintf("%s/pristine", source ? source : "");
    const char *const words[] = {trial->ground->program, "new", "--name", name, "--from", from, NULL};

    if (!source) {
        return error_set(err, ERR_STATE, "there is no box to make one of the older generation of");
    }
    if (crew_note("instance", name, err) < 0 || trial_command(trial, "host", words, &result, err) < 0) {
        return -1;
    }
    return result.status == 0 ? 0 : error_set(err, ERR_STATE, "`box new --from %s` ended with %d", from, result.status);
}

/* Its user, and a file of his. */
static int furnish(struct trial *trial, const char *run, struct error *err)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    const char *const words[] = {"sh",
                                 "-c",
                                 "{ id " TAG_OLDER_USER " || useradd -m -s /bin/bash " TAG_OLDER_USER
                                 "; } >/dev/null 2>&1 && echo \"$1\" >" LEGACY_WORK " && sync",
                                 "sh",
                                 run,
                                 NULL};

    if (trial_command(trial, "older", words, &result, err) < 0) {
        return -1;
    }
    return result.status == 0 ? 0 : error_set(err, ERR_STATE, "a user could not be made in it");
}

/* What box stamps goes, the older tag comes; the daemon's own notes stay. */
static json_t *older_config(const json_t *instance, const char *run)
{
    json_t *config = json_object(), *value;
    const char *key;

    json_object_foreach(json_object_get(instance, "config"), key, value)
    {
        if (!text_equal(key, TAG_KEY) && !text_starts_with(key, TAG_KEY ".")) {
            json_object_set(config, key, value);
        }
    }
    json_object_set_new(config, TAG_OLDER, json_string("1"));
    json_object_set_new(config, CREW_TAG, json_string(run));
    return config;
}

static int make_older(struct client *client, const char *name, const char *run, struct error *err)
{
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_change_state(client, name, "stop", 30, false, OPERATION_MS, NULL, err) < 0 ||
        instance_get(client, name, &instance, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:O, s:O, s:o, s:{}, s:[s]}", "architecture", json_object_get(instance, "architecture"),
                             "ephemeral", json_object_get(instance, "ephemeral"), "config", older_config(instance, run),
                             "devices", "profiles", OLDER_PROFILE);

    return instance_put(client, name, NULL, body, OPERATION_MS, err) < 0 ||
                   instance_snapshot_create(client, name, LEGACY_SNAPSHOT, OPERATION_MS, NULL, err) < 0 ||
                   instance_change_state(client, name, "start", -1, false, OPERATION_MS, NULL, err) < 0
               ? -1
               : 0;
}

static int wait_for_lease(struct trial *trial, struct client *client, const char *name, struct error *err)
{
    int64_t until = clock_deadline(LEASE_MS);
    CLEANUP(json_freep) json_t *instance = NULL;

    if (instance_get(client, name, &instance, err) < 0) {
        return -1;
    }
    const char *mac = tag_value(instance, "volatile." STACK_NIC ".hwaddr");

    do {
        CLEANUP(json_freep) json_t *leases = NULL;
        const json_t *row;
        size_t at;

        if (server_leases(client, OLDER_NETWORK, &leases, err) < 0) {
            return -1;
        }
        json_array_foreach(leases, at, row)
        {
            if (text_equal(json_text(row, "hwaddr"), mac) && text_starts_with(json_text(row, "address"), "10.87.0.")) {
                return 0;
            }
        }
    } while (clock_left(until) > 0 && trial_pause(trial, 200));
    return error_set(err, ERR_TIMEOUT, "%s got no lease from " OLDER_NETWORK, name);
}

int legacy_lay(struct trial *trial, struct error *err)
{
    const char *run = ground_fact(trial->ground, "run"), *name = ground_fact(trial->ground, "older.name");
    struct client *client;

    return trial_client(trial, &client, err) < 0 || check_free(client, err) < 0 || lay_stack(client, run, err) < 0 ||
                   copy_box(trial, name, err) < 0 || furnish(trial, run, err) < 0 ||
                   make_older(client, name, run, err) < 0 || wait_for_lease(trial, client, name, err) < 0 ||
                   crew_equip(trial->ground, client, name, err) < 0
               ? -1
               : 0;
}
