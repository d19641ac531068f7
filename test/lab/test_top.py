"""`box top`: numbers that agree with the daemon's, in place on a terminal, plain elsewhere. Against a real daemon in the lab."""
import json
import os
import re
import signal
import unittest

import daily
import harness
from session import Session

LAB = harness.Lab()
BOX, IDLE = "top-box", "top-idle"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("top-")
    for name in (BOX, IDLE):
        daily.launch_plain(LAB, name)
    LAB.must(["incus", "launch", harness.IMAGE, "top-foreign", "-p", "box-net"], timeout=120)
    LAB.must(["incus", "stop", "--force", IDLE])


def tearDownModule():
    LAB.remove_boxes("top-")


class Top(unittest.TestCase):
    def test_shows_running_boxes_and_nothing_else(self):
        done = LAB.box("top")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^NAME +CPU +TIME +MEMORY +PROCESSES +NET IN +NET OUT +DISK READ +DISK WRITTEN$")
        names = [line.split()[0] for line in lines[1:]]
        self.assertIn(BOX, names)
        self.assertFalse({IDLE, "top-foreign"} & set(names))
        self.assertNotIn("\x1b", done.stdout)

    def test_numbers_agree_with_the_daemons(self):
        done = LAB.box("top", "--json")
        row = next(row for row in json.loads(done.stdout) if row["name"] == BOX)
        self.assertEqual(set(row), {"name", "cpu_seconds", "memory_used", "memory_total", "processes", "network_in",
                                    "network_out", "disk_read", "disk_written"})
        state = LAB.query(f"/1.0/instances/{BOX}/state")
        counters = state["network"]["eth0"]["counters"]
        self.assertLessEqual(row["network_in"], counters["bytes_received"])
        self.assertLessEqual(row["network_out"], counters["bytes_sent"])
        self.assertGreater(row["network_out"], 0)
        self.assertGreater(row["processes"], 0)
        if row["memory_used"] is not None:
            self.assertLessEqual(row["memory_used"], row["memory_total"])

    def test_is_renewed_in_place_on_a_terminal_until_ctrl_c(self):
        session = Session(LAB, harness.binary(), "top", "--interval", "1", columns=90)
        for _ in range(2):
            session.wait_for(rf"\x1b\[H\x1b\[2JNAME[^\x1b]*{BOX}[^\x1b]*every 1 s; Ctrl-C ends")
        session.type("\x03")
        self.assertEqual(session.finish(), (0, True))

    def test_once_on_a_terminal_and_no_line_is_wider_than_it(self):
        session = Session(LAB, harness.binary(), "top", "--once", columns=60)
        self.assertEqual(session.finish(), (0, True))
        self.assertIn(BOX, session.seen)
        self.assertLessEqual(max(len(line) for line in re.split("[\r\n]+", session.seen)), 60)

    def test_a_signal_ends_it(self):
        child = Session(LAB, harness.binary(), "top")
        child.wait_for("Ctrl-C ends")
        os.kill(child.pid, signal.SIGTERM)
        status, sane = child.finish()
        self.assertTrue(sane)
        self.assertEqual(status, 0)


if __name__ == "__main__":
    unittest.main()
