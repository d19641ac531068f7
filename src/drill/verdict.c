/* From what was observed to a verdict: the one place that decides what a probe's answer means.
 * Not for: observing. It sees no network, so that every case of it can be tested. */
#include "drill/verdict.h"

#include "base/memory.h"
#include "base/text.h"

static const char *const names[] = {
    [VERDICT_NOT_JUDGED] = "NOT JUDGED",
    [VERDICT_HOLDS] = "HOLDS",
    [VERDICT_BROKEN] = "BROKEN",
    [VERDICT_SKIPPED] = "SKIPPED",
};

const char *verdict_name(enum verdict verdict)
{
    return names[verdict];
}

enum verdict verdict_from_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (text_equal(name, names[i])) {
            return (enum verdict)i;
        }
    }
    return VERDICT_NOT_JUDGED;
}

bool verdict_arrived(const struct observation *seen)
{
    if (!seen->made) {
        return seen->listened && seen->arrived;
    }
    return seen->said == REPLY_REACHABLE || seen->said == REPLY_REFUSED || (seen->listened && seen->arrived);
}

static const char *unseen(const struct observation *seen)
{
    return seen->why ? seen->why : "it gave no answer that can be read";
}

static enum verdict judge_silence(const struct observation *attack, const struct observation *control,
                                  char **ret_reason)
{
    /* First of all: what arrived has arrived, whatever became of the control. */
    if (verdict_arrived(attack)) {
        *ret_reason =
            xasprintf("the attack arrived: %s", attack->listened && attack->arrived ? "the listener saw it"
                                                : attack->said == REPLY_REFUSED     ? "it was refused by the far end"
                                                                                    : "it was answered");
        return VERDICT_BROKEN;
    }
    if (!attack->made) {
        *ret_reason = xasprintf("the attack could not be made: %s", unseen(attack));
        return VERDICT_NOT_JUDGED;
    }
    if (attack->said == REPLY_ERROR) {
        *ret_reason =
            xasprintf("the attack could not be made: %s", attack->why ? attack->why : "the instrument failed");
        return VERDICT_NOT_JUDGED;
    }
    if (attack->said == REPLY_DONE && !attack->listened) {
        *ret_reason = xstrdup("something was sent, and nobody listened at the far end");
        return VERDICT_NOT_JUDGED;
    }
    if (!control) {
        *ret_reason = xstrdup("there is no control, so silence proves nothing");
        return VERDICT_NOT_JUDGED;
    }
    if (!verdict_arrived(control)) {
        *ret_reason = xasprintf("the control failed, so silence proves nothing: %s",
                                control->made ? reply_verdict_name(control->said) : unseen(control));
        return VERDICT_NOT_JUDGED;
    }
    *ret_reason = xasprintf("%s, and the control arrived",
                            attack->said == REPLY_UNREACHABLE ? "stopped on the way" : "nothing arrived");
    return VERDICT_HOLDS;
}

static enum verdict judge_reachable(const struct observation *attack, const struct observation *control,
                                    char **ret_reason)
{
    if (!attack->made || attack->said == REPLY_ERROR) {
        *ret_reason = xasprintf("the probe could not be made: %s", unseen(attack));
        return VERDICT_NOT_JUDGED;
    }
    if (attack->said == REPLY_REACHABLE) {
        *ret_reason = xstrdup("it was answered");
        return VERDICT_HOLDS;
    }
    /* A far end that is down for everybody says nothing about the box. */
    if (control && control->said != REPLY_REACHABLE) {
        *ret_reason =
            xasprintf("%s, but the control failed too: the far end is not there", reply_verdict_name(attack->said));
        return VERDICT_NOT_JUDGED;
    }
    *ret_reason = xasprintf("no answer: %s", reply_verdict_name(attack->said));
    return VERDICT_BROKEN;
}

static enum verdict judge_nameless(const struct observation *attack, const struct observation *control,
                                   char **ret_reason)
{
    if (!attack->made || attack->said == REPLY_ERROR) {
        *ret_reason = xasprintf("the question could not be asked: %s", unseen(attack));
        return VERDICT_NOT_JUDGED;
    }
    if (attack->said == REPLY_REACHABLE) {
        *ret_reason = xstrdup("it was answered with an address");
        return VERDICT_BROKEN;
    }
    /* A resolver that answers nobody keeps every secret. */
    if (!control || !control->made || control->said != REPLY_REACHABLE) {
        *ret_reason = xstrdup("the control failed: no name is answered here, so silence about this one proves nothing");
        return VERDICT_NOT_JUDGED;
    }
    *ret_reason = xasprintf("%s, and another name was answered",
                            attack->said == REPLY_REFUSED ? "the server says that it has no address" : "no answer");
    return VERDICT_HOLDS;
}

enum verdict verdict_judge(enum expectation expectation, const struct observation *attack,
                           const struct observation *control, char **ret_reason)
{
    switch (expectation) {
    case EXPECT_REACHABLE:
        return judge_reachable(attack, control, ret_reason);
    case EXPECT_NAMELESS:
        return judge_nameless(attack, control, ret_reason);
    case EXPECT_SILENCE:
        break;
    }
    return judge_silence(attack, control, ret_reason);
}

int verdict_exit_status(const unsigned counts[4], bool strict)
{
    if (counts[VERDICT_BROKEN] > 0 || counts[VERDICT_HOLDS] == 0) {
        return 1;
    }
    return strict && counts[VERDICT_NOT_JUDGED] > 0 ? 1 : 0;
}
