#ifndef BOX_STACK_BRIDGE_H
#define BOX_STACK_BRIDGE_H

#include "base/error.h"
#include "base/narrate.h"
#include "host/link.h"

#include <stddef.h>

/* Parameters of the interface boxnet. They vanish with it, and Incus makes it anew at each boot: the watcher sets them
 * whenever it appears. */
struct bridge_setting {
    const char *name; /* "arp_ignore" */
    const char *path; /* below /proc/sys */
    const char *value;
    const char *why;
};

#define BRIDGE_SETTING_COUNT 4
extern const struct bridge_setting bridge_settings[BRIDGE_SETTING_COUNT];

/* Sets whatever differs on the bridge, no_linklocal_learn included, and notes each change. */
int bridge_converge(const struct link *bridge, struct narrator *narrator, struct error *err);

#endif
