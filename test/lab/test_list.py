"""`box list`: which instances it lists, what it says of them, and in how many requests. Against a real daemon in the lab."""
import json
import threading
import unittest

import harness
import relayed
import tinybox

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "list-"
KEYS = {"name": str, "state": str, "type": str, "ipv4": (str, type(None)), "template": (str, type(None)),
        "user": (str, type(None)), "created": (str, type(None)), "older": bool, "incomplete": (str, type(None)),
        "reason": (str, type(None)), "deviations": list}


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes()
    BOXES.prepare()


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def config(name, *pairs):
    LAB.must(["incus", "config", "set", name, *pairs])


def listed():
    done = LAB.box("list", "--json")
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


class Empty(unittest.TestCase):
    def test_says_how_to_mint_one(self):
        done = LAB.box("list")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertIn("box new NAME", done.stderr)

    def test_is_an_empty_array(self):
        done = LAB.box("list", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, []), done.stderr)
        self.assertEqual(done.stderr, "")

    def test_an_instance_that_is_no_box_is_not_listed(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "list-foreign", "-p", "box-net", "-c", "user.box=11"])
        self.addCleanup(LAB.remove_boxes, "list-foreign")
        self.assertEqual(LAB.box("list").stdout, "")


class List(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        BOXES.launch("list-runs")
        cls.address = BOXES.dhcp("list-runs")
        BOXES.make("list-stopped", "user.box.template=blank", "user.box.user=dev")
        LAB.must(["incus", "init", tinybox.ALIAS, "list-older", "-p", "box-net", "-c", "user.claudebox=1"])
        LAB.must(["incus", "init", tinybox.ALIAS, "list-foreign", "-p", "box-net"])
        LAB.must(["incus", "init", tinybox.ALIAS, "list-regex", "-p", "box-net", "-c", "user.box=true"])

    @classmethod
    def tearDownClass(cls):
        LAB.remove_boxes(PREFIX)

    def test_lists_boxes_of_both_generations_and_nothing_else(self):
        self.assertEqual(list(listed()), ["list-older", "list-runs", "list-stopped"])

    def test_the_shape_stays(self):
        for row in listed().values():
            self.assertEqual(set(row), set(KEYS))
            for key, kind in KEYS.items():
                self.assertIsInstance(row[key], kind, key)

    def test_says_what_the_daemon_says(self):
        rows = listed()
        self.assertEqual(rows["list-runs"]["state"], "running")
        self.assertTrue(self.address)
        self.assertEqual(rows["list-runs"]["ipv4"], self.address)
        self.assertEqual(rows["list-stopped"]["state"], "stopped")
        self.assertEqual(rows["list-stopped"]["template"], "blank")
        self.assertEqual(rows["list-stopped"]["user"], "dev")
        self.assertEqual(rows["list-older"]["user"], "claude")
        self.assertTrue(rows["list-older"]["older"])
        self.assertFalse(rows["list-runs"]["older"])
        self.assertEqual({row["type"] for row in rows.values()}, {"container"})
        self.assertRegex(rows["list-runs"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(rows["list-runs"]["deviations"], [])

    def test_a_table_for_people(self):
        lines = LAB.box("list").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "STATE", "TYPE", "IPV4", "TEMPLATE", "AGE", "NOTE"])
        rows = {line.split()[0]: line.split()[1:5] for line in lines[1:]}
        self.assertEqual(rows["list-runs"], ["running", "container", self.address, "-"])
        self.assertEqual(rows["list-stopped"], ["stopped", "container", "-", "blank"])

    def test_fits_the_width(self):
        for columns in (40, 60, 200):
            for line in LAB.box("list", env={"COLUMNS": columns}).stdout.splitlines():
                self.assertLessEqual(len(line), columns)
        self.assertIn("list-stopped  ", LAB.box("list", env={"COLUMNS": 60}).stdout)

    def test_asks_at_most_twice(self):
        self.assertLessEqual(relayed.count(LAB, "list"), 2)
        self.assertLessEqual(relayed.count(LAB, "list", "--json"), 2)

    def test_a_daemon_that_fails_it_is_told(self):
        for action in ("cut", "error", "stop"):
            for k in (1, 2):
                with relayed.Relay(LAB, k, action) as relay:
                    done = relay.box("list")
                if done.returncode != 0:
                    self.assertEqual((done.returncode, done.stdout), (1, ""), (k, action))
                    self.assertRegex(done.stderr, "^box: ")

    def test_points_at_info(self):
        done = LAB.box("list", "list-runs")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("box info list-runs", done.stderr)

    def test_marks_what_is_incomplete_or_off_the_contract(self):
        BOXES.make("list-half", "user.box.state=minting")
        BOXES.make("list-failed", "user.box.state=failed", "user.box.reason=it did not answer")
        BOXES.make("list-off", "security.privileged=true")
        self.addCleanup(LAB.remove_boxes, "list-half")
        self.addCleanup(LAB.remove_boxes, "list-failed")
        self.addCleanup(LAB.remove_boxes, "list-off")
        lines = {line.split()[0]: line for line in LAB.box("list").stdout.splitlines()}
        self.assertTrue(lines["list-half"].endswith("incomplete: minting"))
        self.assertTrue(lines["list-failed"].endswith("incomplete: failed"))
        self.assertTrue(lines["list-off"].endswith("off the contract"))
        self.assertNotIn("contract", lines["list-runs"])
        rows = listed()
        self.assertEqual((rows["list-failed"]["incomplete"], rows["list-failed"]["reason"]), ("failed", "it did not answer"))
        self.assertEqual(len(rows["list-off"]["deviations"]), 1)
        self.assertIn("security.privileged", rows["list-off"]["deviations"][0])

    def test_nothing_raw_reaches_the_terminal(self):
        config("list-stopped", "user.box.template=\x1b[31mred\x07")
        self.addCleanup(config, "list-stopped", "user.box.template=blank")
        done = LAB.box("list")
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\x07", done.stdout)

    def test_never_fails_because_a_box_goes_meanwhile(self):
        ended = threading.Event()

        def come_and_go():
            while not ended.is_set():
                LAB.run(["incus", "init", tinybox.ALIAS, "list-fleeting", "-p", "box-net", "-c", "user.box=1"])
                LAB.run(["incus", "delete", "--force", "list-fleeting"])

        thread = threading.Thread(target=come_and_go)
        thread.start()
        try:
            seen = []
            for _ in range(60):
                done = LAB.box("list", "--json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                names = [row["name"] for row in json.loads(done.stdout)]
                self.assertIn("list-runs", names)
                seen.append("list-fleeting" in names)
        finally:
            ended.set()
            thread.join()
            LAB.remove_boxes("list-fleeting")
        self.assertIn(True, seen)


if __name__ == "__main__":
    unittest.main()
