"""`box tmux` on a terminal: attaches or begins, outlives its terminal, shows UTF-8 whatever the host's locale is."""
import os
import signal
import unittest

import daily
import harness
from session import Session

LAB = harness.Lab()
BOX = "tmux-box"
LEAVE = "tmux detach-client\n"  # as a command: its key in one burst with others is a paste to tmux


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("tmux-")
    daily.launch(LAB, BOX)


def tearDownModule():
    LAB.remove_boxes("tmux-")


def tmux(*words, **options):
    session = Session(LAB, harness.binary(), "tmux", BOX, *words, **options)
    session.wait_for(r"\$ ")
    return session


def sessions():
    done = LAB.box("exec", BOX, "--", "tmux", "list-sessions", "-F", "#S")
    return sorted(done.stdout.split())


class Tmux(unittest.TestCase):
    def tearDown(self):
        """Until the server is gone: its last act is to unlink the socket, which may be the next one's by then."""
        LAB.box("exec", BOX, "--", "sh", "-c", "tmux kill-server; while pgrep -f '^tmux: server'; do sleep 0.05; done")

    def test_begins_a_session_and_attaches_to_it_again(self):
        first = tmux()
        self.assertEqual(first.ask("whoami; pwd; shopt -q login_shell && echo login").split(),
                         [daily.USER, f"/home/{daily.USER}", "login"])
        first.type("MARK=kept$((40+2)); echo se$((1))t\n")
        first.wait_for(r"se1t")
        first.type(LEAVE)
        self.assertEqual(first.finish(), (0, True))
        self.assertEqual(sessions(), ["main"])
        second = Session(LAB, harness.binary(), "tmux", BOX)
        second.wait_for("MARK=")
        second.type("echo [$MARK]\n")
        second.wait_for(r"\[kept42\]")
        second.type("exit\n")
        self.assertEqual(second.finish(), (0, True))
        self.assertEqual(sessions(), [])

    def test_survives_the_death_of_its_connection(self):
        for number in (signal.SIGKILL, signal.SIGHUP):
            with self.subTest(number):
                session = tmux("work")
                session.type(f"MARK=after{int(number)}$((1))\n")
                session.wait_for(r"\$ ")
                session.signal(number)
                session.finish()
                session = Session(LAB, harness.binary(), "tmux", BOX, "work")
                session.wait_for("MARK=")
                session.type("echo [$MARK]\n")
                session.wait_for(rf"\[after{int(number)}1\]")
                session.type("exit\n")
                self.assertEqual(session.finish(), (0, True))

    def test_keeps_sessions_apart_by_name(self):
        for name in ("one", "two-2", "T_3"):
            session = tmux(name)
            session.type(LEAVE)
            self.assertEqual(session.finish(), (0, True))
        self.assertEqual(sessions(), ["T_3", "one", "two-2"])

    def test_shows_utf8_without_a_locale_on_the_host(self):
        session = tmux(env={"LANG": "C", "LC_ALL": "POSIX", "LC_CTYPE": ""})
        session.type(r"printf '<\xe2\x9c\x93\xe6\x97\xa5>'" "\n")
        session.wait_for("<✓日>")
        session.type("exit\n")
        self.assertEqual(session.finish(), (0, True))

    def test_starts_on_a_terminal_that_the_guest_does_not_know(self):
        for term in ("xterm-kitty", "xterm-ghostty", "tmux-256color", "", "../../etc/passwd", "dumb x"):
            with self.subTest(term):
                session = tmux(term=term)
                self.assertEqual(session.ask("echo here"), "here")
                session.type("exit\n")
                self.assertEqual(session.finish(), (0, True))

    def test_the_window_size_is_followed(self):
        session = tmux(rows=30, columns=90)
        self.assertEqual(session.ask("tput cols"), "90")
        session.resize(40, 120)
        session.type("until [ $(tput cols) = 120 ]; do sleep 0.1; done; echo wi$((1))de\n")
        session.wait_for("wi1de")
        session.type("exit\n")
        self.assertEqual(session.finish(), (0, True))

    def test_a_full_screen_program_and_the_box_stopping_underneath(self):
        session = tmux()
        session.type("top\n")
        session.wait_for("load average")
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            status, sane = session.finish()
        finally:
            LAB.must(["incus", "start", BOX])
            # A boot empties /tmp, where tmux keeps its sockets: a session that is begun meanwhile is lost.
            LAB.run(["incus", "exec", BOX, "--", "systemctl", "is-system-running", "--wait"])
        self.assertNotEqual(status, 0)
        self.assertTrue(sane)

    def test_nothing_of_the_host_goes_along(self):
        session = tmux(env={"SECRET_TOKEN": "s3cret", "TMUX": "/tmp/x,1,0", "SSH_AUTH_SOCK": "/tmp/agent"})
        self.assertEqual(session.ask("echo x$SECRET_TOKEN$SSH_AUTH_SOCK$container"), "x")
        session.type("exit\n")
        self.assertEqual(session.finish(), (0, True))


class Refusals(unittest.TestCase):
    def test_a_bad_session_name(self):
        for name in ("a.b", "a:b", "", "=x", "@1", "$1", "x" * 65, "a b", "é", "_x"):
            with self.subTest(name):
                session = Session(LAB, harness.binary(), "tmux", BOX, "--", name)
                status, sane = session.finish()
                self.assertEqual((status, sane), (2, True), session.seen)
                self.assertIn("no name for a session", session.seen)

    def test_no_terminal(self):
        done = LAB.box("tmux", BOX)
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs a terminal", done.stderr)
        self.assertIn(f"box exec {BOX} --", done.stderr)

    def test_says_that_the_guest_has_no_tmux(self):
        daily.as_root(LAB, BOX, "mv /usr/bin/tmux /usr/bin/tmux.kept")
        try:
            session = Session(LAB, harness.binary(), "tmux", BOX)
            status, sane = session.finish()
        finally:
            daily.as_root(LAB, BOX, "mv /usr/bin/tmux.kept /usr/bin/tmux")
        self.assertEqual((status, sane), (127, True))
        self.assertIn("the guest has no tmux", session.seen)


if __name__ == "__main__":
    unittest.main()
