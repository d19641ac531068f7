/* The list of tables of claims, in order of phase.
 * Not for: the claims; each phase has a file of its own. */
#include "drill/claim.h"

#include "base/text.h"
#include "drill/phases.h"

#include <string.h>

const struct claim_table *const claim_tables[] = {
    &semantics_table, &surface_table, &isolation_table, &hardening_table, &doorstep_table, &migration_table, &teardown_table, NULL,
};

bool claim_is_listed(const char *list, const char *id)
{
    size_t length = strlen(id);

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strcspn(at, ",") == length && memcmp(at, id, length) == 0) {
            return true;
        }
    }
    return false;
}

const struct claim *claim_find(const char *id, const struct claim_table **ret_table)
{
    for (size_t i = 0; claim_tables[i]; i++) {
        for (size_t j = 0; j < claim_tables[i]->count; j++) {
            if (text_equal(claim_tables[i]->claims[j].id, id)) {
                if (ret_table) {
                    *ret_table = claim_tables[i];
                }
                return &claim_tables[i]->claims[j];
            }
        }
    }
    return NULL;
}
