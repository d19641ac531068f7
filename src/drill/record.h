#ifndef BOX_DRILL_RECORD_H
#define BOX_DRILL_RECORD_H

#include "base/argv.h"
#include "base/json.h"
#include "base/narrate.h"
#include "drill/claim.h"
#include "drill/ground.h"

#include <stdbool.h>

/* The results of a run as they come in, and the report that is made of them. */
struct record {
    json_t *claims; /* array, in the order of the tables */
    json_t *phases; /* array of {"phase", "title", "seconds"} */
};

void record_open(struct record *ret_record);
void record_reset(struct record *record);

/* Notes what came of a claim. `answer` is what trial_run() gave, or NULL with `why` there is none; both borrowed. */
void record_add(struct record *record, const struct claim_table *table, const struct claim *claim, const json_t *answer,
                const char *why, int64_t ms);

/* Likewise for a claim that was not tried. */
void record_add_untried(struct record *record, const struct claim_table *table, const struct claim *claim,
                        enum verdict verdict, const char *reason);

/* The verdict noted for a claim; VERDICT_NOT_JUDGED where there is none. */
enum verdict record_verdict(const struct record *record, const char *id);

/* The report: {"schema", "kind", "started", "seconds", "box", "instrument", "host", "walls", "phases", "claims",
 * "counts", "notes", "complete"}. `kind` is "drill" or "prove". The caller owns it. */
json_t *record_report(const struct record *record, const struct ground *ground, const char *kind, const char *started,
                      int64_t ms, const struct argv *notes);

#endif
