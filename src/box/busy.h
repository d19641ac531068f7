#ifndef BOX_BOX_BUSY_H
#define BOX_BOX_BUSY_H

#include "base/error.h"
#include "base/narrate.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* The daemon refuses what another of its operations stands in the way of ("is busy running a create operation"): a
 * mint whose `new` was killed goes on in the daemon, a start is under way. Such an operation ends; whoever is refused
 * waits here and tries again. */
#define BUSY_BUDGET_MS 60000 /* that what the daemon still does may take */

/* True where the error is such a refusal. */
bool busy_is(const struct error *err);

/* Waits until the daemon runs no operation on that instance, at most BUSY_BUDGET_MS (ERR_TIMEOUT); the instance need
 * not be there yet. Sessions (exec, console) are not waited for: they last as long as somebody wants. */
int busy_wait(struct client *client, const char *name, struct error *err);

/* After a refusal: 0 where it is worth another try now, else -1 with the refusal, which moves to `err` (as it was where
 * it is of another kind or `deadline` has passed), or with ERR_INTERRUPTED or ERR_TIMEOUT. */
int busy_wait_to_retry(struct client *client, const char *name, int64_t deadline, struct narrator *narrator,
                       struct error *refusal, struct error *err);

#endif
