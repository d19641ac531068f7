/* `box firewall apply`: the static walls, once.
 * Not for keeping them: that is the watcher's work. */
#include "cli/command.h"
#include "cli/commands.h"
#include "stack/arm.h"
#include "stack/watch.h"

static int run(struct context *context, struct error *err)
{
    narrate_step(context->narrator, "loading the walls");
    if (watch_apply(context->narrator, err) < 0) {
        return -1;
    }
    narrate_done(context->narrator, "the tables are loaded");
    if (!arm_watcher_runs()) {
        narrate_warn(context->narrator, "no watcher runs: ports that appear from now on pass nothing. "
                                        "Start it: box setup-host");
    }
    return 0;
}

const struct command command_firewall_apply = {
    .name = "firewall apply",
    .section = SECTION_HOST,
    .arguments = "",
    .summary = "load the walls once, for the ports as they are now",
    .help = "Loads the nftables tables `inet box`, `bridge box` and `arp box` in one\n"
            "transaction each way: all of it holds afterwards, or what held before.\n"
            "The watcher does this by itself; this is for a host on which it cannot run.\n",
    .flags = NEEDS_ROOT,
    .run = run,
};
