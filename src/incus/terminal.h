#ifndef BOX_INCUS_TERMINAL_H
#define BOX_INCUS_TERMINAL_H

#include "base/error.h"

#include <stdbool.h>

/* The user's own terminal while a guest's pty has it. */
struct terminal;

/* Puts the terminal behind `fd` into raw mode, and from now on hears of window changes and of being continued after a
 * stop. Restored by terminal_restore() alone, so it must be on every way out. ERR_USAGE where `fd` is no terminal. */
int terminal_enter(int fd, struct terminal **ret_terminal, struct error *err);

/* Gives back the modes as they were, and the signals. NULL is fine. */
void terminal_restore(struct terminal *terminal);
DEFINE_CLEANUP(struct terminal *, terminal_restore)

/* Readable when the size may have changed; then call terminal_service(), which also takes raw mode again after a stop.
 */
int terminal_fd(const struct terminal *terminal);
void terminal_service(struct terminal *terminal);

/* Columns and rows of the terminal behind `fd`; false where it is none or has no size. */
bool terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows);

#endif
