/* What attacks of several steps share: probes that end the trial where they cannot be made, and a victim that talks.
 * Not for: verdicts. */
#include "drill/siegecraft.h"

#include "base/memory.h"

#include <sys/random.h>

bool siegecraft_probe(struct trial *trial, const char *role, const char *attack, struct reply *ret_reply)
{
    struct error err = {0};

    if (trial_probe(trial, role, attack, ret_reply, &err) < 0) {
        (void)error_wrap(&err, "%s", role);
        trial_not_judged(trial, &err);
        return false;
    }
    if (ret_reply->verdict == REPLY_ERROR) {
        trial_say(trial, VERDICT_NOT_JUDGED, "%s: %s", role, ret_reply->why);
        return false;
    }
    return true;
}

bool siegecraft_start(struct trial *trial, const char *attack, struct trial_probe **ret_probe)
{
    struct error err = {0};

    if (trial_start(trial, attack, ret_probe, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    return true;
}

unsigned siegecraft_port(void)
{
    uint16_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
        abort();
    }
    return 20000 + random % 12000;
}

int siegecraft_beside_talk(struct trial *trial, const char *role, const char *attack,
                           struct siegecraft_result *ret_result)
{
    CLEANUP(reply_reset) struct reply victim = {0};
    CLEANUP(reply_reset) struct reply reply = {0};
    struct trial_probe *talk;
    bool made = true;

    *ret_result = (struct siegecraft_result){0};
    if (!siegecraft_start(trial, "host: icmp {peer.ip} --all --count 25 --interval-ms 80 --timeout 2600", &talk)) {
        return -1;
    }
    if (attack) {
        made = siegecraft_probe(trial, role, attack, &reply);
    }
    struct error err = {0};
    if (trial_finish(trial, "victim", talk, &victim, &err) < 0) {
        trial_not_judged(trial, &err);
        return -1;
    }
    if (!made) {
        return -1;
    }
    ret_result->captured = json_number(json_object_get(reply.evidence, "captured"), "packets", 0);
    ret_result->sent = json_number(victim.evidence, "sent", 0);
    ret_result->answered = json_number(victim.evidence, "answered", 0);
    return 0;
}

bool siegecraft_box(struct trial *trial, const char *text, struct process_result *ret_result)
{
    CLEANUP(freep) char *line = xasprintf("host: %s", text);
    CLEANUP(freep) char *place = NULL;
    CLEANUP(argv_reset) struct argv words = {0};
    CLEANUP(argv_reset) struct argv argv = {0};
    struct error err = {0};

    if (ground_expand(trial->ground, line, &place, &words, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    argv_push(&argv, trial->ground->program);
    argv_push_all(&argv, (const char *const *)words.items);
    if (trial_command(trial, "host", (const char *const *)argv.items, ret_result, &err) < 0) {
        trial_not_judged(trial, &err);
        return false;
    }
    return true;
}
