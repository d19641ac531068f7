/* Files between this host and a box: one process makes or unpacks the archive, this one moves it and tells how far it
 * is. Not for: what the command line says; see command_cp.c. */
#include "cli/transfer.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/tally.h"
#include "base/tarwrite.h"
#include "base/text.h"
#include "base/unpack.h"
#include "box/box.h"
#include "cli/amount.h"
#include "cli/landing.h"
#include "cli/lastwords.h"
#include "incus/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPE_ROOM  (1 << 20)
#define QUIET_TIME 1000 /* milliseconds; a copy that takes less says nothing */
#define LARGE      ((off_t)64 << 20)

/* Both scripts: what `~` means, and no path that looks like a flag. */
#define FIND_PATH                                                                                                      \
    "path=$1\n"                                                                                                        \
    "fail() { echo \"$1\" >&2; exit 3; }\n"                                                                            \
    "case $path in '') path=. ;; '~') path=$HOME ;; '~/'*) path=$HOME/${path#'~/'} ;; -*) path=./$path ;; esac\n"

/* What is written: a directory that is there, or a new name in one. `$2` is 1 where only the former will do. */
#define FIND_TARGET                                                                                                    \
    FIND_PATH                                                                                                          \
    "if [ -d \"$path\" ]; then\n"                                                                                      \
    "    into=$path name=\n"                                                                                           \
    "else\n"                                                                                                           \
    "    case $2$path in 1* | */) fail \"there is no directory $1\" ;; esac\n"                                         \
    "    into=$(dirname -- \"$path\") name=$(basename -- \"$path\")\n"                                                 \
    "    [ -d \"$into\" ] || fail \"there is no directory $into\"\n"                                                   \
    "fi\n"                                                                                                             \
    "tmp=$(mktemp -d \"$into/.box-cp-XXXXXXXX\") || exit 3\n"

#define CLEAN_UP                                                                                                       \
    "trap 'rm -rf -- \"$tmp\"' EXIT\n"                                                                                 \
    "trap 'exit 129' HUP\n"                                                                                            \
    "trap 'exit 130' INT\n"                                                                                            \
    "trap 'exit 143' TERM\n"

/* Unpacks beside the target, looks whether all has come, and only then gives it its name. A directory that is there
 * already is merged into, by links: that takes no time and no room. */
static const char push_script[] =
    FIND_TARGET CLEAN_UP "tar -xof - -C \"$tmp\" || exit 3\n"
                         "[ -e \"$tmp/whole\" ] || fail 'the stream ended early'\n"
                         "place() {\n"
                         "    if [ -d \"$1\" ] && [ ! -L \"$1\" ] && [ -d \"$2\" ]; then\n"
                         "        cp -alT --remove-destination -- \"$1\" \"$2\" 2>/dev/null ||\n"
                         "            cp -aT --remove-destination -- \"$1\" \"$2\" || exit 3\n"
                         "    else\n"
                         "        mv -fT -- \"$1\" \"$2\" || exit 3\n"
                         "    fi\n"
                         "}\n"
                         "for item in \"$tmp\"/in/* \"$tmp\"/in/.[!.]* \"$tmp\"/in/..?*; do\n"
                         "    [ -e \"$item\" ] || [ -L \"$item\" ] || continue\n"
                         "    place \"$item\" \"$into/${name:-${item##*/}}\"\n"
                         "done\n"
                         "[ ! -d \"$tmp/of\" ] || place \"$tmp/of\" \"$into/$name\"\n";

/* For one large file: no archive, so that its bytes are touched once less on either side. `$3` is its own name, `$4`
 * its size, `$5` its mode, `$6` its time. */
static const char file_script[] =
    FIND_TARGET CLEAN_UP "cat >\"$tmp/data\" || exit 3\n"
                         "[ \"$(stat -c %s -- \"$tmp/data\")\" -ge \"$4\" ] || fail 'the stream ended early'\n"
                         "chmod -- \"$5\" \"$tmp/data\" && touch -d \"@$6\" -- \"$tmp/data\" || exit 3\n"
                         "mv -fT -- \"$tmp/data\" \"$into/${name:-$3}\" || exit 3\n";

/* A file is told with the size that reading it yields: /proc tells 0, /sys a page, whatever is in them. What such a
 * file holds goes into a file of its own first; a tree of them is refused, for tar would take none of it without a
 * word. */
static const char pull_script[] = FIND_PATH
    "if [ -d \"$path\" ]; then\n"
    "    kind=$(stat -f -c %T -- \"$path\" 2>/dev/null)\n"
    "    case $kind in proc | sysfs | debugfs | tracefs | securityfs | configfs | cgroup*)\n"
    "        fail \"$1 holds files of the kernel ($kind): copy the files that are meant one by one\" ;;\n"
    "    esac\n"
    "    exec tar --hard-dereference -b 512 -C \"$path\" -cf - .\n"
    "fi\n"
    "[ -e \"$path\" ] || fail \"there is no $1\"\n"
    "[ -f \"$path\" ] || fail \"$1 is neither a file nor a directory\"\n"
    "size=$(stat -L -c %s -- \"$path\") || exit 3\n"
    "if [ \"$size\" -le 1048576 ] && [ \"$(cat -- \"$path\" 2>/dev/null | wc -c)\" -ne \"$size\" ]; then\n"
    "    tmp=$(mktemp -d -t box-cp-XXXXXXXX) || exit 3\n" CLEAN_UP "    cat -- \"$path\" >\"$tmp/data\" || exit 3\n"
    "    chmod --reference=\"$path\" -- \"$tmp/data\" && touch -r \"$path\" -- \"$tmp/data\" || exit 3\n"
    "    tar -b 512 -C \"$tmp\" -cf - ./data\n"
    "    exit\n"
    "fi\n"
    "exec tar -h -b 512 -C \"$(dirname -- \"$path\")\" -cf - \"./$(basename -- \"$path\")\"\n";

/* What the two processes share. */
struct shared {
    uint64_t moved, total;
    struct tally skipped, grown;
    enum error_code code; /* of the helper's failure */
    char message[4096];
};

/* A narrator that tells the rate and hands the rest on. */
struct meter {
    struct narrator narrator;
    struct narrator *below;
    struct shared *shared;
    const char *title;
    int64_t began;
    bool told;         /* that a copy is going on */
    pid_t producer;    /* to be ended on Ctrl-C; 0: none */
    const int *source; /* the file that is sent as it is; NULL: an archive is */
};

static void unmap(struct shared **shared)
{
    if (*shared) {
        (void)munmap(*shared, sizeof(**shared));
    }
}

static struct shared *share(void)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        abort();
    }
    return shared;
}

static char *describe_rate(const struct meter *meter)
{
    uint64_t moved = __atomic_load_n(&meter->shared->moved, __ATOMIC_RELAXED);
    int64_t passed = clock_now() - meter->began;
    CLEANUP(freep) char *amount = amount_describe(moved);
    CLEANUP(freep) char *rate = amount_describe(passed > 0 ? moved * 1000 / (uint64_t)passed : moved);
    return xasprintf("%s, %s/s", amount, rate);
}

/* How far a file is that is sent as it is; on Ctrl-C the rest of it is skipped, with the same effect in the guest. */
static void follow_source(struct meter *meter)
{
    off_t at = lseek(*meter->source, 0, SEEK_CUR);
    if (cancel_requested()) {
        (void)lseek(*meter->source, 0, SEEK_END);
    } else if (at > 0) {
        __atomic_store_n(&meter->shared->moved, (uint64_t)at, __ATOMIC_RELAXED);
    }
}

static void meter_tick(struct narrator *narrator)
{
    struct meter *meter = (struct meter *)narrator;
    if (cancel_requested() && meter->producer) {
        (void)kill(meter->producer, SIGKILL); /* the guest then sees a stream that ended early, and cleans up */
        meter->producer = 0;
    }
    if (meter->source) {
        follow_source(meter);
    }
    if (!meter->told && clock_now() - meter->began >= QUIET_TIME) {
        meter->told = true;
        narrate_step(meter->below, "%s", meter->title);
    }
    if (!meter->told) {
        return;
    }
    CLEANUP(freep) char *rate = describe_rate(meter);
    uint64_t total = __atomic_load_n(&meter->shared->total, __ATOMIC_RELAXED);
    uint64_t moved = __atomic_load_n(&meter->shared->moved, __ATOMIC_RELAXED);
    if (total) {
        narrate_progress(meter->below, "%d%% (%s)", (int)(moved >= total ? 100 : moved * 100 / total), rate);
    } else {
        narrate_progress(meter->below, "%s", rate);
    }
    narrate_tick(meter->below);
}

static void meter_say(struct narrator *narrator, enum narrate_kind kind, const char *text)
{
    struct meter *meter = (struct meter *)narrator;
    meter->below->say(meter->below, kind, text);
}

/* The helper's failure, where it has one of its own to tell. */
static int helper_failed(const struct shared *shared, struct error *err)
{
    return shared->code ? error_set(err, shared->code, "%s", shared->message) : 0;
}

static void helper_tell(struct shared *shared, const struct error *failure)
{
    shared->code = failure->code;
    (void)snprintf(shared->message, sizeof(shared->message), "%s", failure->message ? failure->message : "");
}

/* 0 in the helper, as fork(). Signals of the terminal are the parent's to judge. */
static pid_t helper_begin(int parents_end, struct error *err)
{
    pid_t child = fork();
    if (child < 0) {
        return error_set_errno(err, errno, "cannot start a second process");
    }
    if (child == 0) {
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGHUP, SIG_IGN);
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)close(parents_end);
    }
    return child;
}

static void helper_end(pid_t child)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

static int send_sources(const struct argv *sources, int fd, struct shared *shared, struct error *err)
{
    const struct tarwrite archive = {
        .fd = fd, .moved = &shared->moved, .skipped = &shared->skipped, .grown = &shared->grown};
    for (size_t i = 0; i < sources->count; i++) {
        __atomic_add_fetch(&shared->total, tarwrite_size(sources->items[i]), __ATOMIC_RELAXED);
    }
    if (tarwrite_directory(&archive, "in", err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sources->count; i++) {
        CLEANUP(freep) char *base = transfer_base(sources->items[i]);
        CLEANUP(freep) char *name = *base ? xasprintf("in/%s", base) : xstrdup("of");
        if (tarwrite_add(&archive, sources->items[i], name, err) < 0) {
            return -1;
        }
    }
    return tarwrite_empty(&archive, "whole", err) < 0 ? -1 : tarwrite_end(&archive, err);
}

struct courier {
    struct meter meter;
    struct shared *shared;
    struct buffer errors;
    int status;
};

static void courier_reset(struct courier *courier)
{
    unmap(&courier->shared);
    buffer_reset(&courier->errors);
}

static int carry(struct context *context, const struct box *box, const char *const *script, int input, int output,
                 struct courier *courier, struct error *err)
{
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    CLEANUP(argv_reset) struct argv inner = {0};
    CLEANUP(argv_reset) struct argv command = {0};
    argv_push_all(&inner, script);
    landing_command(box, &inner, &command);
    CLEANUP(json_freep) json_t *environment = landing_environment(NULL);
    courier->meter.narrator = (struct narrator){.say = meter_say, .tick = meter_tick};
    courier->meter.below = context->narrator;
    courier->meter.shared = courier->shared;
    courier->meter.began = clock_now();
    struct exec_request request = {
        .instance = box->name,
        .command = (const char *const *)command.items,
        .environment = environment,
        .directory = "/",
        .input = input,
        .output = output,
        .errors = -1,
        .capture_errors = &courier->errors,
        .narrator = &courier->meter.narrator,
    };
    return exec_run(client, &request, &courier->status, err);
}

static void conclude(struct context *context, const struct courier *courier)
{
    const struct shared *shared = courier->shared;
    if (courier->meter.told) {
        CLEANUP(freep) char *rate = describe_rate(&courier->meter);
        narrate_done(context->narrator, "%s", rate);
    }
    if (shared->skipped.count) {
        CLEANUP(freep) char *names = tally_names(&shared->skipped);
        narrate_warn(context->narrator,
                     "%llu left out: no file, no directory, or a symbolic link that leads out of what was copied: %s",
                     (unsigned long long)shared->skipped.count, names);
    }
    if (shared->grown.count) {
        CLEANUP(freep) char *names = tally_names(&shared->grown);
        narrate_warn(context->narrator, "%llu grew meanwhile, and went as long as at the beginning: %s",
                     (unsigned long long)shared->grown.count, names);
    }
}

/* Why the guest's half failed. 125 and 127 are the landing's own. */
static int refused(const struct courier *courier, struct error *err)
{
    CLEANUP(freep) char *words = lastwords_of(courier->errors.data, courier->errors.length);
    return error_set(err, ERR_SYSTEM, "%s (exit status %d in the box)", *words ? words : "it ended without a word",
                     courier->status);
}

static int push_tree(struct context *context, const struct box *box, const struct argv *sources,
                     const char *destination, struct error *err)
{
    CLEANUP(courier_reset) struct courier courier = {.shared = share()};
    CLEANUP(freep) char *title = xasprintf("copying to %s", box->name);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_ROOM);
    CLEANUP(fd_closep) int input = ends[0];
    CLEANUP(fd_closep) int output = ends[1];
    pid_t child = helper_begin(input, err);
    if (child < 0) {
        return -1;
    }
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        CLEANUP(error_reset) struct error failure = {0};
        if (send_sources(sources, output, courier.shared, &failure) < 0) {
            helper_tell(courier.shared, &failure);
        }
        _exit(0);
    }
    fd_closep(&output);
    const char *const script[] = {"sh", "-c", push_script, "box-cp", destination, sources->count > 1 ? "1" : "0", NULL};
    courier.meter.title = title;
    courier.meter.producer = child;
    int result = carry(context, box, script, input, -1, &courier, err);
    fd_closep(&input);
    (void)kill(child, SIGKILL);
    helper_end(child);
    if (result < 0 || cancel_check(err) < 0 || helper_failed(courier.shared, err) < 0) {
        return -1;
    }
    if (courier.status != 0) {
        (void)refused(&courier, err);
        return error_wrap(err, "cannot copy to %s:%s", box->name, destination);
    }
    conclude(context, &courier);
    return 0;
}

static int push_file(struct context *context, const struct box *box, const char *source, const char *destination,
                     struct error *err)
{
    CLEANUP(fd_closep) int fd = open(source, O_RDONLY | O_CLOEXEC);
    CLEANUP(courier_reset) struct courier courier = {.shared = share()};
    CLEANUP(freep) char *title = xasprintf("copying to %s", box->name);
    CLEANUP(freep) char *base = transfer_base(source);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set_errno(err, errno, "cannot read %s", source);
    }
    CLEANUP(freep) char *size = xasprintf("%lld", (long long)status.st_size);
    CLEANUP(freep) char *mode = xasprintf("%04o", (unsigned)status.st_mode & 0755);
    CLEANUP(freep) char *when = xasprintf("%lld", (long long)status.st_mtime);
    const char *const script[] = {"sh", "-c", file_script, "box-cp", destination, "0", base, size, mode, when, NULL};
    courier.meter.title = title;
    courier.meter.source = &fd;
    courier.shared->total = (uint64_t)status.st_size;
    if (carry(context, box, script, fd, -1, &courier, err) < 0 || cancel_check(err) < 0) {
        return -1;
    }
    if (courier.status != 0) {
        return refused(&courier, err);
    }
    courier.shared->moved = (uint64_t)status.st_size;
    conclude(context, &courier);
    return 0;
}

int transfer_push(struct context *context, const struct box *box, const struct argv *sources, const char *destination,
                  struct error *err)
{
    struct stat status;
    bool large = sources->count == 1 && stat(sources->items[0], &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_size >= LARGE;
    if (!large) {
        return push_tree(context, box, sources, destination, err);
    }
    if (push_file(context, box, sources->items[0], destination, err) < 0) {
        return error_wrap(err, "cannot copy to %s:%s", box->name, destination);
    }
    return 0;
}

int transfer_pull(struct context *context, const struct box *box, const char *source, const char *target,
                  struct error *err)
{
    CLEANUP(courier_reset) struct courier courier = {.shared = share()};
    CLEANUP(freep) char *title = xasprintf("copying from %s", box->name);
    int ends[2];
    /* Not a pipe: what may be written to one without blocking is a page. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return error_set_errno(err, errno, "cannot make a socket");
    }
    CLEANUP(fd_closep) int input = ends[0];
    CLEANUP(fd_closep) int output = ends[1];
    pid_t child = helper_begin(output, err);
    if (child < 0) {
        return -1;
    }
    if (child == 0) {
        CLEANUP(error_reset) struct error failure = {0};
        const struct unpack unpack = {
            .fd = input, .moved = &courier.shared->moved, .skipped = &courier.shared->skipped};
        if (unpack_run(&unpack, target, &failure) < 0) {
            helper_tell(courier.shared, &failure);
        }
        _exit(0);
    }
    fd_closep(&input);
    const char *const script[] = {"sh", "-c", pull_script, "box-cp", source, NULL};
    courier.meter.title = title;
    int result = carry(context, box, script, -1, output, &courier, err);
    fd_closep(&output);
    helper_end(child);
    if (result < 0 || cancel_check(err) < 0) {
        return -1;
    }
    bool early = courier.shared->code == ERR_PROTOCOL && courier.status != 0;
    if (!early && helper_failed(courier.shared, err) < 0) {
        return error_wrap(err, "cannot copy %s:%s", box->name, source);
    }
    if (courier.status == 1 && courier.errors.length && strstr(courier.errors.data, "padding with zeros")) {
        (void)refused(&courier, err); /* what stands here is as long as the file was, and ends in bytes it never had */
        return error_wrap(err, "%s:%s became shorter while it was being copied", box->name, source);
    }
    if (courier.status == 1) { /* tar: a file changed while it was read */
        CLEANUP(freep) char *words = lastwords_of(courier.errors.data, courier.errors.length);
        narrate_warn(context->narrator, "%s", words);
    } else if (courier.status != 0) {
        (void)refused(&courier, err);
        return error_wrap(err, "cannot copy %s:%s", box->name, source);
    }
    conclude(context, &courier);
    return 0;
}

char *transfer_base(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin && path[begin - 1] != '/') {
        begin--;
    }
    CLEANUP(freep) char *base = xstrndup(path + begin, end - begin);
    bool nothing =
        !*base || text_equal(base, ".") || text_equal(base, "..") || text_equal(path, "~") || text_equal(path, "~/");
    return nothing ? xstrdup("") : steal(&base);
}
