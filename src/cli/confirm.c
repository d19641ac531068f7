/* Asks before an act that cannot be undone.
 * Not for: choosing between ways to go on; a command line answers with flags. */
#include "cli/confirm.h"

#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/console.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ANSWER_CEILING 64 /* bytes; nobody says yes in more */

/* Reads one line from the terminal into `answer`. Returns false at its end (Ctrl-D), and when a signal came. */
static bool read_answer(char answer[ANSWER_CEILING])
{
    size_t length = 0;
    for (;;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = cancel_fd(), .events = POLLIN}};
        if (poll(fds, ARRAY_LENGTH(fds), -1) < 0 && errno != EINTR) {
            return false;
        }
        if (cancel_requested()) {
            return false;
        }
        char byte;
        ssize_t got = fds[0].revents ? read(STDIN_FILENO, &byte, 1) : -1;
        if (got == 0 || (got < 0 && fds[0].revents && errno != EINTR && errno != EAGAIN)) {
            return false;
        }
        if (got == 1 && byte == '\n') {
            answer[length] = '\0';
            return true;
        }
        if (got == 1 && length + 1 < ANSWER_CEILING) {
            answer[length++] = byte;
        }
    }
}

int confirm(struct context *context, struct error *err, const char *act, ...)
{
    if (context->force) {
        return 0;
    }
    va_list arguments;
    va_start(arguments, act);
    CLEANUP(freep) char *text = xvasprintf(act, arguments);
    va_end(arguments);
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        error_set(err, ERR_USAGE, "this would %s, and there is no terminal to ask on", text);
        return error_remedy(err, "say --force where that is meant");
    }
    CLEANUP(freep) char *question = xasprintf("%s? [y/N]", text);
    if (question[0] >= 'a' && question[0] <= 'z') {
        question[0] = (char)(question[0] - 'a' + 'A');
    }
    console_ask((struct console *)context->narrator, question);
    char answer[ANSWER_CEILING] = "";
    if (!read_answer(answer)) {
        (void)fputc('\n', stderr);
        answer[0] = '\0';
    }
    if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0) {
        return 0;
    }
    return error_set(err, ERR_INTERRUPTED, "aborted; nothing was done");
}
