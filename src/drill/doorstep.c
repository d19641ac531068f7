/* Phase E: a door from this host's loopback to a port of a box, and nothing else that it opens.
 * Not for: how a door is made; the drill calls `box expose`, as its user would. */
#include "base/memory.h"
#include "base/text.h"
#include "drill/phases.h"
#include "drill/siegecraft.h"

#include <string.h>

static bool succeeds(struct trial *trial, const char *text)
{
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (!siegecraft_box(trial, text, &result)) {
        return false;
    }
    if (result.status != 0) {
        trial_say(trial, VERDICT_NOT_JUDGED, "`box %s` ended with %d", text, result.status);
    }
    return result.status == 0;
}

/* A server in the box, a door to it, and what is tried there meanwhile; then the door is shut. The facts "port" and
 * "door" are the two ends. */
static void with_door(struct trial *trial, void (*use)(struct trial *trial))
{
    CLEANUP(reply_reset) struct reply heard = {0};
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep) char *door = xasprintf("%u", siegecraft_port() + 20000);
    struct trial_probe *server;

    if (trial_listen(trial, "box: listen tcp --echo --address 127.0.0.1 --count 0 --timeout 20000", &server, &err) <
        0) {
        trial_not_judged(trial, &err);
        return;
    }
    CLEANUP(freep) char *port = xstrdup(ground_fact(trial->ground, "port"));
    ground_set(trial->ground, "inner", port);
    ground_set(trial->ground, "door", door);
    if (succeeds(trial, "expose {box.name} {inner} {door}")) {
        use(trial);
        CLEANUP(process_result_reset) struct process_result removed = {0};
        (void)siegecraft_box(trial, "expose {box.name} --remove {inner}", &removed);
    }
    trial_stop(server);
    (void)trial_finish(trial, "server", server, &heard, NULL);
}

static bool through(struct trial *trial, const char *role, const char *probe)
{
    CLEANUP(reply_reset) struct reply reply = {0};

    return trial_probe(trial, role, probe, &reply, NULL) == 0 && json_truth(reply.evidence, "echo");
}

#define THROUGH "host: connect 127.0.0.1 {door} --echo --timeout 1500"

static void use_open(struct trial *trial)
{
    bool open = through(trial, "attack", THROUGH);

    trial_say(trial, open ? VERDICT_HOLDS : VERDICT_BROKEN, "%s",
              open ? "the server in the box answers through it" : "the server in the box does not answer through it");
}

static void claim_open(struct trial *trial)
{
    with_door(trial, use_open);
}

/* The door must not be there for the one who asks in the argument, while this host's loopback passes. */
static void use_elsewhere(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply attack = {0};

    if (!through(trial, "control", THROUGH)) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the door does not pass");
        return;
    }
    if (!siegecraft_probe(trial, "attack", trial->claim->argument, &attack)) {
        return;
    }
    bool passes = attack.verdict == REPLY_REACHABLE;
    trial_say(trial, passes ? VERDICT_BROKEN : VERDICT_HOLDS, "%s: %s",
              passes ? "it leads there too" : "not from there", reply_verdict_name(attack.verdict));
}

static void claim_elsewhere(struct trial *trial)
{
    with_door(trial, use_elsewhere);
}

/* What the box itself reaches is the same beside an open door: nothing of this host. */
static void use_beside(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply attack = {0};
    CLEANUP(reply_reset) struct reply control = {0};
    CLEANUP(reply_reset) struct reply heard = {0};
    struct trial_probe *listener;
    struct error err = {0};

    if (trial_listen(trial, "host: listen tcp --echo --count 0 --timeout 8000", &listener, &err) < 0) {
        trial_not_judged(trial, &err);
        return;
    }
    bool made = siegecraft_probe(trial, "attack", "box: connect {gateway} {port} --timeout 1200", &attack) &&
                siegecraft_probe(trial, "control", "host: connect {gateway} {port} --echo --timeout 1200", &control);
    trial_stop(listener);
    (void)trial_finish(trial, "listener", listener, &heard, NULL);
    if (!made) {
        return;
    }
    struct observation seen = {.made = true, .said = attack.verdict};
    struct observation checked = {.made = true, .said = control.verdict};
    char *reason;
    enum verdict verdict = verdict_judge(EXPECT_SILENCE, &seen, &checked, &reason);
    trial_say(trial, verdict, "%s", reason);
    free(reason);
}

static void claim_beside(struct trial *trial)
{
    with_door(trial, use_beside);
}

static void use_taken(struct trial *trial)
{
    CLEANUP(process_result_reset) struct process_result result = {0};

    if (!siegecraft_box(trial, "expose {peer.name} 80 {door}", &result)) {
        return;
    }
    const char *said = result.errors.data ? result.errors.data : "";
    bool names = strstr(said, ground_fact(trial->ground, "box.name")) != NULL;
    trial_say(trial, result.status == 1 && names ? VERDICT_HOLDS : VERDICT_BROKEN, "exit status %d%s", result.status,
              names ? ", and it names the holder" : ", and it does not name the holder");
}

static void claim_taken(struct trial *trial)
{
    with_door(trial, use_taken);
}

static void claim_shut(struct trial *trial)
{
    CLEANUP(reply_reset) struct reply after = {0};

    with_door(trial, use_open);
    if (trial->verdict != VERDICT_HOLDS) {
        trial_say(trial, VERDICT_NOT_JUDGED, "the control failed: the door did not pass while it was open");
        return;
    }
    if (siegecraft_probe(trial, "attack", "host: connect 127.0.0.1 {door} --timeout 800", &after)) {
        trial_say(trial, after.verdict == REPLY_REFUSED ? VERDICT_HOLDS : VERDICT_BROKEN, "afterwards: %s",
                  reply_verdict_name(after.verdict));
    }
}

static void claim_refused(struct trial *trial)
{
    CLEANUP(freep) char *copy = xstrdup(trial->claim->argument);
    char *rest = copy;

    for (char *port; (port = strsep(&rest, " "));) {
        CLEANUP(process_result_reset) struct process_result result = {0};
        CLEANUP(freep) char *text = xasprintf("expose {box.name} %s", port);
        if (!siegecraft_box(trial, text, &result)) {
            return;
        }
        if (result.status != 2) {
            trial_say(trial, VERDICT_BROKEN, "port %s: exit status %d", port, result.status);
            return;
        }
    }
    trial_say(trial, VERDICT_HOLDS, "each is refused");
}

static const struct claim claims[] = {
    {"E01", "A door leads from this host's loopback to a server on the box's own", .run = claim_open,
     .flags = CLAIM_FIRST},
    {"E02", "A door is not there on this host's uplink address", .run = claim_elsewhere,
     .argument = "host: connect {uplink} {door} --timeout 800"},
    {"E03", "A door is not there on the gateway's address", .run = claim_elsewhere,
     .argument = "host: connect {gateway} {door} --timeout 800"},
    {"E04", "A door is not there for the world", .run = claim_elsewhere,
     .argument = "world: connect {uplink} {door} --timeout 1200"},
    {"E05", "A door is not there for another box", .run = claim_elsewhere,
     .argument = "peer: connect {gateway} {door} --timeout 1200"},
    {"E06", "A door is not there for the box itself", .run = claim_elsewhere,
     .argument = "box: connect {gateway} {door} --timeout 1200"},
    {"E07", "Beside an open door the box still reaches nothing of this host", .run = claim_beside},
    {"E08", "A port that another box's door holds is refused, and the holder named", .run = claim_taken},
    {"E09", "A door that was removed is shut", .run = claim_shut},
    {"E10", "What is no port is refused", .run = claim_refused, .argument = "0 65536 080 +1 3000/udp"},
};

const struct claim_table doorstep_table = {
    .phase = PHASE_DOOR,
    .title = "a door from the host's loopback, and nothing else that it opens",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 25000,
};
