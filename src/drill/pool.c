/* Runs pieces of work side by side, each in a process that dies with its budget.
 * Not for: threads. A connection to the daemon belongs to one process, and a wedged one can be killed. */
#include "drill/pool.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SLOTS = 16, ANSWER_CEILING = 4 << 20 };

struct worker {
    pid_t pid; /* 0: free */
    size_t job;
    int output;
    int64_t begun;
    int64_t deadline;
    struct buffer answer;
};

struct pool {
    const struct pool_job *jobs;
    size_t count, next, running;
    struct worker workers[MOST_SLOTS];
    unsigned slots;
    void (*done)(void *context, size_t index, const json_t *answer, const char *why, int64_t ms);
    void *context;
};

__attribute__((noreturn)) static void child(const struct pool_job *job, int out)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    cancel_uninstall();
    CLEANUP(json_freep) json_t *answer = job->work(job->context);
    CLEANUP(freep) char *text = json_write(answer, 0);
    int status = fd_write_all(out, text, strlen(text), NULL) < 0;
    /* Not exit(): what the parent has open and buffered is not ours to flush. */
    _exit(status);
}

static int start(struct pool *pool, struct worker *worker, struct error *err)
{
    const struct pool_job *job = &pool->jobs[pool->next];
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "making a pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        child(job, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set_errno(err, errno, "starting a process");
    }
    (void)setpgid(pid, pid);
    *worker = (struct worker){.pid = pid,
                              .job = pool->next,
                              .output = ends[0],
                              .begun = clock_now(),
                              .deadline = clock_deadline(job->budget)};
    pool->next++;
    pool->running++;
    return 0;
}

static void end(struct worker *worker)
{
    (void)kill(-worker->pid, SIGKILL);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    fd_closep(&worker->output);
    buffer_reset(&worker->answer);
    worker->pid = 0;
}

static void finish(struct pool *pool, struct worker *worker, const char *why)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(json_freep) json_t *answer = NULL;
    int64_t ms = clock_now() - worker->begun;
    size_t job = worker->job;

    if (!why && json_parse(worker->answer.data, worker->answer.length, "the trial's result", &answer, &err) < 0) {
        why = worker->answer.length ? "its process wrote a broken result" : "its process died without a result";
    }
    end(worker);
    pool->running--;
    pool->done(pool->context, job, answer, why, ms);
}

/* True when the next job may begin beside what runs. */
static bool fits(const struct pool *pool)
{
    if (pool->next >= pool->count || pool->running >= pool->slots) {
        return false;
    }
    if (pool->running == 0) {
        return true;
    }
    for (size_t i = 0; i < MOST_SLOTS; i++) {
        if (pool->workers[i].pid && pool->jobs[pool->workers[i].job].alone) {
            return false;
        }
    }
    return !pool->jobs[pool->next].alone;
}

static int fill(struct pool *pool, struct error *err)
{
    for (size_t i = 0; i < MOST_SLOTS && fits(pool); i++) {
        if (!pool->workers[i].pid && start(pool, &pool->workers[i], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void read_answer(struct pool *pool, struct worker *worker)
{
    ssize_t got = read(worker->output, buffer_reserve(&worker->answer, 65536), 65536);

    if (got < 0 && errno == EINTR) {
        return;
    }
    if (got <= 0) {
        finish(pool, worker, NULL);
        return;
    }
    worker->answer.length += (size_t)got;
    if (worker->answer.length > ANSWER_CEILING) {
        finish(pool, worker, "its process wrote more than 4 MiB");
    }
}

/* Waits until something comes, a budget ends, or a tick has passed. */
static void wait_for_any(struct pool *pool)
{
    struct pollfd waits[MOST_SLOTS + 1] = {{.fd = cancel_fd(), .events = POLLIN}};
    int timeout = NARRATE_TICK_MS;

    for (size_t i = 0; i < MOST_SLOTS; i++) {
        const struct worker *worker = &pool->workers[i];
        waits[i + 1] = (struct pollfd){.fd = worker->pid ? worker->output : -1, .events = POLLIN};
        if (worker->pid && clock_left(worker->deadline) < timeout) {
            timeout = clock_left(worker->deadline);
        }
    }
    if (poll(waits, MOST_SLOTS + 1, timeout) < 0) {
        return;
    }
    for (size_t i = 0; i < MOST_SLOTS; i++) {
        struct worker *worker = &pool->workers[i];
        if (!worker->pid) {
            continue;
        }
        if (waits[i + 1].revents) {
            read_answer(pool, worker);
        } else if (clock_left(worker->deadline) == 0) {
            finish(pool, worker, "its budget ran out");
        }
    }
}

int pool_run(const struct pool_job *jobs, size_t count, unsigned slots, struct narrator *narrator,
             void (*done)(void *context, size_t index, const json_t *answer, const char *why, int64_t ms),
             void *context, struct error *err)
{
    struct pool pool = {.jobs = jobs,
                        .count = count,
                        .slots = slots < MOST_SLOTS ? slots : MOST_SLOTS,
                        .done = done,
                        .context = context};
    int result = 0;

    while (result == 0 && (pool.next < count || pool.running > 0)) {
        result = cancel_check(err) < 0 || fill(&pool, err) < 0 ? -1 : 0;
        if (result == 0) {
            wait_for_any(&pool);
            narrate_tick(narrator);
        }
    }
    for (size_t i = 0; i < MOST_SLOTS; i++) {
        if (pool.workers[i].pid) {
            end(&pool.workers[i]);
        }
    }
    return result;
}
