#ifndef BOX_CLI_CLEARING_H
#define BOX_CLI_CLEARING_H

#include "cli/command.h"
#include "stack/table.h"

/* What teardown-host and wipe share: boxes of both generations go, then the stack, and its absence is asserted. */
struct clearing {
    enum stack_storage storage;
    bool drills;      /* what any drill left goes too */
    bool purge_incus; /* and the daemon's packages; refused where others have instances on it */
};

/* Asks first, naming what dies (--yes answers). Strangers who use our network stop it before anything is touched
 * (ERR_STATE). Prints what was verified absent; ERR_STATE names what survived. A second run has nothing to do. */
int clearing_run(struct context *context, const struct clearing *clearing, struct error *err);

/* The option --yes, as both commands have it. */
#define CLEARING_YES                                                                                                   \
    {                                                                                                                  \
        .name = "yes", .kind = OPTION_FLAG, .letter = 'y', .help = "do not ask"                                        \
    }

#endif
