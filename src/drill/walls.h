#ifndef BOX_DRILL_WALLS_H
#define BOX_DRILL_WALLS_H

#include "base/json.h"

struct trial;

/* The walls as they are loaded in the kernel, for the report: {"digest", "static", "owned", "watcher", "tables"}: the
 * SHA-256 over what `nft list table` gives for each table of ours, without counters and elements; and which copy is
 * there. Never fails: what cannot be read is null. The caller owns the value. */
json_t *walls_describe(void);

/* Claims about one wall each, read from the kernel rather than attacked: `argument` of the row says which. */
void walls_claim(struct trial *trial);

#endif
