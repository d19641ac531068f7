"""box from cron, from a unit, with a broken home, a deleted directory, any locale, closed streams. Against a real daemon in the lab."""
import json
import unittest

import daily
import harness

LAB = harness.Lab()
BOX = "env-box"
MINIMAL = ["env", "-i", "PATH=/usr/bin:/bin"]  # what cron and systemd hand on


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("env-")
    daily.launch_plain(LAB, BOX)


def tearDownModule():
    LAB.remove_boxes("env-")


def box(*words, settings=(), **options):
    """With nothing in the environment but the settings."""
    return LAB.run([*MINIMAL, *settings, harness.binary(), *words], **options)


class Environment(unittest.TestCase):
    def assert_works(self, settings):
        with self.subTest(settings):
            done = box("list", "--json", settings=settings)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(BOX, [row["name"] for row in json.loads(done.stdout)])
            done = box("exec", BOX, "--", "echo", "é日", settings=settings)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "é日\n", ""))
            self.assertEqual(box("templates", settings=settings).returncode, 0)

    def test_a_home_of_any_kind(self):
        for home in ("", "/nonexistent", "/proc", "/etc/passwd", "relative", "/root/../home"):
            self.assert_works([f"HOME={home}"])
        self.assert_works([])

    def test_a_locale_of_any_kind(self):
        for locale in ("C", "POSIX", "xx_YY.UTF-8", "de_DE", "", "/etc/passwd", "a" * 5000):
            self.assert_works([f"LANG={locale}", f"LC_ALL={locale}"])

    def test_a_terminal_and_a_width_of_any_kind(self):
        for term, columns in (("", "0"), ("dumb", "-1"), ("../../etc/passwd", "99999999999999999999"), ("xterm", "x"),
                              ("xterm", "1")):
            with self.subTest(term=term, columns=columns):
                done = box("list", settings=[f"TERM={term}", f"COLUMNS={columns}"])
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotIn("\x1b", done.stdout)

    def test_a_directory_that_is_deleted(self):
        script = 'd=$(mktemp -d) && cd "$d" && rmdir "$d" && exec "$@"'
        for words in (("list",), ("exec", BOX, "--", "true"), ("templates",), ("help",)):
            with self.subTest(words):
                done = LAB.run(["sh", "-c", script, "sh", harness.binary(), *words])
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_closed_streams(self):
        """A descriptor that the daemon's socket lands on must not be one that is written to."""
        for words in (("list",), ("exec", BOX, "--", "true"), ("info", BOX)):
            for closed in ("<&-", "2>&-", "<&- 2>&-"):
                with self.subTest(words=words, closed=closed):
                    done = LAB.run(["sh", "-c", f'exec "$@" {closed}', "sh", harness.binary(), *words])
                    self.assertEqual(done.returncode, 0, done.stderr)
            if words[0] != "exec":
                with self.subTest(words=words, closed=">&-"):
                    done = LAB.run(["sh", "-c", 'exec "$@" >&-', "sh", harness.binary(), *words])
                    self.assertNotEqual(done.returncode, 0)
                    self.assertNotEqual(done.stderr, "")

    def test_every_stream_closed_at_once(self):
        done = LAB.run(["sh", "-c", '"$@" <&- >&- 2>&-; echo $?', "sh", harness.binary(), "exec", BOX, "--", "touch", "/tmp/reached"])
        self.assertEqual(done.stdout, "0\n")
        self.assertEqual(LAB.run(["incus", "exec", BOX, "--", "test", "-e", "/tmp/reached"]).returncode, 0)

    def test_no_stdin_is_eaten_from_the_loop_around(self):
        """Commands that take no input leave it alone."""
        script = 'while read -r line; do "$@" >/dev/null || exit; echo "$line"; done'
        for words in (("list",), ("info", BOX), ("logs", BOX, "-n", "1"), ("expose", "--list"), ("top",), ("templates",)):
            with self.subTest(words):
                done = LAB.run(["sh", "-c", script, "sh", harness.binary(), *words], input="1\n2\n3\n")
                self.assertEqual(done.stdout, "1\n2\n3\n", done.stderr)

    def test_verbose_tells_each_request_and_quiet_nothing(self):
        done = box("list", "--verbose")
        self.assertRegex(done.stderr, r"GET /1\.0/instances\S* .*\d ?ms")
        done = box("expose", "--list", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
