"""`box snapshot`, `restore` and `rename`: the disk goes back, what box put on the instance stays. A real daemon in the lab."""
import json
import unittest

import harness
import relayed
import tinybox
from session import Session

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "snap-"


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def instance(name):
    return LAB.query("/1.0/instances/" + name)


def labels(name):
    return [path.rsplit("/", 1)[1] for path in LAB.query(f"/1.0/instances/{name}/snapshots") or []]


class Labels(unittest.TestCase):
    def test_the_rule_is_told_before_any_request(self):
        with relayed.Relay(LAB) as relay:
            for label in ("../x", ".", "..", "-x", "a b", "a/b", "", "ä", "x" * 64, "a\nb"):
                for command in (("snapshot",), ("restore",), ("snapshot", "rm")):
                    done = relay.box(*command, "snap-a", "--", label)
                    self.assertEqual(done.returncode, 2, (command, label, done.stderr))
                    self.assertIn("1 to 63 letters, digits and . _ -", done.stderr)
            self.assertEqual(relay.requests(), [])

    def test_every_allowed_label_goes_the_whole_way(self):
        BOXES.make("snap-l")
        for label in ("a", "x" * 63, "1.2_3-4", "Z..", "0"):
            self.assertEqual(LAB.box("snapshot", "snap-l", label).stdout, label + "\n")
            self.assertEqual(LAB.box("restore", "snap-l", label, "--force").returncode, 0)
            self.assertIn(label, labels("snap-l"))
            self.assertEqual(LAB.box("snapshot", "rm", "snap-l", label, "-f").returncode, 0)
        self.assertEqual(labels("snap-l"), [])

    def test_pristine_is_kept_for_the_mint(self):
        self.assertEqual(LAB.box("snapshot", "snap-a", "pristine").returncode, 2)


class Taking(unittest.TestCase):
    def setUp(self):
        BOXES.make("snap-a")
        self.addCleanup(LAB.remove_boxes, "snap-a")

    def test_without_a_label_it_is_the_time(self):
        done = LAB.box("snapshot", "snap-a")
        self.assertRegex(done.stdout, r"^\d{8}-\d{6}\n$")
        self.assertEqual(labels("snap-a"), [done.stdout.strip()])

    def test_a_label_is_taken_once(self):
        self.assertEqual(LAB.box("snapshot", "snap-a", "one").returncode, 0)
        again = LAB.box("snapshot", "snap-a", "one")
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("has a snapshot one already", again.stderr)

    def test_what_is_no_box_has_none(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "snap-foreign", "-p", "box-net"])
        for command in (("snapshot", "snap-foreign", "x"), ("restore", "snap-foreign", "x", "-f"),
                        ("snapshot", "rm", "snap-foreign", "x", "-f"), ("rename", "snap-foreign", "snap-b")):
            done = LAB.box(*command)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no such box: snap-foreign", done.stderr)
        self.assertEqual(labels("snap-foreign"), [])

    def test_removing_asks_and_names_what_is_missing(self):
        LAB.box("snapshot", "snap-a", "one")
        self.assertEqual(LAB.box("snapshot", "rm", "snap-a", "one").returncode, 2)
        missing = LAB.box("snapshot", "rm", "snap-a", "two", "-f")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("has no snapshot two", missing.stderr)
        self.assertEqual(labels("snap-a"), ["one"])


class Restoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        BOXES.launch("snap-r")

    def setUp(self):
        LAB.must(["incus", "config", "set", "snap-r", "user.box.template=then", "limits.memory=1GiB", "environment.WHEN=then"])
        for name in labels("snap-r"):
            LAB.must(["incus", "snapshot", "delete", "snap-r", name])

    def restore(self, label, status=0):
        done = LAB.box("restore", "snap-r", label, "--force")
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_the_disk_goes_back_and_the_box_runs_again(self):
        BOXES.shell("snap-r", "echo then > /root/f")
        LAB.box("snapshot", "snap-r", "then")
        BOXES.shell("snap-r", "echo now > /root/f; touch /root/g")
        self.restore("then")
        self.assertEqual(BOXES.shell("snap-r", "cat /root/f; ls /root").stdout, "then\nf\n")

    def test_stamp_limits_and_devices_stay_and_the_rest_goes_back(self):
        LAB.must(["incus", "config", "device", "add", "snap-r", "door-8081", "proxy", "listen=tcp:127.0.0.1:8081",
                  "connect=tcp:127.0.0.1:80"])
        LAB.box("snapshot", "snap-r", "then")
        LAB.must(["incus", "config", "device", "remove", "snap-r", "door-8081"])
        LAB.must(["incus", "config", "device", "add", "snap-r", "door-8082", "proxy", "listen=tcp:127.0.0.1:8082",
                  "connect=tcp:127.0.0.1:80"])
        LAB.must(["incus", "config", "set", "snap-r", "user.box.template=now", "limits.memory=2GiB", "environment.WHEN=now"])
        mac = instance("snap-r")["config"]["volatile.eth0.hwaddr"]
        told = self.restore("then")
        now = instance("snap-r")
        self.assertEqual([now["config"][key] for key in ("user.box", "user.box.template", "limits.memory", "environment.WHEN",
                                                         "volatile.eth0.hwaddr")], ["1", "now", "2GiB", "then", mac])
        self.assertEqual(set(now["devices"]), {"door-8082"})
        for line in ("limits.memory=2GiB", "device door-8082", "device door-8081"):
            self.assertIn(line, told)
        LAB.must(["incus", "config", "device", "remove", "snap-r", "door-8082"])

    def test_what_a_snapshot_brings_off_the_contract_is_taken_away_before_it_starts(self):
        LAB.must(["incus", "stop", "-f", "snap-r"])
        LAB.must(["incus", "config", "set", "snap-r", "security.privileged=true", "raw.lxc=lxc.uts.name=x"])
        LAB.must(["incus", "config", "device", "add", "snap-r", "etc", "disk", "source=/etc", "path=/mnt"])
        LAB.must(["incus", "snapshot", "create", "snap-r", "bad"])
        LAB.must(["incus", "config", "device", "remove", "snap-r", "etc"])
        LAB.must(["incus", "config", "unset", "snap-r", "raw.lxc"])
        LAB.must(["incus", "config", "unset", "snap-r", "security.privileged"])
        LAB.must(["incus", "start", "snap-r"])
        told = self.restore("bad")
        now = instance("snap-r")
        self.assertEqual(now["status"], "Running")
        self.assertFalse({"security.privileged", "raw.lxc"} & set(now["config"]))
        self.assertEqual(now["devices"], {})
        for word in ("security.privileged", "raw.lxc"):
            self.assertIn("off the contract: " + word, told)

    def test_a_snapshot_of_what_was_no_box_is_refused(self):
        LAB.must(["incus", "config", "unset", "snap-r", "user.box"])
        LAB.must(["incus", "snapshot", "create", "snap-r", "foreign"])
        LAB.must(["incus", "config", "set", "snap-r", "user.box=1"])
        self.assertIn("was no box", self.restore("foreign", 1))
        self.assertEqual(instance("snap-r")["status"], "Running")

    def test_asks_in_its_own_words(self):
        LAB.box("snapshot", "snap-r", "then")
        self.assertEqual(LAB.box("restore", "snap-r", "then").returncode, 2)
        session = Session(LAB, harness.binary(), "restore", "snap-r", "then")
        session.wait_for(r"Throw away all that was done in snap-r since its snapshot then")
        session.type("n\n")
        self.assertEqual(session.finish()[0], 1)
        self.assertIn("aborted", session.seen)

    def test_every_request_spoiled_leaves_a_box_that_can_be_restored(self):
        """Of a stopped one: starting and stopping have tests of their own."""
        BOXES.make("snap-k")
        LAB.must(["incus", "file", "push", "-", "snap-k/root/f"], input="then")
        LAB.box("snapshot", "snap-k", "then")
        count = relayed.count(LAB, "restore", "snap-k", "then", "--force")
        self.assertGreaterEqual(count, 4)
        for action in ("cut", "lose", "killed"):
            for k in range(1, count + 1):
                with relayed.Relay(LAB, k, action) as relay:
                    relay.box("restore", "snap-k", "then", "--force")
                self.assertEqual(instance("snap-k")["config"]["user.box"], "1", (action, k))
                again = LAB.box("restore", "snap-k", "then", "--force")
                self.assertEqual(again.returncode, 0, (action, k, again.stderr))
        self.assertEqual(LAB.must(["incus", "file", "pull", "snap-k/root/f", "-"]).stdout, "then")


class Renaming(unittest.TestCase):
    def setUp(self):
        BOXES.make("snap-n", "user.box.template=x")
        self.addCleanup(LAB.remove_boxes, "snap-n")
        self.addCleanup(LAB.remove_boxes, "snap-m")

    def test_snapshots_stamp_and_mac_follow(self):
        LAB.box("snapshot", "snap-n", "one")
        before = instance("snap-n")["config"]
        done = LAB.box("rename", "snap-n", "snap-m")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(labels("snap-m"), ["one"])
        after = instance("snap-m")["config"]
        for key in ("user.box", "user.box.template", "volatile.eth0.hwaddr"):
            self.assertEqual(after[key], before[key])
        self.assertIn("no such box", LAB.box("info", "snap-n").stderr)

    def test_a_running_one_is_refused_with_the_remedy(self):
        LAB.must(["incus", "start", "snap-n"])
        done = LAB.box("rename", "snap-n", "snap-m")
        self.assertEqual(done.returncode, 1)
        self.assertIn("box down snap-n", done.stderr)
        self.assertEqual(instance("snap-n")["status"], "Running")

    def test_bad_and_taken_names(self):
        with relayed.Relay(LAB) as relay:
            self.assertEqual(relay.box("rename", "snap-n", "-bad-").returncode, 2)
            self.assertEqual(relay.box("rename", "snap-n", "a_b").returncode, 2)
            self.assertEqual(relay.requests(), [])
        BOXES.make("snap-m")
        done = LAB.box("rename", "snap-n", "snap-m")
        self.assertEqual(done.returncode, 1)
        self.assertIn("taken", done.stderr)
        self.assertEqual(json.loads(LAB.box("info", "snap-n", "--json").stdout)["name"], "snap-n")


if __name__ == "__main__":
    unittest.main()
