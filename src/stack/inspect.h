#ifndef BOX_STACK_INSPECT_H
#define BOX_STACK_INSPECT_H

#include "base/argv.h"
#include "base/error.h"
#include "stack/arm.h"
#include "stack/ruleset.h"

#include <sys/types.h>

/* The walls as they stand, read from the kernel and compared with what they must be. */
struct inspection {
    pid_t watcher;           /* 0: none runs */
    struct argv differences; /* one line for each table or set that is not as it must be; empty: all well */
    struct argv unarmed;     /* "vethX: why", for each port of boxnet that may not speak */
    struct arm_port *ports;
    size_t port_count;
    struct ruleset ruleset; /* what was compared with */
};

/* Needs root (ERR_DENIED). The owned copy is expected only while a watcher runs. */
int inspect_walls(struct inspection *ret_inspection, struct error *err);
void inspect_reset(struct inspection *inspection);

#endif
