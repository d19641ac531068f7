/* What the watcher has armed, told to everybody else: one file that is replaced as a whole, and the watcher's lock.
 * A reader believes the file only while the lock is held, and waits for its next replacement with inotify.
 * Not for arming: watch.c. */
#include "stack/arm.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "stack/names.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every container's inotify instances count against root's (fs.inotify.max_user_instances, 128 by default): some twenty
 * boxes use them up, and then nothing wakes. */
#define BLIND_WAIT_MS 25

#define PORTS_FILE    STACK_RUN_DIRECTORY "/ports.json"
#define LOCK_FILE     STACK_RUN_DIRECTORY "/watch.pid"
#define PORTS_CEILING (1024 * 1024)

static int take_lock(int *ret_fd, struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CLEANUP(fd_closep) int fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return error_set_errno(err, errno, "cannot open %s", LOCK_FILE);
    }
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        if (errno == EACCES || errno == EAGAIN) {
            return error_set(err, ERR_STATE, "a watcher runs already (process %d)", (int)arm_watcher());
        }
        return error_set_errno(err, errno, "cannot lock %s", LOCK_FILE);
    }
    CLEANUP(freep) char *pid = xasprintf("%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0) {
        return error_set_errno(err, errno, "cannot write %s", LOCK_FILE);
    }
    if (fd_write_all(fd, pid, strlen(pid), err) < 0) {
        return -1;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int arm_lock(int *ret_fd, struct error *err)
{
    if (fd_make_directories(STACK_RUN_DIRECTORY, 0755, err) < 0) {
        return -1;
    }
    return take_lock(ret_fd, err);
}

pid_t arm_watcher(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CLEANUP(fd_closep) int fd = open(LOCK_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK) {
        return 0;
    }
    return lock.l_pid;
}

bool arm_watcher_runs(void)
{
    return arm_watcher() != 0;
}

int arm_publish(const struct arm_port *ports, size_t count, struct error *err)
{
    CLEANUP(json_freep) json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:b, s:s}", "interface", ports[i].interface,
                                                     "mac", ports[i].mac, "address", ports[i].address, "armed",
                                                     ports[i].armed, "reason", ports[i].reason));
    }
    CLEANUP(freep) char *text = json_write(array, 0);
    if (fd_write_file(PORTS_FILE ".new", text, strlen(text), 0640, err) < 0) {
        return -1;
    }
    const struct group *group = getgrnam(STACK_GROUP);
    if (group != NULL && chown(PORTS_FILE ".new", (uid_t)-1, group->gr_gid) < 0) {
        return error_set_errno(err, errno, "cannot give %s to the group %s", PORTS_FILE, STACK_GROUP);
    }
    if (rename(PORTS_FILE ".new", PORTS_FILE) < 0) {
        return error_set_errno(err, errno, "cannot replace %s", PORTS_FILE);
    }
    return 0;
}

static void copy_text(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from != NULL ? from : "");
}

static int no_watcher(struct error *err)
{
    (void)error_set(err, ERR_STATE,
                    "the firewall watcher does not run, so no new port of " STACK_NETWORK " passes anything");
    return error_remedy(err, "box setup-host (starts it), or as a service: systemctl start " STACK_UNIT);
}

int arm_list(struct arm_port **ret_ports, size_t *ret_count, struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(json_freep) json_t *array = NULL;
    if (!arm_watcher_runs()) {
        return no_watcher(err);
    }
    if (fd_read_file(PORTS_FILE, PORTS_CEILING, &text, err) < 0) {
        return error_wrap(err, "cannot see which ports are armed");
    }
    if (json_parse(text.data != NULL ? text.data : "", text.length, PORTS_FILE, &array, err) < 0) {
        return -1;
    }
    size_t count = json_array_size(array);
    struct arm_port *ports = xcalloc(count + 1, sizeof(*ports));
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(array, i);
        copy_text(ports[i].interface, sizeof(ports[i].interface), json_text(entry, "interface"));
        copy_text(ports[i].mac, sizeof(ports[i].mac), json_text(entry, "mac"));
        copy_text(ports[i].address, sizeof(ports[i].address), json_text(entry, "address"));
        copy_text(ports[i].reason, sizeof(ports[i].reason), json_text(entry, "reason"));
        ports[i].armed = json_truth(entry, "armed");
    }
    *ret_ports = ports;
    *ret_count = count;
    return 0;
}

/* 1 armed, 0 not yet (with the reason), -1 no answer. */
static int look(const char *interface, const char *mac, char reason[96], struct error *err)
{
    CLEANUP(freep) struct arm_port *ports = NULL;
    size_t count = 0;
    if (arm_list(&ports, &count, err) < 0) {
        return -1;
    }
    copy_text(reason, 96, "the watcher has not seen it on " STACK_NETWORK);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ports[i].interface, interface) != 0) {
            continue;
        }
        if (!ports[i].armed) {
            copy_text(reason, 96, ports[i].reason);
        } else if (mac == NULL || strcasecmp(mac, ports[i].mac) == 0) {
            return 1;
        } else {
            copy_text(reason, 96, "it is armed for another MAC");
        }
    }
    return 0;
}

/* Sleeps until the file is replaced, a signal comes or the time is up. The lock has no event: a watcher that dies
 * meanwhile is noticed within a second. */
static void wait_for_change(int notify, int64_t deadline)
{
    struct pollfd polled[2] = {{.fd = notify, .events = POLLIN}, {.fd = cancel_fd(), .events = POLLIN}};
    int left = clock_left(deadline);
    int patience = notify < 0 ? BLIND_WAIT_MS : 1000;
    if (poll(polled, 2, left < 0 || left > patience ? patience : left) > 0 && (polled[0].revents & POLLIN) != 0) {
        char events[4096];
        while (read(notify, events, sizeof(events)) > 0) {
            /* The file itself is read afterwards; the events only wake. */
        }
    }
}

int arm_wait(const char *interface, const char *mac, int64_t budget, struct error *err)
{
    int64_t deadline = clock_deadline(budget);
    char reason[96] = "";
    CLEANUP(fd_closep) int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (notify < 0 && errno != EMFILE) {
        return error_set_errno(err, errno, "cannot wait for the watcher's changes");
    }
    if (notify >= 0 && inotify_add_watch(notify, STACK_RUN_DIRECTORY, IN_MOVED_TO) < 0) {
        return no_watcher(err);
    }
    for (;;) {
        int armed = look(interface, mac, reason, err);
        if (armed != 0) {
            return armed > 0 ? 0 : -1;
        }
        if (cancel_check(err) < 0) {
            return -1;
        }
        if (clock_left(deadline) == 0) {
            (void)error_set(err, ERR_STATE, "port %s is not armed and passes nothing: %s", interface, reason);
            return error_remedy(err, "box firewall show");
        }
        wait_for_change(notify, deadline);
    }
}
