"""`box start` and `box down`: the contract before, the walls after, patience with an end. A real daemon in the lab."""
import json
import signal
import time
import unittest

import harness
import relayed
import tinybox

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "power-"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()
    LAB.must(["incus", "launch", tinybox.ALIAS, "power-foreign", "-p", "box-net"])


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def status(name):
    return LAB.query(f"/1.0/instances/{name}")["status"]


def armed(name):
    return json.loads(LAB.box("info", name, "--json").stdout)["armed"]


class Start(unittest.TestCase):
    def setUp(self):
        self.addCleanup(LAB.remove_boxes, "power-a")
        BOXES.make("power-a")

    def test_ends_once_the_port_is_armed(self):
        done = LAB.box("start", "power-a")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertTrue(armed("power-a"))
        self.assertEqual(status("power-a"), "Running")

    def test_one_that_runs_is_left_alone_and_told(self):
        LAB.must(["incus", "start", "power-a"])
        done = LAB.box("start", "power-a")
        self.assertEqual(done.returncode, 0)
        self.assertIn("running already", done.stderr)

    def test_thaws_a_frozen_one(self):
        LAB.must(["incus", "start", "power-a"])
        LAB.must(["incus", "pause", "power-a"])
        self.assertEqual(LAB.box("start", "power-a").returncode, 0)
        self.assertEqual(status("power-a"), "Running")

    def test_refuses_one_that_is_off_the_contract_before_any_act(self):
        LAB.must(["incus", "config", "set", "power-a", "security.privileged=true"])
        with relayed.Relay(LAB) as relay:
            done = relay.box("start", "power-a")
            self.assertEqual([line.split()[0] for line in relay.requests()], ["GET"])
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("security.privileged", done.stderr)
        self.assertIn("box info power-a", done.stderr)
        self.assertEqual(status("power-a"), "Stopped")

    def test_refuses_what_is_no_box_and_goes_on_with_the_rest(self):
        LAB.must(["incus", "stop", "--force", "power-foreign"])
        self.addCleanup(LAB.must, ["incus", "start", "power-foreign"])
        done = LAB.box("start", "power-foreign", "power-a")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such box: power-foreign", done.stderr)
        self.assertIn("1 of 2 boxes could not be started", done.stderr)
        self.assertEqual((status("power-foreign"), status("power-a")), ("Stopped", "Running"))

    def test_warns_of_an_incomplete_one(self):
        LAB.must(["incus", "config", "set", "power-a", "user.box.state=failed", "user.box.reason=no answer"])
        done = LAB.box("start", "power-a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "warning: .*incomplete.*no answer")

    def test_says_what_to_do_where_nobody_arms(self):
        pid = LAB.must(["cat", "/run/box/watch.pid"]).stdout.strip()
        LAB.must(["kill", pid])
        self.addCleanup(LAB.must, [harness.binary(), "setup-host"], timeout=120)
        deadline = time.monotonic() + 10
        while LAB.run(["kill", "-0", pid]).returncode == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        done = LAB.box("start", "power-a")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the box power-a runs, but it has no network", done.stderr)
        self.assertRegex(done.stderr, r"\n +box setup-host")
        self.assertEqual(status("power-a"), "Running")
        told = json.loads(LAB.box("info", "power-a", "--json").stdout)
        self.assertFalse(told["armed"])
        self.assertIn("NOT armed", LAB.box("info", "power-a").stdout)


def deafen(name):
    """Its init is stopped from outside, so that it hears no request."""
    LAB.must(["kill", "-STOP", LAB.query(f"/1.0/instances/{name}/state")["pid"]])


class Down(unittest.TestCase):
    def setUp(self):
        self.addCleanup(LAB.remove_boxes, "power-a")
        BOXES.launch("power-a")

    def test_escalates_within_the_stated_time(self):
        deafen("power-a")
        began = time.monotonic()
        done = LAB.box("down", "--grace", "2", "power-a")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertGreaterEqual(time.monotonic() - began, 2)
        self.assertLess(time.monotonic() - began, 28)
        self.assertIn("(it has 2 s)", done.stderr)
        self.assertIn("forcing the box power-a down", done.stderr)
        self.assertEqual(status("power-a"), "Stopped")

    def test_gives_30_seconds_and_is_never_silent_meanwhile(self):
        deafen("power-a")
        process = LAB.popen([harness.binary(), "down", "power-a"], stderr=-1)
        self.addCleanup(process.kill)
        began = time.monotonic()
        self.assertIn(b"(it has 30 s)", process.stderr.readline())
        for _ in range(2):
            self.assertIn(b"still", process.stderr.readline())
        self.assertLess(time.monotonic() - began, 28)
        process.send_signal(signal.SIGINT)
        words = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 1)
        self.assertIn(b"interrupted", words)
        self.assertEqual(status("power-a"), "Running")

    def test_without_grace_it_forces_at_once(self):
        done = LAB.box("down", "power-a", "--grace=0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("asking", done.stderr)
        self.assertEqual(status("power-a"), "Stopped")

    def test_a_frozen_one_goes_down(self):
        LAB.must(["incus", "pause", "power-a"])
        self.assertEqual(LAB.box("down", "power-a", "--grace=1").returncode, 0)
        self.assertEqual(status("power-a"), "Stopped")

    def test_one_that_is_down_is_told(self):
        LAB.must(["incus", "stop", "--force", "power-a"])
        done = LAB.box("down", "power-a")
        self.assertEqual(done.returncode, 0)
        self.assertIn("down already", done.stderr)

    def test_a_guest_that_obeys_is_not_forced(self):
        LAB.must(["incus", "launch", harness.IMAGE, "power-debian", "-p", "box-net", "-c", "user.box=1"], timeout=120)
        self.addCleanup(LAB.remove_boxes, "power-debian")
        LAB.must(["incus", "exec", "power-debian", "--", "sh", "-c",
                  "until systemctl is-system-running --wait 2>/dev/null | grep -q .; do sleep 0.2; done"], timeout=120)
        done = LAB.box("down", "power-debian", timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("forcing", done.stderr)
        self.assertEqual(status("power-debian"), "Stopped")

    def test_what_is_no_box_goes_on_running(self):
        done = LAB.box("down", "power-foreign", "power-nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such box: power-foreign", done.stderr)
        self.assertEqual(status("power-foreign"), "Running")

    def test_a_bad_grace_is_refused(self):
        for grace in ("-1", "x", "3601", "1.5", ""):
            self.assertEqual(LAB.box("down", "power-a", f"--grace={grace}").returncode, 2, grace)
        self.assertEqual(status("power-a"), "Running")

    def test_a_failing_daemon_is_told(self):
        count = relayed.count(LAB, "down", "--grace=1", "power-a")
        for k in range(1, count + 1):
            LAB.run(["incus", "start", "power-a"])
            with relayed.Relay(LAB, k, "stop") as relay:
                done = relay.box("down", "--grace=1", "power-a")
            if done.returncode != 0:
                self.assertEqual((done.returncode, done.stdout), (1, ""), k)
                self.assertRegex(done.stderr, "(?m)^box: ")
            else:
                self.assertEqual(status("power-a"), "Stopped")
            self.assertEqual(LAB.query("/1.0/instances/power-a")["config"]["user.box"], "1")


if __name__ == "__main__":
    unittest.main()
