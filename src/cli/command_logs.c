/* `box logs`: what the mint did, what the guest said of its first boot, what is on its console.
 * Not for: the logs of what runs in a box; those are in it. */
#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "box/tag.h"
#include "cli/command.h"
#include "incus/exec.h"
#include "incus/guestfile.h"
#include "incus/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NARRATION "/var/log/cloud-init-output.log"
#define CEILING   ((size_t)64 * 1024 * 1024)
#define LINES     200
#define LINE_ROOM ((size_t)8192) /* a longer line is shown in pieces */

/* A line of a guest, fit to be shown: of a progress bar what stood there last. */
static void print_line(const char *line, size_t length, FILE *out)
{
    while (length && line[length - 1] == '\r') {
        length--;
    }
    const char *last = memrchr(line, '\r', length);
    size_t skipped = last ? (size_t)(last - line) + 1 : 0;
    CLEANUP(freep) char *clean = text_sanitise(line + skipped, length - skipped);
    (void)fprintf(out, "%s\n", clean);
}

/* The last `most` lines; every line where `most` is 0. */
static void print_tail(const struct buffer *text, uint64_t most, FILE *out)
{
    size_t end = text->length;
    while (end && (text->data[end - 1] == '\n' || text->data[end - 1] == '\r')) {
        end--;
    }
    size_t begin = most ? end : 0;
    for (uint64_t lines = 0; begin; begin--) {
        if (text->data[begin - 1] == '\n' && ++lines == most) {
            break;
        }
    }
    while (begin < end) {
        const char *line = text->data + begin;
        const char *newline = memchr(line, '\n', end - begin);
        size_t length = newline ? (size_t)(newline - line) : end - begin;
        print_line(line, length, out);
        begin += length + 1;
    }
}

static void print_heading(struct context *context, const char *what)
{
    (void)fprintf(context->out, "==> %s <==\n", what);
}

static void print_fact(struct context *context, const char *what, const char *value)
{
    if (!text_is_empty(value)) {
        CLEANUP(freep) char *clean = text_sanitise(value, strlen(value));
        (void)fprintf(context->out, "%-9s %s\n", what, clean);
    }
}

static void print_mint(struct context *context, const struct box *box)
{
    const json_t *instance = box->instance;
    CLEANUP(freep) char *age = box->created ? clock_describe((int64_t)time(NULL) - box->created) : NULL;
    CLEANUP(freep) char *when = age ? xasprintf("%s (%s ago)", json_text(instance, "created_at"), age) : NULL;
    CLEANUP(freep)
    char *image = xasprintf("%s %.12s", tag_value(instance, TAG_IMAGE) ? tag_value(instance, TAG_IMAGE) : "",
                            tag_value(instance, TAG_FINGERPRINT) ? tag_value(instance, TAG_FINGERPRINT) : "");
    print_heading(context, "mint");
    print_fact(context, "created", when);
    print_fact(context, "by", tag_value(instance, TAG_VERSION));
    print_fact(context, "template", box->template_name);
    print_fact(context, "image", text_equal(image, " ") ? NULL : image);
    print_fact(context, "mode", box->vm ? "VM" : "container");
    print_fact(context, "user", box->user);
    print_fact(context, "outcome", box->state ? box->state : "complete");
    print_fact(context, "reason", box->reason);
}

/* Each part stands by itself: what one of them lacks keeps no other from being shown. */
static void print_part(struct context *context, const char *what, const struct buffer *text, const char *absent,
                       const struct error *failure)
{
    (void)fputc('\n', context->out);
    print_heading(context, what);
    if (failure->code) {
        narrate_warn(context->narrator, "%s", failure->message);
    } else if (!text->length) {
        (void)fprintf(context->out, "(%s)\n", absent);
    } else {
        print_tail(text, option_number(&context->options, "lines", LINES), context->out);
    }
}

static void show(struct context *context, struct client *client)
{
    const struct box *box = context->box;
    CLEANUP(buffer_reset) struct buffer narration = {0};
    CLEANUP(buffer_reset) struct buffer console = {0};
    CLEANUP(error_reset) struct error narration_failure = {0};
    CLEANUP(error_reset) struct error console_failure = {0};
    print_mint(context, box);
    if (guestfile_read(client, box->name, NARRATION, CEILING, &narration, &narration_failure) < 0 &&
        narration_failure.code == ERR_NOT_FOUND) {
        error_reset(&narration_failure); /* it has not begun, or is a box without cloud-init */
    }
    print_part(context, "cloud-init: " NARRATION, &narration, "nothing", &narration_failure);
    (void)instance_console(client, box->name, &console, &console_failure);
    print_part(context, "console", &console,
               box->running && !box->vm ? "nothing new: of a running container Incus tells each line once" : "nothing",
               &console_failure);
}

/* In a process of its own: lines of a guest from a pipe, made fit for a terminal, as they come. */
static void clean_stream(int fd)
{
    CLEANUP(buffer_reset) struct buffer pending = {0};
    for (;;) {
        ssize_t got = read(fd, buffer_reserve(&pending, LINE_ROOM), LINE_ROOM);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        pending.length += got > 0 ? (size_t)got : 0;
        const char *newline;
        while (pending.length &&
               ((newline = memchr(pending.data, '\n', pending.length)) || got <= 0 || pending.length > LINE_ROOM)) {
            size_t length = newline ? (size_t)(newline - pending.data) : pending.length;
            print_line(pending.data, length, stdout);
            buffer_consume(&pending, length + (newline != NULL));
        }
        if (fflush(stdout) != 0 || got <= 0) {
            return;
        }
    }
}

static int stream(struct context *context, struct client *client, int output, struct error *err)
{
    CLEANUP(freep)
    char *lines = xasprintf("%llu", (unsigned long long)option_number(&context->options, "lines", LINES));
    const char *const command[] = {"tail", "-n", text_equal(lines, "0") ? "+1" : lines, "-F", NARRATION, NULL};
    CLEANUP(buffer_reset) struct buffer errors = {0};
    struct exec_request request = {
        .instance = context->box->name,
        .command = command,
        .directory = "/",
        .input = -1,
        .output = output,
        .errors = -1,
        .capture_errors = &errors, /* tail says that the file is not there yet */
    };
    int status = 0;
    return exec_run(client, &request, &status, err);
}

/* Ends with Ctrl-C, which is how one leaves it, or with the box. */
static int follow(struct context *context, struct client *client, struct error *err)
{
    int ends[2];
    if (!context->box->running) {
        error_set(err, ERR_STATE, "the box %s is not running: nothing will follow", context->box->name);
        return error_remedy(err, "what there is: box logs %s", context->box->name);
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    CLEANUP(fd_closep) int input = ends[0];
    CLEANUP(fd_closep) int output = ends[1];
    (void)fflush(context->out);
    pid_t child = fork();
    if (child < 0) {
        return error_set_errno(err, errno, "cannot start a second process");
    }
    if (child == 0) {
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGTERM, SIG_IGN);
        (void)close(output);
        clean_stream(input);
        _exit(0);
    }
    fd_closep(&input);
    int result = stream(context, client, output, err);
    fd_closep(&output);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    if (result < 0 && cancel_signal() == SIGINT) {
        error_reset(err);
        return 0;
    }
    return result;
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    if (option_given(&context->options, "follow")) {
        return follow(context, client, err);
    }
    show(context, client);
    return 0;
}

static const struct option_row options[] = {
    {.name = "follow", .kind = OPTION_FLAG, .letter = 'f', .help = "go on with what cloud-init says, until Ctrl-C"},
    {.name = "lines",
     .kind = OPTION_NUMBER,
     .value = "N",
     .letter = 'n',
     .maximum = 1000000,
     .help = "at most the last N lines of each part (200); 0: all"},
    {0},
};

const struct command command_logs = {
    .name = "logs",
    .section = SECTION_DAILY,
    .arguments = "BOX",
    .summary = "show what the mint did, cloud-init's narration and the console",
    .help = "Works on a box that is down or incomplete, too. What the guest wrote is shown\n"
            "without its escape sequences. Logs of what runs in the box are in the box:\n"
            "\n"
            "    box exec a -- journalctl -n 50\n",
    .options = options,
    .flags = NEEDS_BOX | CANCELLABLE,
    .run = run,
    .also = "log journal tail console",
};
