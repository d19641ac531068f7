#ifndef BOX_STACK_RULESET_H
#define BOX_STACK_RULESET_H

#include "base/argv.h"
#include "base/buffer.h"
#include "stack/subnet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The walls as text for nftables: three tables, in two copies from one generator. The static copy (`box`) outlives the
 * watcher; the owned one (`box-owned`) is tied to the watcher's socket and outlives another's `flush ruleset`. Each
 * copy is complete by itself, and a packet passes both. */

/* A port that may speak: with this MAC and address, and no other. */
struct ruleset_port {
    int index;
    uint8_t mac[6];
    uint32_t address;
};

/* A default route: out of this interface, through this gateway; 0: a point-to-point uplink without one. */
struct ruleset_uplink {
    char interface[16];
    uint32_t gateway;
};

/* What the rules are made of: facts read from the kernel, nothing that a file claims. */
struct ruleset {
    bool has_subnet; /* boxnet has its address; without it the rules pass nothing of boxnet */
    struct subnet subnet;
    uint32_t gateway;
    bool bridge_meta;           /* this kernel knows `meta ibrname` */
    struct ruleset_port *ports; /* armed */
    size_t port_count;
    int *members; /* every port of boxnet, armed or not: no frame is switched from or to one of them */
    size_t member_count;
    struct ruleset_uplink *uplinks;
    size_t uplink_count;
};

enum ruleset_copy { RULESET_STATIC, RULESET_OWNED };

/* The sets whose elements follow the facts; the same in both copies. */
struct ruleset_set {
    const char *family, *name, *type;
    void (*list)(const struct ruleset *ruleset, struct argv *ret); /* the elements as nftables writes them */
};
#define RULESET_SET_COUNT 5
extern const struct ruleset_set ruleset_sets[RULESET_SET_COUNT];

/* The families of the tables, in the order in which they are written. */
extern const char *const ruleset_families[3];
/* "box" or "box-owned". */
const char *ruleset_table(enum ruleset_copy copy);

/* Appends one transaction that replaces the copy's three tables, elements included. */
void ruleset_write(const struct ruleset *ruleset, enum ruleset_copy copy, struct buffer *text);

/* Appends what replaces the elements of the copy's sets and leaves the rules and the counted flows alone. */
void ruleset_write_elements(const struct ruleset *ruleset, enum ruleset_copy copy, struct buffer *text);

/* Appends what removes the copy's tables, present or not. */
void ruleset_write_removal(enum ruleset_copy copy, struct buffer *text);

/* True where both give the same rules; elements are not compared. */
bool ruleset_same_rules(const struct ruleset *a, const struct ruleset *b);
/* True where both give the same elements. */
bool ruleset_same_elements(const struct ruleset *a, const struct ruleset *b);

void ruleset_reset(struct ruleset *ruleset);

#endif
