#ifndef BOX_DRILL_PHASES_H
#define BOX_DRILL_PHASES_H

#include "drill/claim.h"

/* One table a phase, each in the file of its name. */
extern const struct claim_table semantics_table; /* A */
extern const struct claim_table surface_table;   /* B */
extern const struct claim_table isolation_table; /* C */
extern const struct claim_table hardening_table; /* D */
extern const struct claim_table doorstep_table;  /* E */
extern const struct claim_table migration_table; /* M */
extern const struct claim_table teardown_table;  /* T */

#endif
