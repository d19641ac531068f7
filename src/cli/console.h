#ifndef BOX_CLI_CONSOLE_H
#define BOX_CLI_CONSOLE_H

#include "base/error.h"
#include "base/narrate.h"

#include <stdbool.h>

/* What the user sees on stderr: narration and errors. On a terminal the running step is one line with a spinner,
 * rewritten in place; in a log it is a line at its begin, one every 5 s while it lasts, one at its end. Colours only on a terminal,
 * and never with NO_COLOR or TERM=dumb. Everything is sanitised: a guest's words may be in it. */
struct console;

/* With `quiet` only warnings and errors are shown. Never fails. */
struct console *console_open(bool quiet);

/* The narrator to hand down. Borrowed. */
struct narrator *console_narrator(struct console *console);

/* A line of the trace that --verbose asks for; fits client_trace(): `context` is the console. */
void console_trace(void *context, const char *line);

/* "box: message" and the remedy, if there is one, on a line of its own. The running step ends as failed. */
void console_error(struct console *console, const struct error *err);

/* Shows a question and leaves the cursor behind it. */
void console_ask(struct console *console, const char *question);

/* Ends the line of a running step. */
void console_close(struct console *console);
DEFINE_CLEANUP(struct console *, console_close)

#endif
