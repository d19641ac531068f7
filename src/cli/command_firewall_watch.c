/* `box firewall watch`: the watcher's process, what the unit runs.
 * It has a log of its own, one line an act, for it has no terminal and no step that ends.
 * Not for what it does: src/stack/watch.c. */
#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "stack/watch.h"

#include <string.h>

/* A line at once and whole: a log that is read while things happen. */
static void say(struct narrator *narrator, enum narrate_kind kind, const char *text)
{
    (void)narrator;
    CLEANUP(freep) char *clean = text_sanitise(text, strlen(text));
    (void)fprintf(stderr, "box firewall: %s%s\n", kind == NARRATE_WARN ? "WARNING: " : "", clean);
    (void)fflush(stderr);
}

static int run(struct context *context, struct error *err)
{
    (void)context;
    struct narrator narrator = {.say = say};
    return watch_run(&narrator, err);
}

const struct command command_firewall_watch = {
    .name = "firewall watch",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "lay the walls and keep them, arming each port that appears",
    .help = "Runs until it is ended. It loads the tables `box` and an owned copy of them,\n"
            "then follows the kernel's events: a new port of boxnet may speak once its MAC\n"
            "and address filters and its isolation are live; a rule, a table or a port's\n"
            "isolation that vanishes is put back; the uplinks follow the default routes.\n"
            "It needs neither boxnet nor the daemon, so it starts before both.\n"
            "\n"
            "Without it no new port passes anything. `box setup-host` starts it: as the\n"
            "service box-firewall where systemd runs the host, else as a plain process\n"
            "that logs to /run/box/firewall.log.\n",
    .flags = NEEDS_ROOT | CANCELLABLE,
    .run = run,
};
