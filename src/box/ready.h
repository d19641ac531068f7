#ifndef BOX_BOX_READY_H
#define BOX_BOX_READY_H

#include "base/argv.h"
#include "incus/client.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a freshly started box is one that a person can use. One exec in the guest waits for the end of its first boot
 * and reports facts; the judgement is made here, over what it reported. */
struct ready_report {
    bool complete;   /* the report came to its end */
    char *result;    /* /run/cloud-init/result.json; "" where there is none */
    char *status;    /* /run/cloud-init/status.json */
    char *ignored;   /* lines by which cloud-init says that it dropped a part */
    char *log;       /* the last lines of its own log that warn, and of its output */
    char *user;      /* the user's line of passwd */
    char *lands;     /* what `id -un` said as that user, in its home */
    char *resolves;  /* what a look-up said, and "exit N" */
    char *memory;    /* the guest's own limit as its kernel has it; "" where it has none */
    char *cpus;
    char *starved;   /* a line of its journal that names a limit of the host; "" where there is none */
};

/* Waits and collects, at most `budget` milliseconds: ERR_TIMEOUT says so. Ctrl-C is ERR_INTERRUPTED. The caller resets
 * the report. */
int ready_collect(struct client *client, const char *instance, const char *user, int64_t budget,
                  struct narrator *narrator, struct ready_report *ret_report, struct error *err);

/* Takes the guest's answer apart; whatever it says, this succeeds: what is missing is "". */
void ready_parse(const char *data, size_t length, struct ready_report *ret_report);

/* The verdict on cloud-init: applied (true), else `*ret_reason` says why not. Harmless warnings are appended to `warnings`. The
 * exit status of `cloud-init status` is not asked: it is 0 after a part was dropped, and 2 after harmless things. */
bool ready_cloud_applied(const struct ready_report *report, struct argv *warnings, char **ret_reason);

/* The verdict on the rest: the user is there and lands in its home, names resolve. `user` is its name. Fills in what the user is in
 * the guest. */
struct ready_user {
    int64_t uid, gid;
    char *home;
};
bool ready_usable(const struct ready_report *report, const char *user, struct ready_user *ret_user,
                  char **ret_reason);

void ready_reset(struct ready_report *report);

#endif
