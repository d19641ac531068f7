/* Another user's instance on the boxes' network: one of a restricted project may switch its NIC's filters off.
 * Not for: what such a user may see of others; that is the daemon's. */
#include "drill/restricted.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "drill/crew.h"
#include "drill/siegecraft.h"
#include "incus/instance.h"
#include "incus/operation.h"
#include "stack/names.h"

#include <stdlib.h>

enum { OPERATION_MS = 60000, BOOT_MS = 40000, DISARM_MS = 500 };

#define IN_PROJECT "?project=" RESTRICTED_PROJECT
#define WEB        "restricted: connect {web} {web.port} --timeout 1200"

static int make_project(struct client *client, const char *run, struct error *err)
{
    CLEANUP(json_freep)
    json_t *body = json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "name", RESTRICTED_PROJECT, "config",
                             CREW_TAG, run, "features.images", "false", "features.networks", "false",
                             "features.profiles", "true", "restricted", "true", "restricted.devices.nic", "managed",
                             "restricted.devices.disk", "managed", "restricted.networks.access", STACK_NETWORK);

    return client_request(client, "POST", "/1.0/projects", body, NULL, err);
}

/* The devices of the instance, with the filters of its NIC as they are on a box, or off. */
static json_t *devices(bool filtered)
{
    const char *value = filtered ? "true" : "false";

    return json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s, s:s}}", "root", "type", "disk", "path", "/",
                     "pool", STACK_POOL, STACK_NIC, "type", "nic", "name", "eth0", "network", STACK_NETWORK,
                     "security.port_isolation", value, "security.mac_filtering", value, "security.ipv4_filtering",
                     value);
}

static int make_instance(struct trial *trial, struct client *client, struct client *theirs, struct error *err)
{
    CLEANUP(json_freep) json_t *box = NULL;
    const char *like = ground_fact(trial->ground, "box.name"), *name = ground_fact(trial->ground, "restricted.name");

    if (!like) {
        return error_set(err, ERR_STATE, "there is no box whose image could be taken");
    }
    if (instance_get(client, like, &box, err) < 0) {
        return -1;
    }
    CLEANUP(json_freep)
    json_t *body =
        json_pack("{s:s, s:s, s:[], s:o, s:{s:s}, s:{s:s, s:s}, s:b}", "name", name, "type", "container", "profiles",
                  "devices", devices(true), "config", CREW_TAG, ground_fact(trial->ground, "run"), "source", "type",
                  "image", "fingerprint", json_text(json_object_get(box, "config"), "volatile.base_image"), "start", 1);

    return instance_create(theirs, body, OPERATION_MS, NULL, err) < 0 ? -1
                                                                      : crew_equip(trial->ground, theirs, name, err);
}

static bool reaches_web(struct trial *trial, const char *role)
{
    CLEANUP(reply_reset) struct reply reply = {0};

    return trial_probe(trial, role, WEB, &reply, NULL) == 0 &&
           (reply.verdict == REPLY_REACHABLE || reply.verdict == REPLY_REFUSED);
}

static bool comes_up(struct trial *trial)
{
    int64_t until = clock_deadline(BOOT_MS);

    do {
        if (reaches_web(trial, "control")) {
            return true;
        }
    } while (clock_left(until) > 0 && trial_pause(trial, 300));
    return false;
}

/* Whether this host hears it; the same from this host itself must arrive. -1 with the trial not judged. */
static int reaches_host(struct trial *trial, const char *role)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};
    CLEANUP(reply_reset) struct reply heard = {0};
    struct trial_probe *listener;
    struct error err = {0};

    if (trial_listen(trial, "host: listen tcp --echo --count 0 --timeout 8000", &listener, &err) < 0) {
        trial_not_judged(trial, &err);
        return -1;
    }
    bool made = siegecraft_probe(trial, role, "restricted: connect {gateway} {port} --timeout 1200", &attack) &&
                siegecraft_probe(trial, "control", "host: connect {gateway} {port} --echo --timeout 1200", &control);

    trial_stop(listener);
    (void)trial_finish(trial, "listener", listener, &heard, NULL);
    if (!made) {
        return -1;
    }
    if (!json_truth(control.evidence, "echo")) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: this host does not reach its own listener");
        return -1;
    }
    return attack.verdict == REPLY_REACHABLE || attack.verdict == REPLY_REFUSED;
}

/* What its user may do: all three filters off. Not every form of it is taken by every Incus: then it is not judged. */
static int switch_off(struct trial *trial, struct client *theirs, struct error *err)
{
    CLEANUP(json_freep) json_t *body = json_pack("{s:o}", "devices", devices(false));

    return instance_patch(theirs, ground_fact(trial->ground, "restricted.name"), body, err);
}

static void try_it(struct trial *trial, struct client *theirs)
{
    struct error err = {0};

    if (!comes_up(trial)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: with its filters on it does not reach the internet");
        return;
    }
    int walled = reaches_host(trial, "attack");

    if (walled < 0) {
        return;
    }
    if (walled > 0) {
        trial_say(trial, VERDICT_BROKEN, "it reaches this host");
        return;
    }
    if (switch_off(trial, theirs, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    (void)trial_pause(trial, DISARM_MS);
    int unfiltered = reaches_host(trial, "attack without filters");

    if (unfiltered > 0) {
        trial_say(trial, VERDICT_BROKEN, "with its filters off it reaches this host");
    } else if (unfiltered == 0 && reaches_web(trial, "attack without filters")) {
        trial_say(trial, VERDICT_BROKEN, "with its filters off its port still passes");
    } else if (unfiltered == 0) {
        trial_say(trial, VERDICT_HOLDS, "with its filters it reaches the internet and not this host; without, nothing");
    }
}

void restricted_claim(struct trial *trial)
{
    CLEANUP(client_closep) struct client *theirs = NULL;
    CLEANUP(error_reset) struct error err = {0};
    const char *run = ground_fact(trial->ground, "run");
    CLEANUP(freep) char *name = xasprintf(CREW_PREFIX "r-%s", run ? run : "0");
    struct client *client;

    if (!trial->ground->world || !run) {
        trial_say(trial, VERDICT_NOT_JUDGED,
                  "this needs a restricted user's project, which the drill does not make on somebody's host");
        return;
    }
    ground_set(trial->ground, "restricted.name", name);
    if (trial_client(trial, &client, &err) < 0 || make_project(client, run, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    /* From here on this process, and what it forks, speaks to the daemon as one who has that project. */
    (void)setenv("INCUS_PROJECT", RESTRICTED_PROJECT, 1);
    if (client_open(&theirs, &err) < 0 || make_instance(trial, client, theirs, &err) < 0) {
        trial_not_judged(trial, &err);
    } else {
        try_it(trial, theirs);
    }
    if (restricted_remove(client, &err) < 0) {
        trial_note(trial, "cleaning", json_string(err.message));
    }
}

int restricted_remove(struct client *client, struct error *err)
{
    CLEANUP(json_freep) json_t *instances = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    const json_t *row;
    size_t at;

    if (client_get(client, "/1.0/instances" IN_PROJECT "&recursion=1", &instances, &failure) < 0) {
        return failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
    }
    json_array_foreach(instances, at, row)
    {
        CLEANUP(freep) char *state = xasprintf("/1.0/instances/%s/state" IN_PROJECT, json_text(row, "name"));
        CLEANUP(freep) char *path = xasprintf("/1.0/instances/%s" IN_PROJECT, json_text(row, "name"));
        CLEANUP(json_freep) json_t *stop = json_pack("{s:s, s:b, s:i}", "action", "stop", "force", 1, "timeout", 0);

        (void)operation_run(client, "PUT", state, stop, OPERATION_MS, NULL, NULL);
        if (operation_run(client, "DELETE", path, NULL, OPERATION_MS, NULL, err) < 0) {
            return -1;
        }
    }
    if (client_request(client, "DELETE", "/1.0/projects/" RESTRICTED_PROJECT, NULL, NULL, &failure) < 0 &&
        failure.code != ERR_NOT_FOUND) {
        return error_move(err, &failure);
    }
    return 0;
}
