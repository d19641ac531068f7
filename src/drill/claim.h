#ifndef BOX_DRILL_CLAIM_H
#define BOX_DRILL_CLAIM_H

#include "drill/verdict.h"

#include <stdbool.h>
#include <stddef.h>

struct trial;

/* Parts of the rehearsal, in the order in which they run. */
enum claim_phase {
    PHASE_SEMANTICS = 'A', /* what box takes for granted about Incus */
    PHASE_SURFACE = 'B',   /* every command and every refusal */
    PHASE_ISOLATION = 'C', /* attacks from a box, and into one */
    PHASE_HARDENING = 'D', /* candidate settings on a network of the drill's own */
    PHASE_DOOR = 'E',      /* a door from the host's loopback into a box */
    PHASE_MIGRATION = 'M', /* boxes of the older generation */
    PHASE_TEARDOWN = 'T',  /* what the drill made is gone, and only that */
};

enum claim_flag {
    CLAIM_ALONE = 1 << 0, /* disturbs other trials, or is disturbed by them: nothing else runs meanwhile */
    CLAIM_PROVE = 1 << 1, /* cheap and harmless enough for `box prove` against a user's running box */
    CLAIM_PEER = 1 << 2,  /* needs a second box */
    CLAIM_LAYER = 1 << 3, /* judges one wall by itself: BROKEN means that a layer is lost, though another may hold */
    CLAIM_FIRST = 1 << 4, /* part of the baseline: where it is not HOLDS, the phase's other claims are not judged */
};

/* One claim: a row of one of the tables below. Where `run` is NULL, the attack and its control are made and judged as
 * verdict_judge() says; an attack is "PLACE: SUBCOMMAND ARGUMENT...", where PLACE is box, peer, host or world and
 * {name} stands for a fact of the ground (ground.h). A fact that this host lacks makes the claim NOT JUDGED. */
struct claim {
    const char *id;   /* stable: what --claim takes and sabotages name */
    const char *text; /* what is claimed, one line */
    const char *row;  /* of the table of attacks in docs/isolation: "1" to "25", or NULL */
    const char *wall; /* what stops the attack, in a few words; NULL where nothing has to */
    enum expectation expect;
    const char *attack;
    const char *control;
    const char *listener; /* "PLACE: listen KIND ...", or NULL: who tells what arrived; {port} is where it listens, and
                             {token} the word that the attack, or the control, carries */
    int budget;     /* milliseconds for all of it; 0: the phase's own */
    unsigned flags; /* enum claim_flag */
    void (*run)(struct trial *trial);
    const char *argument; /* for run(), where several rows share one */
};

/* A phase: its rows, and what they share. */
struct claim_table {
    enum claim_phase phase;
    const char *title;
    const struct claim *claims;
    size_t count;
    int budget; /* of a claim that names none */
};

/* The tables, in order of phase; NULL ends the list. */
extern const struct claim_table *const claim_tables[];

/* True where the id stands in a list such as "C10T,C84". */
bool claim_is_listed(const char *list, const char *id);

/* The row of that id, or NULL; `ret_table` (may be NULL) receives its table. */
const struct claim *claim_find(const char *id, const struct claim_table **ret_table);

#endif
