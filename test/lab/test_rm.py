"""`box rm`: asks first, removes one by one, touches nothing that is no box; whatever request of it fails, nothing is left
that is nobody's. Against a real daemon in the lab."""
import signal
import time
import unittest

import harness
import held
import relayed
import tinybox
from session import Session

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "rm-"


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()
    BOXES.make("rm-neighbour")
    LAB.must(["incus", "init", tinybox.ALIAS, "rm-foreign", "-p", "box-net"])


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def run_box(name):
    LAB.must(["incus", "launch", tinybox.ALIAS, name, "-p", "box-net", "-c", "user.box=1"])


def instances():
    """Name to configuration of what the daemon has."""
    return {row["name"]: row["config"] for row in LAB.query("/1.0/instances?recursion=1")
            if row["name"].startswith(PREFIX)}


class Removing(unittest.TestCase):
    def tearDown(self):
        self.assertIn("rm-neighbour", instances())
        self.assertIn("rm-foreign", instances())

    def test_removes_a_stopped_and_a_running_box(self):
        BOXES.make("rm-a")
        run_box("rm-b")
        for name in ("rm-a", "rm-b"):
            done = LAB.box("rm", "--force", name)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertIn(f"removing the box {name}: removed", done.stderr)
            self.assertNotIn(name, instances())

    def test_removes_a_box_of_the_older_generation_and_a_half_minted_one(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "rm-older", "-p", "box-net", "-c", "user.claudebox=1"])
        BOXES.make("rm-half", "user.box.state=minting")
        self.assertEqual(LAB.box("rm", "-f", "rm-older", "rm-half").returncode, 0)
        self.assertFalse({"rm-older", "rm-half"} & set(instances()))

    def test_what_is_no_box_is_no_such_box_and_stays(self):
        for name in ("rm-foreign", "rm-nothing"):
            for words in ((), ("--force",)):
                done = LAB.box("rm", *words, name)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"no such box: {name}", done.stderr)

    def test_many_one_by_one_and_a_missing_one_stops_none(self):
        BOXES.make("rm-a")
        BOXES.make("rm-c")
        done = LAB.box("rm", "--force", "rm-a", "rm-nothing", "rm-foreign", "rm-c", "rm-a")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertFalse({"rm-a", "rm-c"} & set(instances()))
        self.assertIn("no such box: rm-nothing", done.stderr)
        self.assertIn("no such box: rm-foreign", done.stderr)
        self.assertIn("2 of 4 boxes could not be removed", done.stderr)

    def test_waits_for_what_the_daemon_still_does_with_it(self):
        BOXES.make("rm-a")
        start = LAB.popen(["incus", "start", "rm-a"], stdout=-1, stderr=-1)
        done = LAB.box("rm", "--force", "rm-a")
        start.communicate(timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("rm-a", instances())

    def test_waits_for_a_create_that_nobody_waits_for(self):
        with held.Image(LAB) as image:
            image.create("rm-a", "user.box=1", "user.box.state=minting")
            removal = LAB.popen([harness.binary(), "rm", "--force", "rm-a"], stderr=-1)
            held.assert_waits(self, removal)
            image.release()
            words = removal.communicate(timeout=60)[1].decode()
        self.assertEqual(removal.returncode, 0, words)
        self.assertNotIn("rm-a", instances())

    def test_a_bad_name_among_them_is_refused_before_any_request(self):
        with relayed.Relay(LAB) as relay:
            done = relay.box("rm", "--force", "rm-neighbour", "rm neighbour")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(relay.requests(), [])


class Asking(unittest.TestCase):
    def setUp(self):
        BOXES.make("rm-a")
        self.addCleanup(LAB.remove_boxes, "rm-a")

    def asked(self, *names):
        session = Session(LAB, harness.binary(), "rm", *names)
        session.wait_for(r"\[y/N\] ")
        return session

    def test_without_a_terminal_and_force_it_refuses(self):
        for data in (None, "y\n"):
            done = LAB.box("rm", "rm-a", input=data)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("delete the box rm-a and all that is on its disk", done.stderr)
            self.assertIn("--force", done.stderr)
        self.assertIn("rm-a", instances())

    def test_names_the_act_and_does_it_for_a_yes(self):
        session = Session(LAB, harness.binary(), "rm", "rm-a")
        session.wait_for(r"Delete the box rm-a and all that is on its disk\? \[y/N\] ")
        session.type("y\n")
        self.assertEqual(session.finish(), (0, True))
        self.assertNotIn("rm-a", instances())

    def test_names_all_of_several(self):
        BOXES.make("rm-b")
        self.addCleanup(LAB.remove_boxes, "rm-b")
        session = Session(LAB, harness.binary(), "rm", "rm-a", "rm-b")
        session.wait_for(r"Delete the boxes rm-a, rm-b and all that is on their disks\? \[y/N\] ")
        session.type("yes\n")
        self.assertEqual(session.finish()[0], 0)
        self.assertFalse({"rm-a", "rm-b"} & set(instances()))

    def test_any_other_answer_means_no(self):
        for answer in ("n\n", "\n", "\x04", "yep\n", "Y E S\n"):
            session = self.asked("rm-a")
            session.type(answer)
            self.assertEqual(session.finish(), (1, True), answer)
            self.assertIn("aborted; nothing was done", session.seen)
            self.assertIn("rm-a", instances())

    def test_ctrl_c_means_no(self):
        session = self.asked("rm-a")
        session.type("\x03")
        self.assertEqual(session.finish(), (1, True))
        self.assertIn("aborted", session.seen)
        self.assertIn("rm-a", instances())

    def test_another_instance_that_took_the_name_meanwhile_stays(self):
        session = self.asked("rm-a")
        LAB.must(["incus", "delete", "--force", "rm-a"])
        LAB.must(["incus", "init", tinybox.ALIAS, "rm-a", "-p", "box-net"])
        session.type("y\n")
        self.assertEqual(session.finish()[0], 1)
        self.assertIn("not touched", session.seen)
        self.assertIn("rm-a", instances())

    def test_one_that_is_gone_meanwhile_is_removed(self):
        session = self.asked("rm-a")
        LAB.must(["incus", "delete", "--force", "rm-a"])
        session.type("y\n")
        self.assertEqual(session.finish()[0], 0)


class Broken(unittest.TestCase):
    """Every request of a removal spoiled in every way: the box is gone or still a box, and the same command then works."""

    def spoil(self, action, make):
        make("rm-x")
        count = relayed.count(LAB, "rm", "--force", "rm-x")
        self.assertGreaterEqual(count, 4)
        for k in range(1, count + 1):
            make("rm-x")
            with relayed.Relay(LAB, k, action) as relay:
                done = relay.box("rm", "--force", "rm-x")
            left = instances()
            if done.returncode == 0:
                self.assertNotIn("rm-x", left, k)
            elif action != "killed":
                self.assertEqual(done.returncode, 1, (k, done.stderr))
                self.assertRegex(done.stderr, "(?m)^box: ")
            self.assertEqual(left.get("rm-x", {}).get("user.box", "1"), "1", k)
            again = LAB.box("rm", "--force", "rm-x")
            self.assertEqual(again.returncode, 0 if "rm-x" in left else 1, (k, again.stderr))
            left = instances()
            self.assertNotIn("rm-x", left, (k, again.stderr))
            self.assertTrue({"rm-neighbour", "rm-foreign"} <= set(left))

    def test_cut(self):
        self.spoil("cut", run_box)

    def test_killed(self):
        self.spoil("killed", run_box)

    def test_answer_lost(self):
        self.spoil("lose", BOXES.make)

    def test_refused(self):
        self.spoil("error", BOXES.make)

    def test_interrupted(self):
        BOXES.launch("rm-x")
        BOXES.launch("rm-y")
        process = LAB.popen([harness.binary(), "rm", "--force", "rm-x", "rm-y"], stderr=-1)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        words = process.stderr.read().decode()
        process.stderr.close()
        # Quick enough, it was done before.
        if process.wait(timeout=30) != 0:
            self.assertIn("interrupted", words)
        for name in ("rm-x", "rm-y"):
            self.assertEqual(instances().get(name, {}).get("user.box", "1"), "1")
        LAB.box("rm", "--force", "rm-x", "rm-y")
        self.assertFalse({"rm-x", "rm-y"} & set(instances()))


if __name__ == "__main__":
    unittest.main()
