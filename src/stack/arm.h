#ifndef BOX_STACK_ARM_H
#define BOX_STACK_ARM_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a port of boxnet is armed: its MAC and address in the kernel's sets, its filters and isolation live. Only
 * then does it pass anything. The watcher (`box firewall watch`) arms ports and publishes what it put into the kernel
 * in STACK_RUN_DIRECTORY "/ports.json" (root and the group incus-admin may read it), so that a user who may not read
 * nftables still sees it. A file of a dead watcher is not believed: its lock is asked first. */
struct arm_port {
    char interface[16]; /* the host's end: volatile.eth0.host_name of the instance */
    char mac[18];       /* lower case, or "" while unknown */
    char address[16];   /* dotted, or "" while unknown */
    bool armed;
    char reason[96]; /* why it is not armed; "" where it is */
};

/* Waits, woken by the watcher's own changes and by nothing else, until the port behind the interface and MAC is armed.
 * `mac` may be NULL (the interface alone decides). ERR_STATE, with the reason and the remedy, at once where no watcher
 * runs, and after `budget` milliseconds where the port is still not armed; ERR_INTERRUPTED on Ctrl-C. */
int arm_wait(const char *interface, const char *mac, int64_t budget, struct error *err);

/* The state of every port of boxnet, for listings: one read of one file. The caller frees the array. `ret_ports` may be
 * NULL with count 0. ERR_STATE with the remedy where no watcher runs. */
int arm_list(struct arm_port **ret_ports, size_t *ret_count, struct error *err);

/* The process that holds the watcher's lock, as the kernel says; 0 where none does or nothing can be seen. */
pid_t arm_watcher(void);

/* The watcher's side: takes the lock (ERR_STATE where another has it), held until the descriptor is closed; and
 * replaces the published file. */
int arm_lock(int *ret_fd, struct error *err);
int arm_publish(const struct arm_port *ports, size_t count, struct error *err);

/* True where a watcher holds its lock. Never fails: what cannot be seen is not running. */
bool arm_watcher_runs(void);

#endif
