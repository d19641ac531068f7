"""`box incus`: the hatch to the incus client, its boundary and its warnings. Against a real daemon in the lab."""
import os
import tempfile
import unittest

import harness

LAB = harness.Lab()
BOX = "hatch-box"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("hatch-")
    done = LAB.box("new", "--name", BOX, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    LAB.must(["incus", "launch", harness.IMAGE, "hatch-foreign", "-p", "box-net"], timeout=120)


def tearDownModule():
    LAB.remove_boxes("hatch-")


def hatch(*words, **options):
    return LAB.box("incus", BOX, "--", *words, **options)


class Hatch(unittest.TestCase):
    def test_puts_the_name_at_the_end(self):
        done = hatch("config", "show")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('user.box: "1"', done.stdout)
        self.assertEqual(done.stderr, f"running: incus config show {BOX}\n")

    def test_puts_the_name_in_every_place(self):
        done = hatch("config", "get", "{}", "user.box")
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        with tempfile.NamedTemporaryFile("w", dir="/tmp") as file:
            file.write("pushed")
            file.flush()
            done = hatch("file", "push", file.name, "{}/root/pushed")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(LAB.must(["incus", "exec", BOX, "--", "cat", "/root/pushed"]).stdout, "pushed")

    def test_passes_the_exit_status_and_the_streams_on(self):
        self.assertEqual(hatch("exec", "{}", "--", "sh", "-c", "exit 9").returncode, 9)
        self.assertEqual(hatch("exec", "{}", "-T", "--", "cat", input="through").stdout, "through")
        self.assertNotEqual(hatch("nonsense").returncode, 0)

    def test_refuses_what_is_no_box_and_runs_nothing(self):
        for name in ("hatch-foreign", "hatch-nothing"):
            done = LAB.box("incus", name, "--", "config", "set", "{}", "user.reached=1")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("no such box", done.stderr)
            self.assertNotIn("running:", done.stderr)
        self.assertNotIn("user.reached", LAB.query("/1.0/instances/hatch-foreign")["config"])

    def test_warns_where_the_contract_is_at_stake(self):
        for words in (["profile", "show", "box-net"], ["network", "list"], ["config", "device", "show"],
                      ["config", "set", "{}", "security.nesting=true"], ["config", "unset", "{}", "raw.lxc"]):
            done = hatch(*words, input="")
            self.assertIn("warning:", done.stderr, words)
            self.assertIn(f"box info {BOX}", done.stderr, words)

    def test_warns_of_nothing_else(self):
        for words in (["info"], ["config", "show"], ["config", "get", "{}", "raw.lxc"], ["config", "set", "{}", "user.note=x"],
                      ["snapshot", "list"], ["query", "/1.0/instances/{}"]):
            done = hatch(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("warning:", done.stderr, words)

    def test_stays_with_the_daemon_in_which_it_found_the_box(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as home:
            os.makedirs(f"{home}/.config/incus")
            with open(f"{home}/.config/incus/config.yml", "w", encoding="utf-8") as file:
                file.write("default-remote: elsewhere\nremotes:\n  elsewhere:\n    addr: https://192.0.2.1:8443\n"
                           "    protocol: incus\n    public: false\n  local:\n    addr: unix://\n    project: other\n")
            done = hatch("config", "get", "{}", "user.box", env={"HOME": home, "INCUS_CONF": f"{home}/.config/incus"})
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)

    def test_wants_the_dashes(self):
        for words in ((BOX,), (BOX, "info"), (BOX, "--")):
            done = LAB.box("incus", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: box incus BOX -- ARG...", done.stderr)

    def test_says_that_the_client_is_missing(self):
        done = hatch("info", env={"PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("incus-client", done.stderr)


if __name__ == "__main__":
    unittest.main()
