#ifndef BOX_BOX_POWER_H
#define BOX_BOX_POWER_H

#include "base/error.h"
#include "base/narrate.h"
#include "box/box.h"
#include "incus/client.h"

#include <stdbool.h>

#define POWER_GRACE_SECONDS 30    /* what a guest has for its shutdown */
#define POWER_ARM_BUDGET    15000 /* milliseconds that a started box's port may take to be armed */

/* Starts a box and waits until its port is armed, narrating both. A box that runs already is success (`ret_started` is
 * false, the port is looked at all the same); a frozen one is thawed. ERR_CONTRACT, before any request, where it is off
 * the contract. ERR_STATE where it started and its port is not armed: then it has no network, and the remedy says what
 * to do; the box keeps running. */
int power_start(struct client *client, const struct box *box, struct narrator *narrator, bool *ret_started,
                struct error *err);

/* Only the wait: until the port of a running box is armed, at most POWER_ARM_BUDGET. One request. */
int power_wait_armed(struct client *client, const char *name, struct error *err);

/* Shuts a box down: asks the guest, gives it `grace` seconds (0: forces at once), then forces, saying so. A box that is
 * down already is success (`ret_stopped` is false). On Ctrl-C ERR_INTERRUPTED; the daemon goes on asking. */
int power_down(struct client *client, const struct box *box, unsigned grace, struct narrator *narrator,
               bool *ret_stopped, struct error *err);

#endif
