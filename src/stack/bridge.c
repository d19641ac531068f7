/* Kernel parameters of the interface boxnet, as data, and their convergence.
 * Shared by the watcher, which sets them, and by the stack's table, which judges them.
 * Not for the network's own keys: those are Incus's (item_network.c). */
#include "stack/bridge.h"

#include "base/memory.h"
#include "base/text.h"
#include "host/sysctl.h"
#include "stack/names.h"

#define IPV4(name) "net/ipv4/conf/" STACK_NETWORK "/" name
#define IPV6(name) "net/ipv6/conf/" STACK_NETWORK "/" name

const struct bridge_setting bridge_settings[BRIDGE_SETTING_COUNT] = {
    {"arp_ignore", IPV4("arp_ignore"), "1", "a box asks by ARP for the host's other addresses and is answered"},
    {"route_localnet", IPV4("route_localnet"), "0", "a box reaches what listens on the host's 127.0.0.1"},
    {"disable_ipv6", IPV6("disable_ipv6"), "1", "the host speaks IPv6 with boxes, past every IPv4 wall"},
    {"accept_ra", IPV6("accept_ra"), "0", "a box advertises itself to the host as a router"},
};

static int converge_setting(const struct bridge_setting *setting, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *live = NULL;
    CLEANUP(error_reset) struct error failure = {0};
    if (sysctl_read(setting->path, &live, &failure) < 0) {
        /* A kernel without IPv6 has no IPv6 to switch off. */
        return failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
    }
    if (text_equal(live, setting->value)) {
        return 0;
    }
    if (sysctl_write(setting->path, setting->value, err) < 0) {
        return -1;
    }
    narrate_note(narrator, "set %s of " STACK_NETWORK " from %s to %s", setting->name, live, setting->value);
    return 0;
}

int bridge_converge(const struct link *bridge, struct narrator *narrator, struct error *err)
{
    for (size_t i = 0; i < BRIDGE_SETTING_COUNT; i++) {
        if (converge_setting(&bridge_settings[i], narrator, err) < 0) {
            return -1;
        }
    }
    /* Frames to reserved group addresses skip the bridge's prerouting hook, yet would write its table. */
    if (bridge->linklocal_learn) {
        if (link_stop_linklocal_learning(bridge->index, err) < 0) {
            return -1;
        }
        narrate_note(narrator, "set no_linklocal_learn of " STACK_NETWORK);
    }
    return 0;
}
