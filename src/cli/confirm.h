#ifndef BOX_CLI_CONFIRM_H
#define BOX_CLI_CONFIRM_H

#include "cli/command.h"

/* Asks before an act that cannot be undone; the text names it: "delete the box a and all that is on its disk".
 * With --force it does not ask. Without a terminal and without --force it is ERR_USAGE; any answer but y or yes, also
 * Ctrl-D, is ERR_INTERRUPTED ("aborted"): nothing was done. Returns 0 for a yes. */
int confirm(struct context *context, struct error *err, const char *act, ...) PRINTF_LIKE(3, 4);

#endif
