#ifndef BOX_STACK_TABLE_H
#define BOX_STACK_TABLE_H

#include "base/argv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/narrate.h"
#include "incus/client.h"
#include "stack/subnet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The stack as data: what a host must carry, one row an object, each of which can read its live state, converge, remove
 * and explain itself. setup converges the rows, its dry run and doctor judge them, teardown removes them. */

/* What becomes of the pool and its images when the stack is removed. */
enum stack_storage {
    STORAGE_OURS, /* goes where box made it and nobody else keeps anything on it */
    STORAGE_KEPT,
    STORAGE_ALL, /* goes with every image, whoever made them */
};

/* What the rows are judged against. Borrowed pointers live as long as the stack is used. */
struct stack {
    struct client *client;
    struct subnet subnet; /* of boxnet: its own, where it exists, else the chosen one */
    uint32_t gateway;
    const char *dns; /* addresses apart by blanks */
    uint64_t pool_size;
    const char *program;
    struct argv notes; /* what this host cannot carry: one sentence each */
    enum stack_storage storage; /* for removing */
    const struct argv *leaving; /* instances that go before the stack is removed; may be NULL */
};

/* A row. */
struct stack_object {
    const char *name; /* "network boxnet" */
    const char *why;  /* what is lost without it */
    bool needs_root;  /* reading it needs root */
    bool needs_daemon;
    int64_t budget; /* milliseconds that converging may take */
    /* Appends to `changes` what differs (table_change()). Fails with ERR_STATE where something foreign stands under our
     * name: then nothing of the stack may be touched. */
    int (*judge)(struct stack *stack, json_t *changes, struct error *err);
    /* Makes it as it must be; `changes` holds its own differences only. */
    int (*converge)(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err);
    /* Removes it; absent is success. */
    int (*remove)(struct stack *stack, struct narrator *narrator, struct error *err);
    /* Appends "network boxnet" and the like for each part that is there now, and that remove() would take away. NULL:
     * nothing of it outlives the other rows. */
    int (*stands)(struct stack *stack, struct argv *ret_standing, struct error *err);
    unsigned rank; /* removed in ascending order: what uses others goes before them */
};

/* In the order in which they are converged: the walls stand before anything that they hold back. */
extern const struct stack_object *const table_objects[];
extern const size_t table_object_count;

/* The older generation of names (claudenet, claude-isolate, claude-dev, claudebox): it can be read and removed, and is
 * never made. Its rows have neither judge nor converge. In the order in which they are removed. */
extern const struct stack_object *const older_objects[];
extern const size_t older_object_count;

/* Appends one difference. `live` or `want` may be NULL: absent. */
void table_change(json_t *changes, const char *object, const char *item, const char *live, const char *want,
                  const char *why);

/* The changes of one object: a new array, owned by the caller. */
json_t *table_changes_of(const json_t *changes, const char *object);

/* The changes that `wanted` (object of texts) asks for against `live` (object of texts), key by key; `why` (object of
 * texts, may lack keys) explains. Keys that only `live` has are nobody's business here. */
void table_compare(json_t *changes, const char *object, const json_t *live, const json_t *wanted, const json_t *why);

/* Appends `name` where the daemon has an object at `path`. */
int table_stands(struct stack *stack, const char *path, const char *name, struct argv *ret_standing, struct error *err);

/* Appends "nft table FAMILY NAME" for each table of that name; nothing where nftables knows none. */
int table_nft_stands(const char *name, struct argv *ret_standing, struct error *err);

/* Removes the tables of that name in every family. */
int table_nft_remove(const char *name, struct error *err);

/* Marks what box made in the daemon, and is looked for before anything is changed there. */
#define TABLE_MARK "user.box.stack"

/* GET of an object of the daemon: 1 and the value, 0 where it is absent, -1. */
int table_get(struct stack *stack, const char *path, json_t **ret_value, struct error *err);

/* What a creation leaves behind whose client died: the daemon knows the name and has nothing of it. True for the state
 * of such a network or pool. */
bool table_is_half_made(const json_t *object);

/* Removes such a half (the daemon may still be taking it back) and creates it anew with POST, trying for some seconds.
 */
int table_create(struct stack *stack, const char *collection, const char *path, bool half_made, const json_t *body,
                 struct error *err);

/* ERR_STATE, naming it, where the object of the daemon exists without our mark. */
int table_check_mark(const json_t *object, const char *name, struct error *err);

/* The rows, each in a file of its own (item_*.c). */
extern const struct stack_object item_group;
extern const struct stack_object item_watcher;
extern const struct stack_object item_walls;
extern const struct stack_object item_forwarding;
extern const struct stack_object item_inotify;
extern const struct stack_object item_neighbours;
extern const struct stack_object item_firewalld;
extern const struct stack_object item_pool;
extern const struct stack_object item_acl;
extern const struct stack_object item_network;
extern const struct stack_object item_profile;
extern const struct stack_object item_service;
extern const struct stack_object item_kernel;

#endif
