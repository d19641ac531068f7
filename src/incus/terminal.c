/* Raw mode and its end, window sizes, SIGWINCH and SIGCONT through a descriptor.
 * Not for: reading or writing the terminal; nor for INT, TERM and HUP, which come through base/cancel.h. */
#include "incus/terminal.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

struct terminal {
    int fd;
    int signals;
    sigset_t former_mask;
    struct termios former, raw;
};

/* TCSADRAIN, never TCSAFLUSH: what was typed ahead belongs to the guest, and afterwards to the shell. A background
 * process that changes modes is stopped by SIGTTOU; restoring must not be. */
static int set_modes(int fd, const struct termios *modes)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, former;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGTTOU, &ignore, &former);
    int result;
    do {
        result = tcsetattr(fd, TCSADRAIN, modes);
    } while (result < 0 && errno == EINTR);
    int saved = errno;
    sigaction(SIGTTOU, &former, NULL);
    errno = saved;
    return result;
}

int terminal_enter(int fd, struct terminal **ret_terminal, struct error *err)
{
    struct termios former;
    if (tcgetattr(fd, &former) < 0) {
        return error_set(err, ERR_USAGE, "an interactive session needs a terminal, and standard input is none");
    }
    sigset_t mask, former_mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGWINCH);
    sigaddset(&mask, SIGCONT);
    sigprocmask(SIG_BLOCK, &mask, &former_mask);
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    struct termios raw = former;
    cfmakeraw(&raw);
    if (signals < 0 || set_modes(fd, &raw) < 0) {
        int saved = errno;
        fd_closep(&signals);
        sigprocmask(SIG_SETMASK, &former_mask, NULL);
        return error_set_errno(err, saved, "cannot put the terminal into raw mode");
    }
    struct terminal *terminal = xcalloc(1, sizeof(*terminal));
    *terminal =
        (struct terminal){.fd = fd, .signals = signals, .former_mask = former_mask, .former = former, .raw = raw};
    *ret_terminal = terminal;
    return 0;
}

void terminal_restore(struct terminal *terminal)
{
    if (!terminal) {
        return;
    }
    (void)set_modes(terminal->fd, &terminal->former);
    fd_closep(&terminal->signals);
    sigprocmask(SIG_SETMASK, &terminal->former_mask, NULL);
    free(terminal);
}

int terminal_fd(const struct terminal *terminal)
{
    return terminal->signals;
}

void terminal_service(struct terminal *terminal)
{
    struct signalfd_siginfo signal;
    while (read(terminal->signals, &signal, sizeof(signal)) == sizeof(signal)) {
        /* While we were stopped the shell had the terminal, in its own modes. */
        if (signal.ssi_signo == SIGCONT) {
            (void)set_modes(terminal->fd, &terminal->raw);
        }
    }
}

bool terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0) {
        return false;
    }
    *ret_columns = size.ws_col;
    *ret_rows = size.ws_row;
    return true;
}
