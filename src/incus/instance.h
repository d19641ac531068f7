#ifndef BOX_INCUS_INSTANCE_H
#define BOX_INCUS_INSTANCE_H

#include "base/buffer.h"
#include "incus/client.h"

/* Instances of the daemon, whoever made them. Names are encoded here; budgets are milliseconds (0: no limit).
 * The JSON shapes are the daemon's own (docs: Incus REST API, /1.0/instances). */

/* One instance with its config, devices, expanded_config and expanded_devices, status. ERR_NOT_FOUND. */
int instance_get(struct client *client, const char *name, json_t **ret_instance, struct error *err);

/* As above and the ETag for instance_put(). */
int instance_get_tagged(struct client *client, const char *name, json_t **ret_instance, char **ret_etag,
                        struct error *err);

/* All instances that the filter selects, e.g. "config.user.box eq 1 or config.user.claudebox eq 1", in one request
 * (recursion=1: config, no state). `filter` may be NULL. Incus's `eq` is a regex: compare again on our side. */
int instance_list(struct client *client, const char *filter, json_t **ret_array, struct error *err);

/* The live state (network, memory, processes). */
int instance_state(struct client *client, const char *name, json_t **ret_state, struct error *err);

/* What the daemon kept of the guest's console, raw: a guest wrote it. Empty where it kept nothing. */
int instance_console(struct client *client, const char *name, struct buffer *ret_text, struct error *err);

/* POST /1.0/instances with the given body. */
int instance_create(struct client *client, const json_t *body, int64_t budget, struct narrator *narrator,
                    struct error *err);

/* PATCH: merges config and devices given in `body`. */
int instance_patch(struct client *client, const char *name, const json_t *body, struct error *err);
/* PUT: replaces; conditional on `etag` where it is not NULL. */
int instance_put(struct client *client, const char *name, const char *etag, const json_t *body, int64_t budget,
                 struct error *err);

/* Changes the state: action is "start", "stop", "restart", "freeze", "unfreeze"; `timeout` in seconds is what the
 * daemon gives the guest before it fails (-1: its default); `force` kills. */
int instance_change_state(struct client *client, const char *name, const char *action, int timeout, bool force,
                          int64_t budget, struct narrator *narrator, struct error *err);

int instance_delete(struct client *client, const char *name, int64_t budget, struct error *err);
int instance_rename(struct client *client, const char *name, const char *new_name, struct error *err);

/* Snapshots: list (recursion=1), create, restore, delete. */
int instance_snapshot_list(struct client *client, const char *name, json_t **ret_array, struct error *err);
int instance_snapshot_create(struct client *client, const char *name, const char *snapshot, int64_t budget,
                             struct narrator *narrator, struct error *err);
int instance_snapshot_restore(struct client *client, const char *name, const char *snapshot, int64_t budget,
                              struct narrator *narrator, struct error *err);
int instance_snapshot_delete(struct client *client, const char *name, const char *snapshot, int64_t budget,
                             struct error *err);

#endif
