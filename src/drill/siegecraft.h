#ifndef BOX_DRILL_SIEGECRAFT_H
#define BOX_DRILL_SIEGECRAFT_H

#include "drill/trial.h"

/* What attacks of several steps share. */

/* As trial_probe() and trial_start(); false with the trial not judged. An instrument that answers with an error has
 * not probed. */
bool siegecraft_probe(struct trial *trial, const char *role, const char *attack, struct reply *ret_reply);
bool siegecraft_start(struct trial *trial, const char *attack, struct trial_probe **ret_probe);

/* Runs box on this host with the words of a text, facts filled in; false with the trial not judged. */
bool siegecraft_box(struct trial *trial, const char *text, struct process_result *ret_result);

/* A port that no run before has used: stale conntrack entries fake successes. */
unsigned siegecraft_port(void);

/* An attack beside a talk between this host and the other box. */
struct siegecraft_result {
    int64_t captured;       /* packets for the other box that came to the attacker */
    int64_t sent, answered; /* of the talk */
};

/* Lets this host ping the other box for two seconds while `attack` runs (NULL: nothing, the control). -1 with the trial
 * not judged. */
int siegecraft_beside_talk(struct trial *trial, const char *role, const char *attack, struct siegecraft_result *ret_result);

#endif
