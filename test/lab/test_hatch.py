"""`box incus`: the hatch to the incus client, its boundary and its warnings. Against a real daemon in the lab."""
import os
import tempfile
import unittest

import daily
import harness

LAB = harness.Lab()
BOX = "hatch-box"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("hatch-")
    daily.launch(LAB, BOX)
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

    def refused(self, said, *words):
        done = hatch(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
        self.assertIn(said, done.stderr, words)
        self.assertIn(f"box incus {BOX} -- ... {{}} ...", done.stderr, words)
        self.assertNotIn("running:", done.stderr, words)

    def test_refuses_another_instance_whatever_is_asked(self):
        other = "hatch-foreign"
        for words in (["delete", other, "-f"], ["rm", "-f", "{}", other], ["stop", "-f", f"local:{other}"], ["info", other],
                      ["move", other, "{}"], ["rename", other], ["rebuild", harness.IMAGE, other], ["copy", "{}", other],
                      ["config", "show", other], ["config", "device", "remove", other, "eth0"], ["file", "delete", f"{other}/etc/passwd"],
                      ["snapshot", "restore", f"{other}/s"], ["exec", other, "--", "true"], ["delete", "-f", "--", other],
                      ["query", "-X", "DELETE", f"/1.0/instances/{other}?x={{}}"]):
            self.refused(f"names another instance, {other}", *words)
        for name in (other, BOX):
            self.assertEqual(LAB.query(f"/1.0/instances/{name}")["status"], "Running")

    def test_acts_on_exactly_the_box(self):
        for words in (["delete", "hatch-nothing", "-f"], ["stop", "{}", "remote:hatch-foreign"], ["rename", "hatch-new"],
                      ["move", "hatch-new"], ["snapshot", "delete", "some"], ["snapshot", "create", "some"]):
            self.refused(f"where the name of the box {BOX} must", *words)
        for words in (["stop", "--all"], ["delete", "{}", "--project", "other"], ["info", "--project=other"]):
            self.refused("leads to other instances", *words)
        self.assertEqual(LAB.query(f"/1.0/instances/{BOX}")["status"], "Running")
        self.assertEqual(LAB.query(f"/1.0/instances/{BOX}/snapshots"), [f"/1.0/instances/{BOX}/snapshots/pristine"])

    def test_what_is_no_name_may_be_called_like_an_instance(self):
        LAB.must(["incus", "init", "--empty", "show", "-p", "box-net"])
        try:
            self.assertEqual(hatch("config", "show").returncode, 0)
            self.assertEqual(hatch("exec", "{}", "--", "echo", "show").stdout, "show\n")
            self.assertEqual(hatch("config", "set", "{}", "user.note=show").returncode, 0)
        finally:
            LAB.must(["incus", "delete", "show"])

    def test_takes_the_name_itself_for_what_it_is(self):
        LAB.must(["incus", "init", "--empty", "hatch-spare", "-p", "box-net", "-c", "user.box=1"])
        done = LAB.box("incus", "hatch-spare", "--", "delete", "hatch-spare", "-f")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("running: incus delete hatch-spare -f\n", done.stderr)

    def test_says_that_box_will_no_longer_know_it(self):
        LAB.must(["incus", "init", "--empty", "hatch-spare", "-p", "box-net", "-c", "user.box=1"])
        try:
            done = LAB.box("incus", "hatch-spare", "--", "config", "unset", "{}", "user.box")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("it will no longer know it", done.stderr)
            back = done.stderr.split("give it back: ")[1].split("\n")[0]
            self.assertIn("no such box", LAB.box("info", "hatch-spare").stderr)
            LAB.must(back.split())
            self.assertEqual(LAB.box("info", "hatch-spare").returncode, 0)
            done = LAB.box("incus", "hatch-spare", "--", "config", "set", "{}", "user.claudebox=0")
            self.assertIn("it will no longer know it", done.stderr)
            done = LAB.box("incus", "hatch-spare", "--", "config", "set", "{}", "user.box.state=failed")
            self.assertIn("may no longer know it for what it is", done.stderr)
            self.assertIn("contract", done.stderr)
        finally:
            LAB.must(["incus", "delete", "hatch-spare"])

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
