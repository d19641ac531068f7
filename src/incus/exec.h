#ifndef BOX_INCUS_EXEC_H
#define BOX_INCUS_EXEC_H

#include "base/argv.h"
#include "base/buffer.h"
#include "incus/client.h"

/* Gets a piece of output; no piece need end where a line does. */
typedef void exec_hearer(void *context, const char *data, size_t length);

/* Running a command in a guest through the daemon's exec API and its WebSockets. */
struct exec_request {
    const char *instance;
    const char *const *command; /* NULL-terminated; every argument arrives byte for byte (a guest without /bin/sh gets
                                 * UTF-8 only) */
    json_t *environment;        /* object of strings, borrowed; may be NULL: see execbody_root_environment() */
    uint32_t user, group;       /* numeric; Incus resolves no names */
    const char *directory;      /* NULL: the daemon's default */
    bool interactive;           /* a pty: stdin, stdout in raw mode, window size followed */
    /* Descriptors; -1 is /dev/null for input, and drops an output. Borrowed, and never made non-blocking. */
    int input, output, errors;
    struct buffer *capture;        /* where not NULL, stdout goes here instead, up to `ceiling` bytes (rest dropped) */
    struct buffer *capture_errors; /* likewise stderr */
    size_t ceiling;                /* 0: 1 MiB */
    exec_hearer *hear;             /* where not NULL, stdout goes here as it comes, and none of it is kept */
    void *hear_context;
    int64_t budget;                /* milliseconds; 0: no limit. On expiry the command is killed: ERR_TIMEOUT */
    struct narrator *narrator;     /* ticked while waiting; may be NULL */
};

/* Runs it to its end. `ret_status` is the command's exit status: 126/127 where the daemon says not executable / not
 * found, 128+n after signal n. Returns when the command ended and its streams did, or one second after the command's
 * end when a background child keeps a stream open (what came so far is complete).
 *
 * Non-interactive: INT, TERM and HUP of ours (through base/cancel.h) are forwarded to the guest's command, whose end
 * then is the result; a closed stdout of ours (EPIPE) closes the guest's. Where stdout is captured or heard the caller is a
 * program and not a person: a signal then kills the command and is ERR_INTERRUPTED.
 *
 * Interactive: `input` must be a terminal. It is raw meanwhile and restored on every way out, also when the daemon
 * dies; INT, TERM or HUP sent to us end the session: ERR_INTERRUPTED.
 *
 * ERR_NO_DAEMON where the daemon goes away meanwhile; the command dies with its connection. */
int exec_run(struct client *client, const struct exec_request *request, int *ret_status, struct error *err);

#endif
