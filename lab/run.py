"""Runs one command inside a lab in the foreground, as if its caller had started it there. Quick: it loads little."""

import errno
import fcntl
import os
import signal
import sys

from spaces import die_with_parent, restore_signals


def run(enter, argv, environment):
    """Runs a command in the foreground: same terminal, descriptors, signals. Returns its exit status, 128+n for a signal."""
    where = os.getcwd()
    enter()
    try:
        os.chdir(where)
    except OSError:
        os.chdir("/")
    relayed = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGWINCH, signal.SIGALRM}
    waited = relayed | {signal.SIGCHLD}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    terminal = any(os.isatty(fd) for fd in (0, 1, 2) if _is_open(fd))
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            if not terminal:
                os.setpgid(0, 0)  # a signal to our whole group then reaches the command once, through us
            restore_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
            os.execvpe(argv[0], argv, environment)
        except OSError as problem:
            sys.stderr.write("lab: %s: %s\n" % (argv[0], problem.strerror))
            sys.stderr.flush()
            os._exit(126 if problem.errno == errno.EACCES else 127)
    while True:
        info = signal.sigwaitinfo(waited)
        if info.si_signo != signal.SIGCHLD:
            # What the terminal sends goes to its whole foreground group, the command included.
            if info.si_code <= 0 or not terminal:
                os.kill(child, info.si_signo)
            continue
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif pid:
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _is_open(fd):
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
        return True
    except OSError:
        return False
