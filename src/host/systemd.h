#ifndef BOX_HOST_SYSTEMD_H
#define BOX_HOST_SYSTEMD_H

#include "base/error.h"

#include <stdbool.h>

/* The little of systemd that box needs, without its library. */

/* True where systemd is pid 1 (sd_booted(3): /run/systemd/system exists). */
bool systemd_runs(void);

/* Tells the service manager that waits for it ("READY=1", "STATUS=..."): one datagram to $NOTIFY_SOCKET; nothing
 * happens where that is unset. */
void systemd_notify(const char *state);

/* systemctl VERB [UNIT] (the unit may be NULL), 60 s at most; a failure quotes its last line. */
int systemd_control(const char *verb, const char *unit, struct error *err);

/* True where `systemctl is-active` says so. */
bool systemd_is_active(const char *unit);
bool systemd_is_enabled(const char *unit);

#endif
