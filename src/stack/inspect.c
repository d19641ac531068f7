/* Compares the walls in the kernel with what the facts ask for, without changing anything.
 * For setup's dry run, doctor and `box firewall show`.
 * Not for repairing. */
#include "stack/inspect.h"

#include "base/memory.h"
#include "host/nft.h"
#include "stack/names.h"
#include "stack/plan.h"
#include "stack/rulecheck.h"

#include <unistd.h>

static int compare(struct nft *nft, enum ruleset_copy copy, struct inspection *inspection, struct error *err)
{
    CLEANUP(rulecheck_reset) struct rulecheck check = {0};
    char *difference = NULL;
    if (rulecheck_expect(&inspection->ruleset, copy, &check, err) < 0 ||
        rulecheck_compare(nft, &check, &inspection->ruleset, copy, &difference, err) < 0) {
        return -1;
    }
    if (difference != NULL) {
        argv_push_owned(&inspection->differences, difference);
    }
    return 0;
}

int inspect_walls(struct inspection *ret_inspection, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(plan_facts_reset) struct plan_facts facts = {0};
    CLEANUP(plan_reset) struct plan plan = {0};
    CLEANUP(inspect_reset) struct inspection inspection = {.watcher = arm_watcher()};
    bool bridge_meta = false;
    if (geteuid() != 0) {
        (void)error_set(err, ERR_DENIED, "only root can read the firewall's tables");
        return error_remedy(err, "run it with sudo");
    }
    if (nft_open(&nft, err) < 0 || plan_read(nft, &facts, err) < 0 ||
        rulecheck_probe_bridge_meta(&bridge_meta, err) < 0) {
        return -1;
    }
    plan_make(&facts, &plan);
    plan_ruleset(&facts, &plan, bridge_meta, &inspection.ruleset);
    inspection.ports = plan_publish(&plan);
    inspection.port_count = plan.port_count;
    for (size_t i = 0; i < plan.port_count; i++) {
        if (!inspection.ports[i].armed) {
            argv_push_format(&inspection.unarmed, "%s: %s", inspection.ports[i].interface, inspection.ports[i].reason);
        }
    }
    if (compare(nft, RULESET_STATIC, &inspection, err) < 0 ||
        (inspection.watcher != 0 && compare(nft, RULESET_OWNED, &inspection, err) < 0)) {
        return -1;
    }
    *ret_inspection = inspection;
    inspection = (struct inspection){0};
    return 0;
}

void inspect_reset(struct inspection *inspection)
{
    argv_reset(&inspection->differences);
    argv_reset(&inspection->unarmed);
    free(inspection->ports);
    ruleset_reset(&inspection->ruleset);
    *inspection = (struct inspection){0};
}
