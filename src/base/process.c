/* Running a program of the host to its end, without a shell, under a budget.
 * Not for: programs that take over the terminal or this process; those are exec()ed by their command. */
#include "base/process.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 2000, DEFAULT_CEILING = 1 << 20 };

/* One running child and what its pipes have given so far. */
struct child {
    pid_t pid;
    int process; /* pidfd: readable once the child has ended */
    int pipes[2]; /* our ends of its stdout and stderr */
    struct buffer lines[2];
    struct process_result result;
    const struct process_options *options;
};

static void child_release(struct child *child)
{
    fd_closep(&child->process);
    for (int i = 0; i < 2; i++) {
        fd_closep(&child->pipes[i]);
        buffer_reset(&child->lines[i]);
    }
    process_result_reset(&child->result);
}

void process_result_reset(struct process_result *result)
{
    buffer_reset(&result->output);
    buffer_reset(&result->errors);
}

static bool is_program(const char *path)
{
    struct stat status;
    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool process_exists(const char *program)
{
    if (strchr(program, '/')) {
        return is_program(program);
    }
    const char *path = getenv("PATH");
    for (const char *next = path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"; next;) {
        size_t length = strcspn(next, ":");
        CLEANUP(freep) char *candidate = xasprintf("%.*s/%s", (int)length, length ? next : ".", program);
        if (is_program(candidate)) {
            return true;
        }
        next = next[length] ? next + length + 1 : NULL;
    }
    return false;
}

/* What the child reads as stdin: the given bytes in an anonymous file (no deadlock with its output), or nothing. */
static int open_input(const struct process_options *options, struct error *err)
{
    if (!options->input) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return null < 0 ? error_set_errno(err, errno, "/dev/null") : null;
    }
    CLEANUP(fd_closep) int file = memfd_create("stdin", MFD_CLOEXEC);
    if (file < 0) {
        return error_set_errno(err, errno, "memfd_create");
    }
    if (fd_write_all(file, options->input, options->input_length, err) < 0) {
        return -1;
    }
    if (lseek(file, 0, SEEK_SET) < 0) {
        return error_set_errno(err, errno, "lseek");
    }
    int result = file;
    file = -1;
    return result;
}

static void become(const char *const *argv, const struct process_options *options, int input, int output, int errors,
                   int report, pid_t caller)
{
    setpgid(0, 0);
    if (options->mortal && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != caller)) {
        _exit(127);
    }
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < 32; number++) {
        sigaction(number, &standard, NULL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(errors, 2) == 2) {
        if (options->environment) {
            execvpe(argv[0], (char *const *)argv, (char *const *)options->environment);
        } else {
            execvp(argv[0], (char *const *)argv);
        }
    }
    int reason = errno;
    (void)!write(report, &reason, sizeof(reason));
    _exit(127);
}

static int spawn(const char *const *argv, struct child *child, struct error *err)
{
    CLEANUP(fd_closep) int input = open_input(child->options, err);
    if (input < 0) {
        return -1;
    }
    int output[2], errors[2], report[2];
    if (pipe2(output, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "pipe");
    }
    CLEANUP(fd_closep) int output_end = output[1];
    child->pipes[0] = output[0];
    if (pipe2(errors, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "pipe");
    }
    CLEANUP(fd_closep) int errors_end = errors[1];
    child->pipes[1] = errors[0];
    if (pipe2(report, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "pipe");
    }
    CLEANUP(fd_closep) int report_read = report[0];
    CLEANUP(fd_closep) int report_write = report[1];

    pid_t caller = getpid();
    child->pid = fork();
    if (child->pid < 0) {
        return error_set_errno(err, errno, "fork");
    }
    if (child->pid == 0) {
        become(argv, child->options, input, output_end, errors_end, report_write, caller);
    }
    setpgid(child->pid, child->pid);
    fd_closep(&report_write);
    int reason = 0;
    ssize_t got;
    do {
        got = read(report_read, &reason, sizeof(reason));
    } while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof(reason)) {
        waitpid(child->pid, NULL, 0);
        if (reason == ENOENT) {
            return error_set(err, ERR_NOT_FOUND, "%s: no such program", argv[0]);
        }
        return error_set_errno(err, reason, "%s", argv[0]);
    }
    child->process = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->process < 0) {
        reason = errno;
        kill(-child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
        return error_set_errno(err, reason, "pidfd_open");
    }
    return 0;
}

static void tell_lines(struct child *child, int stream, bool ended)
{
    struct buffer *lines = &child->lines[stream];
    char *newline;
    while (lines->length && (newline = memchr(lines->data, '\n', lines->length))) {
        *newline = '\0';
        child->options->line(child->options->context, lines->data);
        buffer_consume(lines, (size_t)(newline - lines->data) + 1);
    }
    if (lines->length && (ended || lines->length > 65536)) {
        child->options->line(child->options->context, lines->data);
        buffer_consume(lines, lines->length);
    }
}

/* Takes what a pipe holds. Closes our end at EOF. */
static void drain(struct child *child, int stream)
{
    char chunk[65536];
    ssize_t got = read(child->pipes[stream], chunk, sizeof(chunk));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        fd_closep(&child->pipes[stream]);
        got = 0;
    }
    size_t ceiling = child->options->ceiling ? child->options->ceiling : DEFAULT_CEILING;
    struct buffer *kept = stream == 0 ? &child->result.output : &child->result.errors;
    size_t room = ceiling > kept->length ? ceiling - kept->length : 0;
    buffer_append(kept, chunk, (size_t)got < room ? (size_t)got : room);
    if (child->options->line) {
        buffer_append(&child->lines[stream], chunk, (size_t)got);
        tell_lines(child, stream, child->pipes[stream] < 0);
    }
}

static void finish(struct child *child, int signal_number)
{
    if (signal_number) {
        kill(-child->pid, signal_number);
        struct pollfd ended = {.fd = child->process, .events = POLLIN};
        int64_t deadline = clock_deadline(GRACE_MS);
        while (poll(&ended, 1, clock_left(deadline)) < 0 && errno == EINTR) {
        }
        kill(-child->pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reads both pipes until the child has ended. A grandchild that keeps a pipe open is not waited for. */
static int follow(struct child *child, const char *program, struct error *err)
{
    int64_t deadline = clock_deadline(child->options->budget > 0 ? child->options->budget : -1);
    for (;;) {
        struct pollfd fds[] = {
            {.fd = child->pipes[0], .events = POLLIN},
            {.fd = child->pipes[1], .events = POLLIN},
            {.fd = child->process, .events = POLLIN},
            {.fd = cancel_fd(), .events = POLLIN},
        };
        int left = clock_left(deadline);
        int wait = child->options->narrator && (left < 0 || left > NARRATE_TICK_MS) ? NARRATE_TICK_MS : left;
        int ready = poll(fds, ARRAY_LENGTH(fds), wait);
        narrate_tick(child->options->narrator);
        if (cancel_requested()) {
            finish(child, SIGTERM);
            return error_set(err, ERR_INTERRUPTED, "%s was interrupted", program);
        }
        if (ready <= 0) {
            if (clock_left(deadline) == 0) {
                finish(child, SIGTERM);
                return error_set(err, ERR_TIMEOUT, "%s did not end within %lld s", program,
                                 (long long)child->options->budget / 1000);
            }
            continue;
        }
        bool read_something = false;
        for (int stream = 0; stream < 2; stream++) {
            if (fds[stream].revents) {
                drain(child, stream);
                read_something = true;
            }
        }
        if (fds[2].revents && !read_something) {
            finish(child, 0);
            return 0;
        }
    }
}

int process_run(const char *const *argv, const struct process_options *options, struct process_result *ret_result,
                struct error *err)
{
    static const struct process_options standard = {0};
    CLEANUP(child_release)
    struct child child = {.process = -1, .pipes = {-1, -1}, .options = options ? options : &standard};
    if (spawn(argv, &child, err) < 0 || follow(&child, argv[0], err) < 0) {
        return -1;
    }
    for (int stream = 0; stream < 2; stream++) {
        if (child.options->line) {
            tell_lines(&child, stream, true);
        }
    }
    *ret_result = child.result;
    child.result = (struct process_result){0};
    return 0;
}

/* The last line of text that is not blank. */
static char *last_line(const struct buffer *text)
{
    size_t end = text->length;
    while (end && strchr("\n\r\t ", text->data[end - 1])) {
        end--;
    }
    size_t start = end;
    while (start && text->data[start - 1] != '\n') {
        start--;
    }
    return end ? xstrndup(text->data + start, end - start) : xstrdup("it said nothing");
}

int process_check(const char *const *argv, const struct process_options *options, char **ret_output,
                  struct error *err)
{
    CLEANUP(process_result_reset) struct process_result result = {0};
    if (process_run(argv, options, &result, err) < 0) {
        return -1;
    }
    if (result.status != 0) {
        CLEANUP(freep) char *reason = last_line(result.errors.length ? &result.errors : &result.output);
        return error_set(err, ERR_SYSTEM, "%s failed (exit %d): %s", argv[0], result.status, reason);
    }
    if (ret_output) {
        *ret_output = buffer_steal(&result.output);
    }
    return 0;
}
