#ifndef BOX_STACK_PLAN_H
#define BOX_STACK_PLAN_H

#include "host/link.h"
#include "host/nft.h"
#include "stack/arm.h"
#include "stack/filter.h"
#include "stack/ruleset.h"

#include <stdbool.h>
#include <stddef.h>

/* What the walls must be right now: facts of the kernel, and the pure judgement over them. The watcher loads what it
 * says; doctor compares. */
struct plan_facts {
    struct link *links;
    size_t link_count;
    const struct link *bridge; /* boxnet, or NULL; points into links */
    struct filter *filters;
    size_t filter_count;
    bool has_address; /* of boxnet */
    uint32_t gateway;
    unsigned prefix;
    struct ruleset_uplink *uplinks;
    size_t uplink_count;
};

/* One port of boxnet and the verdict on it. */
struct plan_port {
    const struct link *link;     /* points into the facts */
    const struct filter *filter; /* or NULL */
    bool armed;
    char reason[96]; /* why not */
};

struct plan {
    struct plan_port *ports;
    size_t port_count;
};

/* Reads the facts. Needs root. */
int plan_read(struct nft *nft, struct plan_facts *ret_facts, struct error *err);
void plan_facts_reset(struct plan_facts *facts);

/* Judges. A port is armed only while its isolation and both of its Incus filters are live, its address lies in boxnet's
 * subnet, and no other port nor the bridge has its MAC or address. The plan points into the facts. */
void plan_make(const struct plan_facts *facts, struct plan *ret_plan);
void plan_reset(struct plan *plan);

/* The rules and elements that follow. `bridge_meta`: rulecheck_probe_bridge_meta(). The caller resets it. */
void plan_ruleset(const struct plan_facts *facts, const struct plan *plan, bool bridge_meta,
                  struct ruleset *ret_ruleset);

/* The same as published to others. The caller frees. */
struct arm_port *plan_publish(const struct plan *plan);

#endif
