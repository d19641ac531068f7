/* systemd: whether it runs the host, readiness, and units through systemctl.
 * Not for what a unit says: src/stack/unit.c.
 * Linked to no library of systemd's: the notify protocol is one datagram. */
#include "host/systemd.h"

#include "base/fd.h"
#include "base/process.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

bool systemd_runs(void)
{
    struct stat status;
    return lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
}

void systemd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
}

int systemd_control(const char *verb, const char *unit, struct error *err)
{
    const char *const argv[] = {"systemctl", verb, unit, NULL};
    struct process_options options = {.budget = 60000};
    return process_check(argv, &options, NULL, err);
}

static bool ask(const char *question, const char *unit)
{
    const char *const argv[] = {"systemctl", "--quiet", question, unit, NULL};
    struct process_options options = {.budget = 10000};
    CLEANUP(process_result_reset) struct process_result result = {0};
    return process_run(argv, &options, &result, NULL) == 0 && result.status == 0;
}

bool systemd_is_active(const char *unit)
{
    return ask("is-active", unit);
}

bool systemd_is_enabled(const char *unit)
{
    return ask("is-enabled", unit);
}
