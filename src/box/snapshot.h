#ifndef BOX_BOX_SNAPSHOT_H
#define BOX_BOX_SNAPSHOT_H

#include "base/error.h"
#include "base/narrate.h"
#include "box/box.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* Snapshots of a box, and going back to one. */

/* The mark that every fresh mint carries: the box as it was handed over, before anybody was in it. */
#define SNAPSHOT_PRISTINE "pristine"

/* ERR_USAGE that names the rule where a label breaks it: 1 to 63 letters, digits and . _ -, a letter or digit first. */
int snapshot_check_label(const char *label, struct error *err);

/* The mark of a box whose template's converge.sh box saw end well: as it was just then, the last time. */
#define SNAPSHOT_BOOTSTRAPPED "bootstrapped"

struct snapshot {
    char *label;
    int64_t created; /* seconds since the epoch; 0 where unknown */
    json_t *object;  /* the daemon's own: config, devices, profiles; owned */
};

/* All of a box, the oldest first: one request. */
int snapshot_list(struct client *client, const char *name, struct snapshot **ret_snapshots, size_t *ret_count,
                  struct error *err);
void snapshot_list_free(struct snapshot *snapshots, size_t count);

/* One, by its label: one request. ERR_NOT_FOUND, with the command that shows which there are. */
int snapshot_find(struct client *client, const char *name, const char *label, struct snapshot *ret_snapshot,
                  struct error *err);
void snapshot_reset(struct snapshot *snapshot);

/* Takes one; a running box goes on. ERR_EXISTS where the label is taken. */
int snapshot_take(struct client *client, const char *name, const char *label, struct narrator *narrator,
                  struct error *err);

int snapshot_remove(struct client *client, const char *name, const char *label, struct narrator *narrator,
                    struct error *err);

/* Takes a mark of a box: SNAPSHOT_PRISTINE of one that was just minted; SNAPSHOT_BOOTSTRAPPED, in the place of a former
 * one. Never fails: a pool that would have to copy the whole disk is told and not made to, and any failure is a warning.
 * True where the mark is there. */
bool snapshot_mark(struct client *client, const struct box *box, const char *mark, struct narrator *narrator);

/* True where the pool copies on write; false also where it cannot be asked. */
bool snapshot_is_cheap(struct client *client, const struct box *box);

/* Goes back to a snapshot: disk and configuration. A running box is stopped by force first and started again at the
 * end. Afterwards the box keeps the contract, carries the tag, stamp, limits and devices (doors, pins) that it had just
 * before, whatever the snapshot says; each difference is narrated. Fails before anything is touched where the snapshot
 * is of an instance that was no box. Once the disk is rolled back, Ctrl-C waits for the configuration. */
int snapshot_restore(struct client *client, const struct box *box, const struct snapshot *snapshot,
                     struct narrator *narrator, struct error *err);

#endif
