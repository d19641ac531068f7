/* The first INT, TERM or HUP becomes a request that waiting code sees; the second kills, but that one is told
 * to wait while what the first broke off is being cleaned up.
 * Not for: signals that are handed on to a guest; see incus/exec. */
#include "base/cancel.h"

#include <errno.h>
#include <stdint.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const int cancel_signals[] = {SIGINT, SIGTERM, SIGHUP};

static const char patience[] = "\ncleaning up; once more ends it at once, and may leave something behind\n";

static volatile sig_atomic_t received;
static volatile sig_atomic_t told;
static volatile sig_atomic_t masked_now;
static int event = -1;

static void on_signal(int number)
{
    int saved = errno;
    if (received && masked_now && !told) {
        told = 1;
        (void)!write(STDERR_FILENO, patience, sizeof(patience) - 1);
        errno = saved;
        return;
    }
    if (received) {
        signal(number, SIG_DFL);
        raise(number);
    }
    received = number;
    uint64_t one = 1;
    (void)!write(event, &one, sizeof(one));
    errno = saved;
}

static void set_action(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LENGTH(cancel_signals); i++) {
        struct sigaction former;
        /* What nohup ignored stays ignored. */
        if (sigaction(cancel_signals[i], NULL, &former) == 0 && former.sa_handler == SIG_IGN) {
            continue;
        }
        sigaction(cancel_signals[i], &action, NULL);
    }
}

void cancel_install(void)
{
    if (event < 0) {
        event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    set_action(on_signal);
}

void cancel_uninstall(void)
{
    set_action(SIG_DFL);
}

void cancel_forked(void)
{
    received = 0;
    told = 0;
    if (event >= 0) {
        /* The parent's is shared: what is written to it would wake the parent. */
        close(event);
        event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

bool cancel_requested(void)
{
    return received && !masked_now;
}

int cancel_signal(void)
{
    return received;
}

int cancel_fd(void)
{
    return masked_now ? -1 : event;
}

int cancel_check(struct error *err)
{
    if (!cancel_requested()) {
        return 0;
    }
    return error_set(err, ERR_INTERRUPTED, "interrupted");
}

void cancel_mask(bool masked)
{
    masked_now = masked;
}
