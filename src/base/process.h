#ifndef BOX_BASE_PROCESS_H
#define BOX_BASE_PROCESS_H

#include "base/argv.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/narrate.h"

#include <stdbool.h>
#include <stdint.h>

/* Running a program of the host: no shell, stdin pinned to /dev/null unless given, output captured under a ceiling,
 * a budget that ends it (TERM, then KILL, its whole process group), Ctrl-C honoured through base/cancel.h. */
struct process_options {
    const char *const *environment;          /* NULL: inherit */
    const char *input;                       /* bytes for stdin, or NULL */
    size_t input_length;
    size_t ceiling;                          /* most bytes of output kept; 0 means 1 MiB; the rest is read and dropped */
    int64_t budget;                          /* milliseconds; 0 or less: no limit */
    bool mortal;                             /* the program is killed at once when the caller dies */
    struct narrator *narrator;               /* ticked while waiting; may be NULL */
    void (*line)(void *context, const char *line); /* each line of stdout and stderr as it comes; may be NULL */
    void *context;
};

struct process_result {
    int status;            /* exit status; 128+n after signal n */
    struct buffer output;  /* stdout */
    struct buffer errors;  /* stderr */
};

/* Runs `argv` (found through PATH) to its end. Success means that it ran: look at `status`. ERR_NOT_FOUND where the
 * program is absent, ERR_TIMEOUT, ERR_INTERRUPTED. `options` may be NULL. The result belongs to the caller. */
int process_run(const char *const *argv, const struct process_options *options, struct process_result *ret_result,
                struct error *err);

/* As process_run, but a non-zero status is an error that quotes the last line of its stderr. The result's outputs
 * are dropped; `ret_output` (may be NULL) gets stdout as text, which the caller frees. */
int process_check(const char *const *argv, const struct process_options *options, char **ret_output,
                  struct error *err);

void process_result_reset(struct process_result *result);

/* True where a program of that name lies on PATH (or at that path) and may be executed. */
bool process_exists(const char *program);

#endif
