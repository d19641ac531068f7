"""`box shell` on a terminal: a person types, resizes, breaks off; the box or the daemon goes away underneath."""
import os
import signal
import unittest

import daily
import harness
from session import Session

LAB = harness.Lab()
BOX = "terminal-box"
USER = daily.USER


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("terminal-")
    daily.launch(LAB, BOX)


def tearDownModule():
    LAB.remove_boxes("terminal-")


def shell(**options):
    session = Session(LAB, harness.binary(), "shell", BOX, **options)
    session.wait_for(r"\$ ")
    return session


def own_process():
    """The pid of the running `box shell BOX`."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0] == harness.binary().encode() and words[1:3] == [b"shell", BOX.encode()]:
            return int(entry)
    raise AssertionError("no box shell runs")


class Shell(unittest.TestCase):
    def test_is_a_login_shell_of_the_user_and_passes_its_exit_status_on(self):
        session = shell()
        self.assertEqual(session.ask("whoami"), USER)
        self.assertEqual(session.ask("pwd"), f"/home/{USER}")
        self.assertEqual(session.ask("shopt -q login_shell && echo login"), "login")
        self.assertEqual(session.ask("test -w $(tty) && echo mine"), "mine")
        self.assertEqual(session.ask("echo $LANG $HOME $USER $SHELL"), f"C.UTF-8 /home/{USER} {USER} /bin/bash")
        session.type("exit 7\n")
        self.assertEqual(session.finish(), (7, True))

    def test_nothing_of_the_host_goes_along(self):
        session = shell(env={"SECRET_TOKEN": "s3cret", "DISPLAY": ":7", "SSH_AUTH_SOCK": "/tmp/agent", "LC_ALL": "xx_YY"})
        self.assertEqual(session.ask("echo x$SECRET_TOKEN$DISPLAY$SSH_AUTH_SOCK$LC_ALL$container"), "x")
        session.type("exit\n")
        self.assertEqual(session.finish()[0], 0)

    def test_term_is_one_that_the_guest_knows(self):
        for term, expected in (("xterm", "xterm"), ("xterm-kitty", "xterm-256color"), ("nonesuch-terminal", "xterm-256color"),
                               ("", "xterm-256color"), ("../../etc/passwd", "xterm-256color"), (".", "xterm-256color"),
                               ("x" * 300, "xterm-256color"), ("a b;id", "xterm-256color"), ("$(id)", "xterm-256color")):
            with self.subTest(term):
                session = shell(term=term)
                self.assertEqual(session.ask("echo $TERM"), expected)
                session.type("exit\n")
                self.assertEqual(session.finish(), (0, True))

    def test_the_window_size_is_followed(self):
        session = shell(rows=31, columns=97)
        self.assertEqual(session.ask("stty size"), "31 97")
        session.type("trap 'echo \"<\"$(stty size)\">\"' WINCH; echo armed\n")
        session.wait_for(r"\narmed|\rarmed")
        session.resize(44, 132)
        while session.ask("stty size") != "44 132":  # keys and sizes go to the daemon by ways of their own
            pass
        session.type("\n")
        self.assertEqual(session.wait_for(r"<(\d+ \d+)>").group(1), "44 132")
        session.type("exit\n")
        self.assertEqual(session.finish(), (0, True))

    def test_keys_reach_the_guest(self):
        session = shell()
        for key, status in (("\x03", 130), ("\x1c", 131)):
            session.type("sh -c 'echo begin$((1)); exec sleep 60'\n")  # who can say it has the terminal already
            session.wait_for("begin1")
            session.type(key)
            session.type("echo \"<\"end:$?\">\"\n")
            self.assertEqual(session.wait_for(r"<end:(\d+)>").group(1), str(status))
        session.type("tr a-z A-Z\nhello\n")
        session.wait_for(r"HELLO\r\n")
        session.type("\x04")
        session.type("exit\n")
        self.assertEqual(session.finish(), (0, True))

    def test_the_end_of_input_leaves(self):
        session = shell()
        session.type("\x04")
        self.assertEqual(session.finish(), (0, True))

    def test_the_box_stops_underneath(self):
        session = shell()
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            status, sane = session.finish()
        finally:
            LAB.must(["incus", "start", BOX])
        self.assertNotEqual(status, 0)
        self.assertTrue(sane)

    def test_the_daemon_dies_underneath(self):
        session = shell()
        LAB.command("kill-daemon")
        try:
            status, sane = session.finish()
        finally:
            LAB.command("up")
        self.assertNotEqual(status, 0)
        self.assertTrue(sane)
        self.assertIn("box:", session.seen)

    def test_a_signal_leaves_the_terminal_sane(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                session = shell()
                os.kill(own_process(), number)
                status, sane = session.finish()
                self.assertNotEqual(status, 0)
                self.assertTrue(sane)

    def test_a_shell_that_is_not_there_falls_back(self):
        as_root = lambda script: LAB.must(["incus", "exec", BOX, "--", "sh", "-c", script])
        as_root(f"usermod -s /bin/nonesuch {USER}")
        try:
            session = shell()
            self.assertEqual(session.ask("echo $SHELL"), "/bin/bash")
            session.type("exit\n")
            self.assertEqual(session.finish()[0], 0)
        finally:
            as_root(f"usermod -s /bin/bash {USER}")


if __name__ == "__main__":
    unittest.main()
