#ifndef BOX_DRILL_TRIAL_H
#define BOX_DRILL_TRIAL_H

#include "base/process.h"
#include "drill/claim.h"
#include "drill/ground.h"
#include "drill/reply.h"

#include <stdint.h>

/* One claim being tried. A trial runs in a process of its own, so that nothing it does can outlive its budget. */
struct trial {
    const struct claim *claim;
    struct ground *ground; /* this process's own copy: a trial may add facts */
    struct client *client; /* ask with trial_client() */
    int64_t deadline;
    json_t *steps; /* what was done and seen, for the report */
    enum verdict verdict;
    char *reason;
};

/* Tries a claim within its budget and returns what the report shows of it: {"verdict", "reason", "steps"}. Never
 * fails: what cannot be tried is NOT JUDGED, with the reason. The caller owns the value. */
json_t *trial_run(const struct claim *claim, struct ground *ground, int budget);

/* For claims with a run() of their own. The last verdict said stands; one that says none is NOT JUDGED. */
void trial_say(struct trial *trial, enum verdict verdict, const char *format, ...) PRINTF_LIKE(3, 4);
void trial_not_judged(struct trial *trial, struct error *err); /* with the error's words; resets it */

/* The worker's own connection to the daemon. */
int trial_client(struct trial *trial, struct client **ret_client, struct error *err);

/* Makes an attack ("box: connect {gateway} 80") and waits for its reply; `role` is "attack", "control" or what else
 * the report should call it. ERR_NOT_FOUND for a fact that this host lacks. */
int trial_probe(struct trial *trial, const char *role, const char *attack, struct reply *ret_reply, struct error *err);

/* The same in two halves, for a listener or a victim that runs meanwhile. trial_stop() asks it to tell at once what it
 * has so far. Whoever starts must finish. */
struct trial_probe;
int trial_start(struct trial *trial, const char *attack, struct trial_probe **ret_probe, struct error *err);
/* As trial_start() for "PLACE: listen ...", once it is ready: from then on it misses nothing. Sets the fact "port". */
int trial_listen(struct trial *trial, const char *listener, struct trial_probe **ret_probe, struct error *err);
void trial_stop(struct trial_probe *probe);
int trial_finish(struct trial *trial, const char *role, struct trial_probe *probe, struct reply *ret_reply,
                 struct error *err);

/* True where a listener's reply shows an event whose data, of the first bytes, hold `text`. */
bool trial_heard(const struct reply *reply, const char *text);

/* Runs a command in a box, or where `place` is "host" here, as root; notes it as a step. */
int trial_command(struct trial *trial, const char *place, const char *const *words, struct process_result *ret_result,
                  struct error *err);

/* Notes a fact that was read, as a step. Takes the value over. */
void trial_note(struct trial *trial, const char *role, json_t *value);

/* Waits, for an effect that has no event of its own; returns false where the budget is over. */
bool trial_pause(const struct trial *trial, int milliseconds);

#endif
