"""Many at once: `new --count`, `start`, `down` and `rm` of several, each told, one failing stopping none. A real daemon in the
lab."""
import json
import signal
import time
import unittest

import harness
import relayed
import tinybox
from session import Session

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "many-"


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()
    BOXES.make("many-s", "user.box.template=tiny")


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def instances():
    return {row["name"]: row for row in LAB.query("/1.0/instances?recursion=1") or [] if row["name"].startswith(PREFIX)}


class Count(unittest.TestCase):
    def tearDown(self):
        LAB.remove_boxes("many-x")

    def test_each_is_made_and_told(self):
        done = LAB.box("new", "many-x", "--from", "many-s", "--count", "4")
        names = [f"many-x-{i}" for i in range(1, 5)]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], names)
        rows = instances()
        self.assertEqual(len({rows[name]["config"]["volatile.eth0.hwaddr"] for name in names}), 4)
        for name in names:
            self.assertEqual(rows[name]["status"], "Running")
            self.assertRegex(done.stderr, f"(?m)^{name}: copying many-s to {name}: done")

    def test_json_is_one_array_in_order(self):
        done = LAB.box("new", "--name", "many-x", "--from", "many-s", "--count", "2", "--json")
        self.assertEqual([row["name"] for row in json.loads(done.stdout)], ["many-x-1", "many-x-2"])

    def test_one_that_fails_neither_stops_nor_hides_the_rest(self):
        BOXES.make("many-x-2")
        before = instances()["many-x-2"]["config"]
        done = LAB.box("new", "many-x", "--from", "many-s", "--count", "3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is a box many-x-2 already", done.stderr)
        self.assertIn("1 of 3 boxes could not be made", done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["many-x-1", "many-x-3"])
        self.assertEqual(instances()["many-x-2"]["config"], before)

    def test_bad_counts_and_names(self):
        for words in (("--count", "0"), ("--count", "101"), ("--count", "-1"), ("--count", "x")):
            self.assertEqual(LAB.box("new", "many-x", "--from", "many-s", *words).returncode, 2, words)
        self.assertEqual(LAB.box("new", "m" * 62, "--from", "many-s", "--count", "2").returncode, 2)
        self.assertEqual(set(instances()), {"many-s"})

    def test_interrupted_it_leaves_whole_boxes_or_none(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = LAB.popen([harness.binary(), "new", "many-x", "--from", "many-s", "--count", "6"], stderr=-1)
            while b"copying" not in process.stderr.readline():
                pass
            process.send_signal(number)
            told = process.stderr.read().decode()
            process.stderr.close()
            self.assertEqual(process.wait(timeout=60), 1, told)
            self.assertIn("interrupted", told)
            for name, row in instances().items():
                self.assertNotIn("user.box.state", row["config"], (name, told))
            LAB.remove_boxes("many-x")

    def test_killed_its_children_clean_up(self):
        process = LAB.popen([harness.binary(), "new", "many-x", "--from", "many-s", "--count", "4"], stderr=-1)
        while b"copying" not in process.stderr.readline():
            pass
        process.kill()
        process.wait()
        process.stderr.close()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            rows = instances()
            if all("user.box.state" not in row["config"] for row in rows.values()):
                break
            time.sleep(0.2)
        self.assertTrue(all(row["config"]["user.box"] == "1" for row in instances().values()))

    def test_every_request_spoiled(self):
        words = ("new", "many-x", "--from", "many-s", "--count", "2")
        count = relayed.count(LAB, *words)
        LAB.remove_boxes("many-x")
        for k in range(1, count + 1, 3):
            with relayed.Relay(LAB, k, "cut") as relay:
                relay.box(*words)
            for name, row in instances().items():
                self.assertEqual(row["config"].get("user.box"), "1", (k, name))
            LAB.box("rm", "-f", "many-x-1", "many-x-2")
            self.assertEqual(set(instances()), {"many-s"}, k)
        self.assertEqual(LAB.box(*words).returncode, 0)

    def test_a_live_table_on_a_terminal(self):
        session = Session(LAB, harness.binary(), "new", "many-x", "--from", "many-s", "--count", "3", columns=60)
        session.wait_for(r"  many-x-2 +[a-z]")
        session.wait_for(r"\d of 3 done, \d running, 0 failed")
        session.wait_for(r"many-x-\d: done \(")
        self.assertEqual(session.finish(), (0, True))


class Power(unittest.TestCase):
    def test_several_up_down_and_away(self):
        names = ["many-p1", "many-p2", "many-p3"]
        for name in names:
            BOXES.make(name)
        up = LAB.box("start", *names)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertEqual({instances()[name]["status"] for name in names}, {"Running"})
        down = LAB.box("down", *names, "--grace", "0")
        self.assertEqual(down.returncode, 0, down.stderr)
        self.assertEqual({instances()[name]["status"] for name in names}, {"Stopped"})
        gone = LAB.box("rm", "-f", *names, "many-nothing")
        self.assertEqual(gone.returncode, 1)
        self.assertIn("1 of 4 boxes could not be removed", gone.stderr)
        self.assertFalse(set(names) & set(instances()))


if __name__ == "__main__":
    unittest.main()
