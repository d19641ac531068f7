#ifndef BOX_BASE_ERROR_H
#define BOX_BASE_ERROR_H

#include "base/cleanup.h"

/* The closed list of what can go wrong. The exit status follows from the code, in main alone:
 * ERR_USAGE is 2, everything else 1. */
enum error_code {
    ERR_NONE = 0,
    ERR_USAGE,            /* the caller asked wrong: a bad name, flag, value, file of theirs */
    ERR_NOT_FOUND,        /* what was named does not exist, or is not a box */
    ERR_EXISTS,           /* what should be made is there already */
    ERR_DENIED,           /* permission: not root, not in the group */
    ERR_TIMEOUT,          /* a budget ran out */
    ERR_INTERRUPTED,      /* Ctrl-C, TERM or HUP */
    ERR_STATE,            /* the thing is in a state in which this cannot be done */
    ERR_CONTRACT,         /* a box, artifact or host that is off the isolation contract */
    ERR_NO_DAEMON,        /* no Incus, no socket, or nobody answers on it */
    ERR_REFUSED_BY_INCUS, /* the daemon answered with an error; `http` holds its status */
    ERR_PROTOCOL,         /* the peer answered something that is not its protocol */
    ERR_SYSTEM,           /* a system call or a library failed; `errnum` may hold errno */
};

/* An error: set exactly on failure, wrapped on the way up, printed in one place (src/cli/main.c).
 * A function that takes `struct error *err` returns 0 or -1 unless its header says otherwise. `err` may be NULL
 * where the caller does not care. Start with `CLEANUP(error_reset) struct error err = {0};`. */
struct error {
    enum error_code code;
    int errnum;    /* errno of the failure, or 0 */
    int http;      /* HTTP status of the daemon's answer, or 0 */
    char *message; /* what was being done and why it failed: one line, no final full stop; owned */
    char *remedy;  /* the one command or act that helps, or NULL; owned */
};

/* Sets the error; any former content is released. Always returns -1, so that `return error_set(...)` reads well. */
int error_set(struct error *err, enum error_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* As error_set with ERR_SYSTEM (ERR_DENIED for EACCES and EPERM); appends ": " and the text of `errnum`. */
int error_set_errno(struct error *err, int errnum, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the message. Always returns -1. */
int error_wrap(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets the remedy (replacing a former one). Always returns -1. */
int error_remedy(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Moves `from` into `to` (releasing what `to` held) and leaves `from` empty. `to` may be NULL. Always returns -1. */
int error_move(struct error *to, struct error *from);

/* Releases and clears. Safe on an error that was never set; usable as cleanup handler. */
void error_reset(struct error *err);

/* 0 for ERR_NONE, 2 for ERR_USAGE, 1 for the rest. */
int error_exit_status(const struct error *err);

#endif
