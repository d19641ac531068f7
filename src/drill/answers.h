#ifndef BOX_DRILL_ANSWERS_H
#define BOX_DRILL_ANSWERS_H

#include "base/json.h"

/* The block to paste: one line a question that a reader of the drill asks, from a report. The caller frees the text. */
char *answers_write(const json_t *report);

/* The summary for a terminal: each phase with its counts, then every claim that does not hold, with the reason. The
 * caller frees the text. */
char *answers_summary(const json_t *report);

#endif
