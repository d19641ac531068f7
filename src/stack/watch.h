#ifndef BOX_STACK_WATCH_H
#define BOX_STACK_WATCH_H

#include "base/error.h"
#include "base/narrate.h"

/* The watcher: loads the walls, arms the ports of boxnet, and keeps both as they must be, woken by the kernel's events.
 * It needs neither boxnet nor the daemon to exist, and tells each of its acts to the narrator.
 *
 * Runs until INT, TERM or HUP (cancel_install() is the caller's): success then; the static tables stay, the owned ones
 * go with the process. Fails where another watcher runs (ERR_STATE), without root (ERR_DENIED), or where the walls
 * cannot be loaded at the start. A failure later on is told and tried again. */
int watch_run(struct narrator *narrator, struct error *err);

/* Loads the static tables once, for the ports as they are now. Where a watcher runs it need not be called, and does no
 * harm. */
int watch_apply(struct narrator *narrator, struct error *err);

#endif
