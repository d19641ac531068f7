/* A box into a file: the daemon's backup, fetched and dropped, the file whole or not there.
 * Not for the way back: import.c. */
#include "box/export.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/artifact.h"
#include "incus/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISCARD_BUDGET (10 * 60 * 1000)
#define RETRY_MS       1000
#define GUARD_BUDGET   (60 * 60 * 1000) /* of a child that nobody waits for */
#define GUARD_LOOKS    5                /* a request of a dead client may reach the daemon's hands after the first one */

struct export
{
    struct client *client;
    const struct export_request *request;
    struct narrator *narrator;
    char *path, *directory; /* of the file */
    char *temporary;        /* its name until it is whole; NULL where it has none */
    char *backup;           /* in the daemon */
    int fd;
    pid_t guard;
    int guard_fd; /* closed without a word: the guard acts */
};

static void export_reset(struct export *export)
{
    fd_closep(&export->fd);
    fd_closep(&export->guard_fd);
    if (export->temporary) {
        (void)unlink(export->temporary);
    }
    free(export->temporary);
    free(export->path);
    free(export->directory);
    free(export->backup);
}

static int choose_path(struct export *export, struct error *err)
{
    const char *path = export->request->path;
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm broken;
    struct stat status;

    if (gmtime_r(&now, &broken)) {
        (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &broken);
    }
    CLEANUP(freep) char *name = xasprintf("%s-%s.tar.zst", export->request->box->name, stamp);

    if (!path) {
        path = ".";
    }
    bool is_directory = text_ends_with(path, "/") || (stat(path, &status) == 0 && S_ISDIR(status.st_mode));

    export->path = is_directory ? xasprintf("%s/%s", path, name) : xstrdup(path);
    char *slash = strrchr(export->path, '/');

    export->directory = !slash                  ? xstrdup(".")
                        : slash == export->path ? xstrdup("/")
                                                : xstrndup(export->path, (size_t)(slash - export->path));
    if (!export->request->overwrite && lstat(export->path, &status) == 0) {
        error_set(err, ERR_EXISTS, "%s is there already", export->path);
        return error_remedy(err, "choose another name, or overwrite it: --force");
    }
    if (lstat(export->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        return error_set(err, ERR_USAGE, "%s is not a regular file", export->path);
    }
    return 0;
}

/* A file without a name where the file system can: then nothing is left of it, whatever happens. */
static int open_target(struct export *export, struct error *err)
{
    export->fd = open(export->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (export->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        CLEANUP(freep) char *name = xasprintf("%s/.%s.part", export->directory, export->backup);

        export->fd = open(name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
        if (export->fd >= 0) {
            export->temporary = steal(&name);
        }
    }
    return export->fd >= 0 ? 0 : error_set_errno(err, errno, "cannot write into %s", export->directory);
}

static int name_target(struct export *export, struct error *err)
{
    if (fsync(export->fd) < 0) {
        return error_set_errno(err, errno, "cannot write %s", export->path);
    }
    if (!export->temporary) {
        CLEANUP(freep) char *name = xasprintf("%s/.%s.part", export->directory, export->backup);
        CLEANUP(freep) char *source = xasprintf("/proc/self/fd/%d", export->fd);

        if (linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0) {
            return error_set_errno(err, errno, "cannot name %s", export->path);
        }
        export->temporary = steal(&name);
    }
    unsigned flags = export->request->overwrite ? 0 : RENAME_NOREPLACE;

    if (renameat2(AT_FDCWD, export->temporary, AT_FDCWD, export->path, flags) < 0) {
        return errno == EEXIST ? error_set(err, ERR_EXISTS, "%s appeared meanwhile, and was not touched", export->path)
                               : error_set_errno(err, errno, "cannot name %s", export->path);
    }
    free(steal(&export->temporary));
    return 0;
}

static int discard(struct client *client, const struct export *export)
{
    return backup_discard(client, export->request->box->name, export->backup, DISCARD_BUDGET, NULL);
}

/* The child: waits for the parent's end. A byte says that all is done; silence that the parent was killed. */
static void stand_guard(const struct export *export, int fd)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char byte;

    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)setsid();
    /* Whoever reads the parent's output must see its end with the parent; the daemon its connection's. */
    for (int i = 0; i < 3 && null >= 0; i++) {
        (void)dup2(null, i);
    }
    (void)dup2(fd, 3);
    (void)close_range(4, ~0U, 0);
    ssize_t got;
    do {
        got = read(3, &byte, 1);
    } while (got < 0 && errno == EINTR);
    /* A daemon that restarts is back some seconds later: nothing tells when. */
    int64_t deadline = clock_deadline(GUARD_BUDGET);

    for (int looks = 0; got == 0 && looks < GUARD_LOOKS && clock_left(deadline) != 0;) {
        CLEANUP(client_closep) struct client *client = NULL;

        if (client_open(&client, NULL) == 0 && discard(client, export) == 0) {
            looks++;
        }
        (void)poll(NULL, 0, RETRY_MS);
    }
}

static int post_guard(struct export *export, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    (void)fflush(NULL);
    export->guard = fork();
    if (export->guard < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return error_set_errno(err, errno, "cannot start a process");
    }
    if (export->guard == 0) {
        (void)close(ends[1]);
        stand_guard(export, ends[0]);
        _exit(0);
    }
    (void)close(ends[0]);
    export->guard_fd = ends[1];
    return 0;
}

static void dismiss_guard(struct export *export)
{
    /* Without a reader there is no guard, and SIGPIPE would be the answer. */
    void (*former)(int) = signal(SIGPIPE, SIG_IGN);

    (void)!write(export->guard_fd, "", 1);
    (void)signal(SIGPIPE, former);
    fd_closep(&export->guard_fd);
    while (waitpid(export->guard, NULL, 0) < 0 && errno == EINTR) {
    }
}

static bool says_full(const struct error *err)
{
    return err->errnum == ENOSPC || err->errnum == EDQUOT ||
           (err->message && (strstr(err->message, "o space left on device") || strstr(err->message, "uota exceeded")));
}

static int lacks_room_to_pack(const struct export *export, const char *cause, struct error *err)
{
    error_set(err, ERR_STATE,
              "the disk of the daemon has no room to pack %s (its backups lie below its own directory, "
              "/var/lib/incus/backups): %s",
              export->request->box->name, cause);
    return error_remedy(err, "make room there, or leave the snapshots out: --instance-only");
}

static int make_backup(struct export *export, struct error *err)
{
    static const char *const compressions[] = {"zstd", "gzip"};
    const char *name = export->request->box->name;

    narrate_step(export->narrator, "packing %s", name);
    for (size_t i = 0; i < ARRAY_LENGTH(compressions); i++) {
        CLEANUP(error_reset) struct error cause = {0};

        if (backup_create(export->client, name, export->backup, export->request->instance_only, compressions[i],
                          export->narrator, &cause) == 0) {
            narrate_done(export->narrator, "%s", "");
            return 0;
        }
        /* The daemon's host may lack zstd. */
        if (i == 0 && cause.message && strstr(cause.message, "executable file not found")) {
            continue;
        }
        if (says_full(&cause)) {
            return lacks_room_to_pack(export, cause.message, err);
        }
        return error_move(err, &cause);
    }
    return error_set(err, ERR_SYSTEM, "the daemon can compress with neither zstd nor gzip");
}

/* Incus 6.0 calls a backup done although the disk was full and the file is cut off: only reading it to its end tells. */
static int check_whole(struct export *export, struct error *err)
{
    CLEANUP(artifact_reset) struct artifact artifact = {0};
    CLEANUP(error_reset) struct error cause = {0};

    narrate_step(export->narrator, "reading it again");
    if (lseek(export->fd, 0, SEEK_SET) < 0) {
        return error_set_errno(err, errno, "cannot read %s again", export->path);
    }
    if (artifact_check(export->fd, export->path, export->narrator, &artifact, &cause) == 0) {
        narrate_done(export->narrator, "whole, %llu members", (unsigned long long)artifact.members);
        return 0;
    }
    if (cause.code == ERR_CONTRACT) {
        narrate_done(export->narrator, "whole");
        narrate_warn(export->narrator, "box import would refuse it: %s", cause.message);
        return 0;
    }
    return cause.code == ERR_USAGE ? lacks_room_to_pack(export, "what it packed is cut off", err)
                                   : error_move(err, &cause);
}

static int cannot_write(const struct export *export, struct error *cause, struct error *err)
{
    if (!says_full(cause)) {
        return error_move(err, cause);
    }
    error_set(err, ERR_STATE, "the disk of %s has no room for %s", export->directory, export->path);
    return error_remedy(err, "make room there, or name a file on another disk");
}

static int fetch(struct export *export, struct error *err)
{
    CLEANUP(error_reset) struct error cause = {0};

    narrate_step(export->narrator, "writing %s", export->path);
    if (backup_download(export->client, export->request->box->name, export->backup, export->fd, export->narrator,
                        &cause) < 0) {
        return cannot_write(export, &cause, err);
    }
    narrate_done(export->narrator, "%s", "");
    if (check_whole(export, err) < 0) {
        return -1;
    }
    return name_target(export, &cause) < 0 ? cannot_write(export, &cause, err) : 0;
}

/* On every way out; a Ctrl-C must not stop the cleaning up. Where the daemon does not answer any more the guard goes
 * on. */
static void drop_backup(struct export *export)
{
    CLEANUP(error_reset) struct error cause = {0};

    cancel_mask(true);
    /* One that failed for a connection that broke may do over the next one. */
    if (discard(export->client, export) == 0 ||
        backup_discard(export->client, export->request->box->name, export->backup, DISCARD_BUDGET, &cause) == 0) {
        dismiss_guard(export);
    } else {
        narrate_warn(export->narrator,
                     "the daemon's own copy is not dropped yet: %s. A child goes on trying, and "
                     "Incus drops it after a day",
                     cause.message);
        fd_closep(&export->guard_fd);
    }
    cancel_mask(false);
}

int export_run(struct client *client, const struct export_request *request, struct narrator *narrator, char **ret_path,
               struct error *err)
{
    CLEANUP(export_reset)
    struct export export = {
        .client = client,
        .request = request,
        .narrator = narrator,
        .backup = xasprintf("box-%lld-%d", (long long)time(NULL), (int)getpid()),
        .fd = -1,
        .guard_fd = -1,
    };

    if (choose_path(&export, err) < 0 || open_target(&export, err) < 0 || post_guard(&export, err) < 0) {
        return -1;
    }
    int result = make_backup(&export, err) < 0 || fetch(&export, err) < 0 ? -1 : 0;

    drop_backup(&export);
    if (result < 0) {
        return error_wrap(err, "cannot export %s", request->box->name);
    }
    *ret_path = steal(&export.path);
    return 0;
}
