/* Where the daemon listens, the connection to it, and the story behind one that fails.
 * Not for: anything that is said over the connection; see http.c and websocket.c. */
#include "incus/daemon.h"

#include "base/cancel.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPT_SECONDS 5

static const char *const well_known[] = {"/run/incus/unix.socket", "/var/lib/incus/unix.socket"};

/* Where distributions keep the daemon: Debian and Ubuntu, the upstream packages, a build from source. */
static const char *const daemons[] = {"/usr/libexec/incus/incusd", "/opt/incus/bin/incusd", "incusd"};

char *daemon_find(void)
{
    const char *path = getenv("INCUS_SOCKET");
    if (!text_is_empty(path)) {
        return xstrdup(path);
    }
    const char *directory = getenv("INCUS_DIR");
    if (!text_is_empty(directory)) {
        return xasprintf("%s/unix.socket", directory);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(well_known); i++) {
        struct stat status;
        /* A directory that may not be searched still hides a socket: EACCES is told by connect() then. */
        if (stat(well_known[i], &status) == 0 || errno == EACCES) {
            return xstrdup(well_known[i]);
        }
    }
    return xstrdup(well_known[0]);
}

bool daemon_is_installed(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(daemons); i++) {
        if (process_exists(daemons[i])) {
            return true;
        }
    }
    return false;
}

static bool under_systemd(void)
{
    struct stat status;
    return stat("/run/systemd/system", &status) == 0;
}

static int explain_absent(const char *path, int errnum, struct error *err)
{
    if (!daemon_is_installed()) {
        error_set(err, ERR_NO_DAEMON, "Incus is not installed on this machine (no incusd, and no socket at %s)", path);
        return error_remedy(err, "sudo apt-get install incus");
    }
    if (errnum == ECONNREFUSED) {
        error_set(err, ERR_NO_DAEMON,
                  "the Incus daemon is not running: its socket %s is there, but nobody listens on it", path);
    } else {
        error_set(err, ERR_NO_DAEMON, "the Incus daemon is not running: there is no socket at %s", path);
    }
    if (getenv("INCUS_SOCKET") || getenv("INCUS_DIR")) {
        return error_remedy(err,
                            "check INCUS_SOCKET and INCUS_DIR, which say where the socket is, or start that daemon");
    }
    return error_remedy(err, under_systemd() ? "sudo systemctl start incus.socket incus" : "start incusd as root");
}

/* Whether this process holds the group, which it got when its session began. */
static bool process_holds(gid_t group)
{
    if (getegid() == group) {
        return true;
    }
    int count = getgroups(0, NULL);
    if (count <= 0) {
        return false;
    }
    CLEANUP(freep) gid_t *groups = xcalloc((size_t)count, sizeof(gid_t));
    count = getgroups(count, groups);
    for (int i = 0; i < count; i++) {
        if (groups[i] == group) {
            return true;
        }
    }
    return false;
}

static bool database_lists(const struct group *group, const struct passwd *user)
{
    if (user->pw_gid == group->gr_gid) {
        return true;
    }
    for (char **member = group->gr_mem; *member; member++) {
        if (text_equal(*member, user->pw_name)) {
            return true;
        }
    }
    return false;
}

static int explain_denied(const char *path, int errnum, struct error *err)
{
    struct stat status;
    const struct group *group = stat(path, &status) == 0 ? getgrgid(status.st_gid) : NULL;
    const struct passwd *user = getpwuid(geteuid());
    if (!group || !user || group->gr_gid == 0 || process_holds(group->gr_gid)) {
        error_set(err, ERR_DENIED, "this user may not open the socket of the Incus daemon at %s: %s", path,
                  strerror(errnum));
        return error_remedy(err, "run it as root (sudo)");
    }
    if (database_lists(group, user)) {
        error_set(err, ERR_DENIED,
                  "%s is in the group %s, but this session is older than that and does not hold the group yet",
                  user->pw_name, group->gr_name);
        return error_remedy(err, "newgrp %s (or log out and in again)", group->gr_name);
    }
    error_set(err, ERR_DENIED, "%s may not speak to the Incus daemon: not in the group %s, which owns %s",
              user->pw_name, group->gr_name, path);
    return error_remedy(err, "sudo usermod -aG %s %s, then log in again", group->gr_name, user->pw_name);
}

int daemon_silent(const char *path, int64_t waited, struct error *err)
{
    error_set(err, ERR_NO_DAEMON, "the Incus daemon does not answer: nothing came from %s within %lld s", path,
              (long long)(waited / 1000));
    return error_remedy(err, under_systemd() ? "journalctl -u incus -n 50, then sudo systemctl restart incus"
                                             : "look at the log of incusd, then restart it");
}

int daemon_connect(const char *path, int *ret_fd, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return error_set(err, ERR_USAGE,
                         "the path of the Incus socket is longer than a socket's may be (%zu bytes): %s",
                         sizeof(address.sun_path) - 1, path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot make a socket");
    }
    /* A listening queue that is full makes connect() wait for as long as SO_SNDTIMEO says: unix(7) sockets know no
     * EINPROGRESS. */
    const struct timeval limit = {.tv_sec = ACCEPT_SECONDS}, unlimited = {0};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        switch (errno) {
        case EINTR:
            if (cancel_check(err) < 0) {
                return -1;
            }
            continue;
        case ENOENT:
        case ENOTDIR:
        case ECONNREFUSED:
            return explain_absent(path, errno, err);
        case EACCES:
        case EPERM:
            return explain_denied(path, errno, err);
        case EAGAIN:
            return daemon_silent(path, ACCEPT_SECONDS * 1000, err);
        default:
            return error_set_errno(err, errno, "cannot connect to the Incus daemon at %s", path);
        }
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &unlimited, sizeof(unlimited));
    *ret_fd = fd;
    fd = -1;
    return 0;
}
