#ifndef BOX_BOX_IDENTITY_H
#define BOX_BOX_IDENTITY_H

#include "base/error.h"
#include "base/narrate.h"
#include "incus/client.h"

/* What makes a copy another machine than its source: machine-id (from which systemd derives its DHCP identity), SSH
 * host keys, hostname. The MAC is the daemon's to change, and a copy has a new one. */

/* For a stopped container, before its first start, so that it boots once. Of cloud-init's modules the one alone that
 * makes host keys runs again. `hostname` is what it will be called, `instance_id` what cloud-init knows it by, or NULL.
 * One request where its image sees to all that by itself (RECIPE_COPIED); else its files are changed, which costs a
 * second at the start. What is missing of them is no error: the guest made of them what it liked. */
int identity_renew(struct client *client, const char *name, const char *hostname, const char *instance_id,
                   struct error *err);

/* For a VM, whose files can only be reached while it runs: a command in the guest gives it a new identity, and it boots
 * a second time. Its agent must answer. */
int identity_renew_running(struct client *client, const char *name, struct narrator *narrator, struct error *err);

#endif
