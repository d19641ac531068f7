"""A command on a terminal of its own in the lab, as a person would have it: type, wait, resize, look what is left.

    session = Session(LAB, harness.binary(), "shell", "a", rows=30, columns=100, term="xterm-256color")
    session.type("echo hello\n"); session.wait_for("hello"); status, sane = session.finish()
"""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class Session:
    """A process on a terminal of its own, as a person would have it."""

    def __init__(self, lab, *argv, rows=30, columns=100, term="xterm-256color", env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.environ.update({"TERM": term, **(env or {})})
                line = lab.argv(argv)
                os.execvp(line[0], line)
            finally:
                os._exit(126)
        self.resize(rows, columns)
        self.seen = ""
        self.before = termios.tcgetattr(self.fd)

    def signal(self, number):
        """To the command itself, not to what entered the lab for it."""
        os.kill(self.pid, number)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        """One piece of output, or None at the end or when the time is over."""
        ready, _, _ = select.select([self.fd], [], [], max(0, seconds))
        if not ready:
            return None
        try:
            return os.read(self.fd, 65536).decode(errors="replace") or None
        except OSError:
            return None

    def wait_for(self, pattern, seconds=20):
        """Reads until the pattern was shown; returns the match and forgets what came before its end."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen)):
            piece = self.read(deadline - time.monotonic())
            if piece is None:
                raise AssertionError(f"{pattern!r} was not shown; this was: {self.seen!r}")
            self.seen += piece
        self.seen = self.seen[match.end():]
        return match

    def ask(self, command):
        """What a command prints, as one text."""
        self.type(f"printf '<%s>' \"$({command})\"; echo\n")
        return self.wait_for(r"<([^%$][^>]*)>").group(1)

    def finish(self, seconds=30):
        """The exit status of the process, once it ended; and the terminal's state is what it was."""
        deadline = time.monotonic() + seconds
        while (piece := self.read(0.05)) is not None or time.monotonic() < deadline:
            self.seen += piece or ""
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                break
        else:
            raise AssertionError(f"it still runs; this was shown: {self.seen!r}")
        after = termios.tcgetattr(self.fd)
        while (piece := self.read(0)) is not None:
            self.seen += piece
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), after == self.before
