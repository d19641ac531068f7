/* Several acts at once: a child a name, its words over a pipe, one table of those that run.
 * Not for what is done: the act knows; nor for one name, which needs no child. */
#include "cli/many.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/listing.h"
#include "incus/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_CEILING ((size_t)4 * 1024 * 1024)
#define LOG_INTERVAL 5000 /* milliseconds: silence beyond this looks like a hang */

static const char *const kinds[] = {
    [NARRATE_STEP] = "step", [NARRATE_PROGRESS] = "progress", [NARRATE_DONE] = "done",
    [NARRATE_NOTE] = "note", [NARRATE_WARN] = "warn",
};

/* The child's side: what it says becomes one line of JSON each. */
struct teller {
    struct narrator narrator; /* first */
    int fd;
};

static void tell(int fd, json_t *message)
{
    CLEANUP(json_freep) json_t *owned = message;

    if (!owned) {
        return; /* not UTF-8: a word less is no reason to stop */
    }
    CLEANUP(freep) char *text = json_write(owned, JSON_COMPACT);
    CLEANUP(freep) char *line = xasprintf("%s\n", text);

    (void)fd_write_all(fd, line, strlen(line), NULL);
}

static void tell_say(struct narrator *narrator, enum narrate_kind kind, const char *text)
{
    CLEANUP(freep) char *clean = text_sanitise(text, strlen(text));

    tell(((struct teller *)narrator)->fd, json_pack("{s:s, s:s}", "kind", kinds[kind], "text", clean));
}

/* The parent's side of one. */
struct one {
    pid_t pid;
    int fd;             /* -1: not begun, or ended */
    struct buffer data; /* what came and is no whole line yet */
    char *step, *progress, *out;
    struct error error;
    bool begun, ended, failed;
    int64_t start;
};

struct crowd {
    struct context *context;
    struct many *many;
    struct one *ones;
    size_t count, running, done, drawn; /* lines of the live table on the screen */
    bool terminal;
    int64_t start, spoke;
    struct argv warned;
};

size_t many_limit(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t limit = processors > 0 ? (size_t)processors * 4 : 4;

    return limit < 4 ? 4 : limit > 16 ? 16 : limit;
}

static void free_crowd(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct one *one = &crowd->ones[i];

        fd_closep(&one->fd);
        buffer_reset(&one->data);
        free(one->step);
        free(one->progress);
        free(one->out);
        error_reset(&one->error);
    }
    free(crowd->ones);
    argv_reset(&crowd->warned);
}

static void clear_table(struct crowd *crowd)
{
    if (crowd->drawn > 0) {
        (void)fprintf(stderr, "\033[%zuA\r\033[J", crowd->drawn);
        crowd->drawn = 0;
    }
}

/* A line cut to the terminal: one that wraps would spoil the count of lines. */
static void draw_line(struct crowd *crowd, char *line)
{
    size_t width = listing_width(stderr), length = strlen(line);

    while (width > 1 && length > 0 && text_columns(line) > width - 1) {
        do {
            length--;
        } while (length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80);
        line[length] = '\0';
    }
    (void)fprintf(stderr, "%s\n", line);
    crowd->drawn++;
}

static double seconds_since(int64_t start)
{
    return (double)(clock_now() - start) / 1000;
}

static void draw_table(struct crowd *crowd)
{
    clear_table(crowd);
    for (size_t i = 0; i < crowd->count; i++) {
        const struct one *one = &crowd->ones[i];

        if (one->fd >= 0) {
            CLEANUP(freep)
            char *line =
                xasprintf("  %-20s %s%s%s (%.1f s)", crowd->many->names->items[i], one->step ? one->step : "...",
                          one->progress ? ": " : "", one->progress ? one->progress : "", seconds_since(one->start));
            draw_line(crowd, line);
        }
    }
    CLEANUP(freep)
    char *sum = xasprintf("%zu of %zu done, %zu running, %zu failed (%.1f s)", crowd->done, crowd->count,
                          crowd->running, crowd->many->failed, seconds_since(crowd->start));
    draw_line(crowd, sum);
    (void)fflush(stderr);
}

/* A line that stays: above the table, or in the log. */
static void keep_line(struct crowd *crowd, const char *name, const char *text)
{
    clear_table(crowd);
    narrate_note(crowd->context->narrator, "%s: %s", name, text);
    crowd->spoke = clock_now();
}

static void hear(struct crowd *crowd, size_t index, const char *kind, const char *text)
{
    struct one *one = &crowd->ones[index];
    const char *name = crowd->many->names->items[index];

    if (text_equal(kind, "step")) {
        free(one->step);
        free(steal(&one->progress));
        one->step = xstrdup(text);
    } else if (text_equal(kind, "progress")) {
        free(one->progress);
        one->progress = xstrdup(text);
    } else if (text_equal(kind, "done") && !crowd->terminal && one->step) {
        CLEANUP(freep) char *line = xasprintf("%s: %s", one->step, text_is_empty(text) ? "done" : text);

        keep_line(crowd, name, line);
    } else if (text_equal(kind, "note") && !crowd->terminal) {
        keep_line(crowd, name, text);
    } else if (text_equal(kind, "warn") && !argv_contains(&crowd->warned, text)) {
        argv_push(&crowd->warned, text);
        clear_table(crowd);
        narrate_warn(crowd->context->narrator, "%s: %s", name, text);
    }
}

static void hear_line(struct crowd *crowd, size_t index, const char *line, size_t length)
{
    CLEANUP(json_freep) json_t *message = NULL;
    struct one *one = &crowd->ones[index];

    if (json_parse(line, length, "a child's word", &message, NULL) < 0) {
        return;
    }
    const char *kind = json_text(message, "kind"), *text = json_text(message, "text");

    if (text_equal(kind, "out")) {
        free(one->out);
        one->out = xstrdup(text ? text : "");
    } else if (text_equal(kind, "error")) {
        const char *remedy = json_text(message, "remedy");

        error_set(&one->error, (enum error_code)json_number(message, "code", ERR_SYSTEM), "%s", text ? text : "");
        if (remedy) {
            error_remedy(&one->error, "%s", remedy);
        }
    } else {
        hear(crowd, index, kind, text ? text : "");
    }
}

static void end_one(struct crowd *crowd, size_t index)
{
    struct one *one = &crowd->ones[index];
    const char *name = crowd->many->names->items[index];
    int status = 0;

    fd_closep(&one->fd);
    while (waitpid(one->pid, &status, 0) < 0 && errno == EINTR) {
    }
    one->ended = true;
    crowd->running--;
    crowd->done++;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (crowd->terminal) {
            CLEANUP(freep) char *line = xasprintf("done (%.1f s)", seconds_since(one->start));

            keep_line(crowd, name, line);
        }
        return;
    }
    if (!one->error.code) {
        error_set(&one->error, ERR_SYSTEM, "its process was killed (signal %d)",
                  WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    one->failed = true;
    crowd->many->failed++;
    error_wrap(&one->error, "%s", name);
    clear_table(crowd);
    if (one->error.code != ERR_INTERRUPTED) {
        console_error((struct console *)crowd->context->narrator, &one->error);
    }
    if (!crowd->many->first.code) {
        error_move(&crowd->many->first, &one->error);
    }
}

static void read_one(struct crowd *crowd, size_t index)
{
    struct one *one = &crowd->ones[index];
    char *room = buffer_reserve(&one->data, 65536);
    ssize_t got = read(one->fd, room, 65536);

    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0 || one->data.length + (size_t)got > LINE_CEILING) {
        end_one(crowd, index);
        return;
    }
    one->data.length += (size_t)got;
    for (char *end; one->data.length > 0 && (end = memchr(one->data.data, '\n', one->data.length)) != NULL;) {
        size_t length = (size_t)(end - one->data.data);

        hear_line(crowd, index, one->data.data, length);
        buffer_consume(&one->data, length + 1);
    }
}

/* The child: never returns. */
static void be_one(struct crowd *crowd, size_t index, int fd)
{
    struct teller teller = {.narrator = {.say = tell_say}, .fd = fd};
    CLEANUP(error_reset) struct error err = {0};
    struct context context = *crowd->context;
    char *out = NULL;
    size_t length = 0;

    /* In a group of its own: Ctrl-C reaches it once, through the parent; and it goes when the parent is killed. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    cancel_forked();
    context.narrator = &teller.narrator;
    context.client = NULL;
    context.out = open_memstream(&out, &length);
    int result = crowd->many->act(&context, crowd->many->data, index, &err);
    client_close(context.client);
    (void)fclose(context.out);
    if (result == 0 && length > 0) {
        tell(fd, json_pack("{s:s, s:s}", "kind", "out", "text", out));
    } else if (result < 0) {
        tell(fd, json_pack("{s:s, s:s, s:i, s:s?}", "kind", "error", "text", err.message, "code", (int)err.code,
                           "remedy", err.remedy));
    }
    free(out);
    error_reset(&err);
    /* What the parent has allocated or buffered is the parent's. */
    _exit(result == 0 ? 0 : 1);
}

static int begin_one(struct crowd *crowd, size_t index, struct error *err)
{
    struct one *one = &crowd->ones[index];
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        int saved = errno;

        (void)close(ends[0]);
        (void)close(ends[1]);
        return error_set_errno(err, saved, "cannot start a process");
    }
    if (pid == 0) {
        (void)close(ends[0]);
        be_one(crowd, index, ends[1]);
    }
    (void)close(ends[1]);
    one->pid = pid;
    one->fd = ends[0];
    one->begun = true;
    one->start = clock_now();
    crowd->running++;
    return 0;
}

static int begin_some(struct crowd *crowd, struct error *err)
{
    size_t limit = crowd->many->first_alone && crowd->done == 0 ? 1 : many_limit();

    for (size_t i = 0; i < crowd->count && crowd->running < limit; i++) {
        if (!crowd->ones[i].begun && begin_one(crowd, i, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Waits for words, at most a tick. */
static void listen_to_all(struct crowd *crowd, bool cancelled)
{
    CLEANUP(freep) struct pollfd *fds = xcalloc(crowd->count + 1, sizeof(*fds));

    for (size_t i = 0; i < crowd->count; i++) {
        fds[i] = (struct pollfd){.fd = crowd->ones[i].fd, .events = POLLIN};
    }
    fds[crowd->count] = (struct pollfd){.fd = cancelled ? -1 : cancel_fd(), .events = POLLIN};
    if (poll(fds, crowd->count + 1, NARRATE_TICK_MS) <= 0) {
        return;
    }
    for (size_t i = 0; i < crowd->count; i++) {
        if (fds[i].revents) {
            read_one(crowd, i);
        }
    }
}

static void show(struct crowd *crowd)
{
    if (crowd->terminal) {
        draw_table(crowd);
    } else if (clock_now() - crowd->spoke >= LOG_INTERVAL) {
        narrate_note(crowd->context->narrator, "still at it: %zu of %zu done, %zu running (%.0f s)", crowd->done,
                     crowd->count, crowd->running, seconds_since(crowd->start));
        crowd->spoke = clock_now();
    }
}

static void hand_on_cancel(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->ones[i].fd >= 0) {
            (void)kill(crowd->ones[i].pid, SIGTERM);
        }
    }
    clear_table(crowd);
    narrate_note(crowd->context->narrator, "interrupted: the %zu running ones clean up", crowd->running);
}

static void print_outputs(struct crowd *crowd)
{
    CLEANUP(json_freep) json_t *array = json_array();

    for (size_t i = 0; i < crowd->count; i++) {
        const char *out = crowd->ones[i].out;
        json_t *value = NULL;

        if (!out) {
            continue;
        }
        if (!crowd->context->json) {
            (void)fputs(out, crowd->context->out);
        } else if (json_parse(out, strlen(out), "a result", &value, NULL) == 0) {
            (void)json_array_append_new(array, value);
        }
    }
    if (crowd->context->json) {
        context_print_json(crowd->context, array);
    }
}

int many_run(struct context *context, struct many *many, struct error *err)
{
    const char *term = getenv("TERM");
    CLEANUP(free_crowd)
    struct crowd crowd = {
        .context = context,
        .many = many,
        .ones = xcalloc(many->names->count + 1, sizeof(struct one)),
        .count = many->names->count,
        .terminal = isatty(STDERR_FILENO) && !text_is_empty(term) && !text_equal(term, "dumb") && !context->quiet,
        .start = clock_now(),
        .spoke = clock_now(),
    };
    bool cancelled = false;
    int result = 0;

    for (size_t i = 0; i < crowd.count; i++) {
        crowd.ones[i].fd = -1;
    }
    while (crowd.done < crowd.count && !(crowd.running == 0 && (cancelled || result < 0))) {
        if (!cancelled && result == 0) {
            result = begin_some(&crowd, err);
        }
        listen_to_all(&crowd, cancelled);
        if (cancel_requested() && !cancelled) {
            cancelled = true;
            hand_on_cancel(&crowd);
        }
        show(&crowd);
    }
    clear_table(&crowd);
    print_outputs(&crowd);
    return cancelled ? cancel_check(err) : result;
}

void many_reset(struct many *many)
{
    error_reset(&many->first);
}
