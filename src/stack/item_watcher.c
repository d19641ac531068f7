/* The watcher's life: a service where systemd is pid 1, which then also lays the walls at boot before the daemon starts
 * boxes; a plain process elsewhere, which this machine's next boot does not start.
 * Not for what it does: watch.c. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/procfs.h"
#include "host/systemd.h"
#include "stack/arm.h"
#include "stack/names.h"
#include "stack/table.h"
#include "stack/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME     "watcher"
#define LOG_PATH STACK_RUN_DIRECTORY "/firewall.log"
#define START_MS 10000

/* True where the process runs the very file at `program`: not an older one that was replaced under it. */
static bool runs_program(pid_t pid, const char *program)
{
    struct stat running, wanted;
    CLEANUP(freep) char *path = xasprintf("/proc/%d/exe", (int)pid);
    return stat(path, &running) == 0 && stat(program, &wanted) == 0 && running.st_dev == wanted.st_dev &&
           running.st_ino == wanted.st_ino;
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    pid_t watcher = arm_watcher();
    if (systemd_runs()) {
        CLEANUP(freep) char *wanted = unit_text(stack->program);
        CLEANUP(freep) char *live = NULL;
        if (unit_read(&live, err) < 0) {
            return -1;
        }
        if (!text_equal(live, wanted)) {
            table_change(changes, NAME, "unit " STACK_UNIT, live != NULL ? "other content" : NULL, "ours",
                         "after the next boot boxes have no network");
        } else if (!systemd_is_enabled(STACK_UNIT)) {
            table_change(changes, NAME, "unit " STACK_UNIT, "disabled", "enabled",
                         "after the next boot boxes have no network");
        }
        if (watcher != 0 && !systemd_is_active(STACK_UNIT)) {
            table_change(changes, NAME, "process", "outside of the service", "the service", "nobody restarts it");
            return 0;
        }
    } else {
        argv_push(&stack->notes, "systemd is not pid 1 here: the watcher runs as a plain process (log: " LOG_PATH
                                 "), and the next boot does not start it: run box setup-host then");
    }
    if (watcher == 0) {
        table_change(changes, NAME, "process", NULL, "running", "no new port passes anything");
    } else if (!runs_program(watcher, stack->program)) {
        table_change(changes, NAME, "process", "another version", "this version",
                     "the walls are those of an older box");
    }
    return 0;
}

static int stop_process(struct error *err)
{
    pid_t pid = arm_watcher();
    return pid == 0 ? 0 : procfs_end(pid, "the watcher", err);
}

/* The socket on which the new process says that it is ready, as to a service manager. */
static int open_notify(const char *path, int *ret_fd, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, strlen(path));
    (void)unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        return error_set_errno(err, errno, "cannot make the socket %s", path);
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* In the child: a session of its own, nothing of the caller's terminal, then box firewall watch. */
static void become_watcher(const char *program, int log, const char *notify)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (setsid() < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || chdir("/") < 0 ||
        setenv("NOTIFY_SOCKET", notify, 1) < 0) {
        _exit(126);
    }
    (void)signal(SIGHUP, SIG_IGN);
    (void)execl(program, "box", "firewall", "watch", (char *)NULL);
    _exit(127);
}

static char *last_line_of_log(off_t start)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(fd_closep) int fd = open(LOG_PATH, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || lseek(fd, start, SEEK_SET) < 0 || fd_read_all(fd, 1024 * 1024, &text, NULL) < 0 || text.length == 0) {
        return xstrdup("no word of why");
    }
    while (text.length > 0 && text.data[text.length - 1] == '\n') {
        text.data[--text.length] = '\0';
    }
    const char *line = strrchr(text.data, '\n');
    return xstrdup(line != NULL ? line + 1 : text.data);
}

static int wait_ready(pid_t child, int notify, off_t log_start, struct narrator *narrator, struct error *err)
{
    int64_t deadline = clock_deadline(START_MS);
    for (;;) {
        struct pollfd polled = {.fd = notify, .events = POLLIN};
        int left = clock_left(deadline);
        if (poll(&polled, 1, left < NARRATE_TICK_MS ? left : NARRATE_TICK_MS) > 0) {
            char word[64] = "";
            if (recv(notify, word, sizeof(word) - 1, 0) > 0 && strstr(word, "READY=1") != NULL) {
                return 0;
            }
        }
        int status = 0;
        CLEANUP(freep) char *words = NULL;
        if (waitpid(child, &status, WNOHANG) == child) {
            words = last_line_of_log(log_start);
            return error_set(err, ERR_STATE, "the watcher ended at once: %s", words);
        }
        if (clock_left(deadline) == 0) {
            words = last_line_of_log(log_start);
            return error_set(err, ERR_TIMEOUT, "the watcher is not ready after %d s: %s", START_MS / 1000, words);
        }
        narrate_tick(narrator);
    }
}

static int start_process(const char *program, struct narrator *narrator, struct error *err)
{
    CLEANUP(freep) char *notify_path = xasprintf(STACK_RUN_DIRECTORY "/notify-%d", (int)getpid());
    CLEANUP(fd_closep) int notify = -1;
    if (fd_make_directories(STACK_RUN_DIRECTORY, 0755, err) < 0 || open_notify(notify_path, &notify, err) < 0) {
        return -1;
    }
    CLEANUP(fd_closep) int log = open(LOG_PATH, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (log < 0) {
        (void)unlink(notify_path);
        return error_set_errno(err, errno, "cannot open %s", LOG_PATH);
    }
    off_t log_start = lseek(log, 0, SEEK_END);
    pid_t child = fork();
    if (child == 0) {
        become_watcher(program, log, notify_path);
    }
    int result = child < 0 ? error_set_errno(err, errno, "cannot start a process")
                           : wait_ready(child, notify, log_start, narrator, err);
    (void)unlink(notify_path);
    return result;
}

static int converge_service(struct stack *stack, struct error *err)
{
    CLEANUP(freep) char *text = unit_text(stack->program);
    /* A watcher outside of the service holds the lock that the service needs. */
    if ((!systemd_is_active(STACK_UNIT) && stop_process(err) < 0) || unit_lay(text, err) < 0 ||
        systemd_control("daemon-reload", NULL, err) < 0 || systemd_control("enable", STACK_UNIT, err) < 0) {
        return -1;
    }
    /* Restarted, not started: a service that runs already would go on with its old program. */
    if (systemd_control("restart", STACK_UNIT, err) < 0) {
        return error_remedy(err, "journalctl -u " STACK_UNIT);
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    (void)changes;
    if (systemd_runs()) {
        return converge_service(stack, err);
    }
    if (stop_process(err) < 0 || start_process(stack->program, narrator, err) < 0) {
        return -1;
    }
    narrate_note(narrator, "the watcher runs as a plain process (log: " LOG_PATH ")");
    return 0;
}

/* All of it is the watcher's: what it publishes, its lock and log, a notify socket of a set-up that was killed. */
static int remove_run_directory(struct error *err)
{
    DIR *directory = opendir(STACK_RUN_DIRECTORY);
    if (directory == NULL) {
        return errno == ENOENT ? 0 : error_set_errno(err, errno, "cannot open %s", STACK_RUN_DIRECTORY);
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    }
    (void)closedir(directory);
    if (rmdir(STACK_RUN_DIRECTORY) < 0 && errno != ENOENT) {
        return error_set_errno(err, errno, "cannot remove %s", STACK_RUN_DIRECTORY);
    }
    return 0;
}

static int remove_watcher(struct stack *stack, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)narrator;
    CLEANUP(freep) char *unit = NULL;
    if (systemd_runs() && unit_read(&unit, err) < 0) {
        return -1;
    }
    if (unit != NULL) {
        if (systemd_control("stop", STACK_UNIT, err) < 0 || systemd_control("disable", STACK_UNIT, err) < 0 ||
            unit_remove(err) < 0 || systemd_control("daemon-reload", NULL, err) < 0) {
            return error_wrap(err, "cannot remove the unit " STACK_UNIT);
        }
    }
    if (stop_process(err) < 0) {
        return -1;
    }
    return remove_run_directory(err);
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    pid_t watcher = arm_watcher();
    (void)stack;
    (void)err;
    if (watcher != 0) {
        argv_push_format(ret_standing, "the watcher (process %d)", (int)watcher);
    }
    if (unit_stands() || (systemd_runs() && systemd_is_enabled(STACK_UNIT))) {
        argv_push(ret_standing, "unit " STACK_UNIT);
    }
    if (access(STACK_RUN_DIRECTORY, F_OK) == 0) {
        argv_push(ret_standing, "directory " STACK_RUN_DIRECTORY);
    }
    return 0;
}

const struct stack_object item_watcher = {
    .name = NAME,
    .why = "no new port passes anything without it",
    .needs_root = true,
    .budget = 30000,
    .judge = judge,
    .converge = converge,
    .remove = remove_watcher,
    .stands = stands,
    .rank = 7,
};
