#ifndef BOX_STACK_RULECHECK_H
#define BOX_STACK_RULECHECK_H

#include "base/error.h"
#include "host/nft.h"
#include "stack/ruleset.h"

/* Whether the loaded tables mean what the generator says. Texts cannot be compared as written: each version of nftables
 * lists the same rule in other words. So the generator's text is loaded into an empty network namespace of its own, and
 * what is listed there is what must be listed here. Needs root. */
struct rulecheck {
    char *listings[ARRAY_LENGTH(ruleset_families)];
};

/* Finds out whether this kernel and library know `meta ibrname`, by loading a ruleset with it into the namespace. */
int rulecheck_probe_bridge_meta(bool *ret_known, struct error *err);

/* What this host must list for the copy. The caller resets it. */
int rulecheck_expect(const struct ruleset *ruleset, enum ruleset_copy copy, struct rulecheck *ret_check,
                     struct error *err);

/* Compares rules and elements with what is loaded. `ret_difference` receives NULL where they agree, else one line that
 * says what is amiss; the caller frees it. */
int rulecheck_compare(struct nft *nft, const struct rulecheck *check, const struct ruleset *ruleset,
                      enum ruleset_copy copy, char **ret_difference, struct error *err);

void rulecheck_reset(struct rulecheck *check);

#endif
