#ifndef BOX_BASE_CANCEL_H
#define BOX_BASE_CANCEL_H

#include "base/error.h"

#include <stdbool.h>

/* Ctrl-C, TERM and HUP as a request that waiting code sees, instead of a death in the middle of a mint.
 * The first signal sets the flag and makes cancel_fd() readable; a second one kills the process at once, except while
 * cancel_mask() says that cleaning up goes on: then it is told so on stderr, and the next one kills.
 * This is the tree's one process-wide state beside main: a signal handler has nowhere else to write. */
void cancel_install(void);

/* Gives the signals back to their default action (for commands that hand the terminal on). */
void cancel_uninstall(void);

/* In a child that goes on with this program's code: its signals are its own, and none has come yet. */
void cancel_forked(void);

bool cancel_requested(void);
int cancel_signal(void); /* the signal that came, or 0 */

/* Readable (and stays so) once a signal came; -1 before cancel_install(). Poll it next to what you wait for. */
int cancel_fd(void);

/* Sets ERR_INTERRUPTED and returns -1 when a signal came, else 0. */
int cancel_check(struct error *err);

/* While cleaning up after a cancel, waiting must work again: true suspends cancel_requested() and cancel_fd(). */
void cancel_mask(bool masked);

#endif
