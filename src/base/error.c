/* The error object: a closed code, what was being done, the cause, the remedy.
 * Printing is not done here: only src/cli does that. */
#include "base/error.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>

void error_reset(struct error *err)
{
    if (!err) {
        return;
    }
    free(err->message);
    free(err->remedy);
    *err = (struct error){0};
}

static int set_message(struct error *err, enum error_code code, char *message)
{
    if (!err) {
        free(message);
        return -1;
    }
    error_reset(err);
    err->code = code;
    err->message = message;
    return -1;
}

int error_set(struct error *err, enum error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = xvasprintf(format, arguments);
    va_end(arguments);
    return set_message(err, code, message);
}

int error_set_errno(struct error *err, int errnum, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    CLEANUP(freep) char *text = xvasprintf(format, arguments);
    va_end(arguments);
    enum error_code code = errnum == EACCES || errnum == EPERM ? ERR_DENIED : ERR_SYSTEM;
    set_message(err, code, xasprintf("%s: %s", text, strerror(errnum)));
    if (err) {
        err->errnum = errnum;
    }
    return -1;
}

int error_wrap(struct error *err, const char *format, ...)
{
    if (!err) {
        return -1;
    }
    va_list arguments;
    va_start(arguments, format);
    CLEANUP(freep) char *context = xvasprintf(format, arguments);
    va_end(arguments);
    CLEANUP(freep) char *inner = err->message;
    err->message = inner ? xasprintf("%s: %s", context, inner) : xstrdup(context);
    return -1;
}

int error_remedy(struct error *err, const char *format, ...)
{
    if (!err) {
        return -1;
    }
    va_list arguments;
    va_start(arguments, format);
    free(err->remedy);
    err->remedy = xvasprintf(format, arguments);
    va_end(arguments);
    return -1;
}

int error_move(struct error *to, struct error *from)
{
    if (!to) {
        error_reset(from);
        return -1;
    }
    error_reset(to);
    *to = *from;
    *from = (struct error){0};
    return -1;
}

int error_exit_status(const struct error *err)
{
    switch (err->code) {
    case ERR_NONE:
        return 0;
    case ERR_USAGE:
        return 2;
    default:
        return 1;
    }
}
