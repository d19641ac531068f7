"""`box info`: what it says of one box, and each way in which a box can be off the contract. A real daemon in the lab."""
import json
import unittest

import harness
import relayed
import tinybox

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "info-"
TEXT = (str, type(None))
KEYS = {"name": str, "state": str, "type": str, "ipv4": TEXT, "template": TEXT, "user": TEXT, "created": TEXT,
        "older": bool, "incomplete": TEXT, "reason": TEXT, "deviations": list, "home": TEXT, "mac": TEXT, "image": dict,
        "version": TEXT, "origin": TEXT, "limits": dict, "autostart": bool, "armed": (bool, type(None)), "port": TEXT,
        "mode": TEXT, "imported": (dict, type(None)), "snapshots": list, "login": TEXT}


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def info(name):
    done = LAB.box("info", name, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Info(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        BOXES.launch("info-runs")
        cls.address = BOXES.dhcp("info-runs")
        BOXES.make("info-full", "user.box.template=blank", "user.box.user=dev", "user.box.home=/home/dev", "user.box.image=debian/13",
                   "user.box.fingerprint=0123456789abcdef", "user.box.version=0.1.0", "user.box.origin=mint",
                   "user.box.created=2026-01-02T03:04:05Z", "limits.cpu=2", "limits.memory=2GiB", "boot.autostart=true")

    def test_the_shape_stays(self):
        for name in ("info-runs", "info-full"):
            told = info(name)
            self.assertEqual(set(told), set(KEYS))
            for key, kind in KEYS.items():
                self.assertIsInstance(told[key], kind, key)
            self.assertEqual(set(told["image"]), {"alias", "fingerprint"})
            self.assertEqual(set(told["limits"]), {"cpu", "memory", "disk"})

    def test_tells_how_old_a_snapshot_is(self):
        LAB.must(["incus", "snapshot", "create", "info-full", "fresh"])
        try:
            done = LAB.box("info", "info-full")
        finally:
            LAB.must(["incus", "snapshot", "delete", "info-full", "fresh"])
        self.assertRegex(done.stdout, r"fresh \((just taken|\d+[smh] old)\)")

    def test_tells_what_is_stamped(self):
        told = info("info-full")
        self.assertEqual((told["template"], told["user"], told["home"]), ("blank", "dev", "/home/dev"))
        self.assertEqual(told["image"], {"alias": "debian/13", "fingerprint": "0123456789abcdef"})
        self.assertEqual(told["limits"], {"cpu": "2", "memory": "2GiB", "disk": None})
        self.assertEqual((told["version"], told["origin"], told["autostart"]), ("0.1.0", "mint", True))
        self.assertEqual(told["created"], "2026-01-02T03:04:05Z")
        self.assertIsNone(told["armed"])
        text = LAB.box("info", "info-full").stdout
        for word in ("blank", "debian/13, 0123456789ab", "2 CPU, 2GiB memory", "with the host", "kept", "weaker isolation"):
            self.assertIn(word, text)

    def test_tells_whether_the_walls_let_it_speak(self):
        told = info("info-runs")
        self.assertTrue(told["armed"])
        self.assertEqual(told["ipv4"], self.address)
        self.assertEqual(told["mac"], LAB.query("/1.0/instances/info-runs")["config"]["volatile.eth0.hwaddr"])
        self.assertRegex(LAB.box("info", "info-runs").stdout, r"port +armed")

    def test_an_older_box_and_blanks_where_nothing_is_known(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "info-older", "-p", "box-net", "-c", "user.claudebox=1"])
        told = info("info-older")
        self.assertEqual((told["user"], told["older"], told["template"], told["version"]), ("claude", True, None, None))
        self.assertEqual(LAB.box("info", "info-older").returncode, 0)

    def test_an_incomplete_box_says_why_and_what_to_do(self):
        BOXES.make("info-half", "user.box.state=failed", "user.box.reason=the \x1b[31mguest\x1b[0m said no")
        done = LAB.box("info", "info-half")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "incomplete +failed: the guest said no")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("box rm info-half", done.stderr)

    def test_what_is_no_box_is_no_such_box(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "info-foreign", "-p", "box-net"])
        for name in ("info-foreign", "info-nothing"):
            done = LAB.box("info", name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"no such box: {name}", done.stderr)

    def test_asks_at_most_three_times(self):
        self.assertLessEqual(relayed.count(LAB, "info", "info-runs"), 3)

    def test_a_bad_name_is_refused_before_any_request(self):
        with relayed.Relay(LAB) as relay:
            for name in ("-x-", "a/../b", "123", "x" * 64, "a b", "ü"):
                done = relay.box("info", "--", name)
                self.assertEqual((done.returncode, done.stdout), (2, ""), name)
                self.assertIn("1 to 63", done.stderr)
            self.assertEqual(relay.requests(), [])


class Contract(unittest.TestCase):
    """Each deviation as the daemon really stores it, beside unit/test_contract.c which has many more."""

    def setUp(self):
        BOXES.make("info-off")
        self.addCleanup(LAB.remove_boxes, "info-off")

    def assert_off(self, word):
        told = info("info-off")
        self.assertEqual(len(told["deviations"]), 1, told["deviations"])
        self.assertIn(word, told["deviations"][0])
        self.assertIn(told["deviations"][0], LAB.box("info", "info-off").stdout)

    def test_a_fresh_one_keeps_it(self):
        self.assertEqual(info("info-off")["deviations"], [])

    def test_another_profile(self):
        LAB.must(["incus", "profile", "assign", "info-off", "box-net,default"])
        self.assert_off("default")

    def test_a_path_of_the_host(self):
        LAB.must(["incus", "config", "device", "add", "info-off", "data", "disk", "source=/srv", "path=/srv"])
        self.assert_off("data")

    def test_a_second_interface(self):
        LAB.must(["incus", "config", "device", "add", "info-off", "eth1", "nic", "network=boxnet"])
        self.assert_off("eth1")

    def test_filters_overridden(self):
        LAB.must(["incus", "config", "device", "override", "info-off", "eth0", "security.mac_filtering=false"])
        self.assert_off("eth0")

    def test_privilege(self):
        LAB.must(["incus", "config", "set", "info-off", "security.privileged=true"])
        self.assert_off("security.privileged")

    def test_a_raw_key(self):
        LAB.must(["incus", "config", "set", "info-off", "raw.lxc=lxc.apparmor.profile=unconfined"])
        self.assert_off("raw.lxc")

    def test_a_device_of_the_host(self):
        LAB.must(["incus", "config", "device", "add", "info-off", "null", "unix-char", "source=/dev/null"])
        self.assert_off("null")

    def test_a_proxy_and_a_door(self):
        LAB.must(["incus", "config", "device", "add", "info-off", "door-8080", "proxy", "listen=tcp:127.0.0.1:8080",
                  "connect=tcp:127.0.0.1:80", "bind=host"])
        self.assertEqual(info("info-off")["deviations"], [])
        LAB.must(["incus", "config", "device", "add", "info-off", "web", "proxy", "listen=tcp:127.0.0.1:8081",
                  "connect=tcp:127.0.0.1:80", "bind=host"])
        self.assert_off("web")

    def test_nesting_and_limits_are_allowed(self):
        LAB.must(["incus", "config", "set", "info-off", "security.nesting=true", "limits.cpu=1", "boot.autostart=true"])
        LAB.must(["incus", "config", "device", "override", "info-off", "root", "size=1GiB"])
        self.assertEqual(info("info-off")["deviations"], [])
        self.assertEqual(info("info-off")["limits"]["disk"], "1GiB")


if __name__ == "__main__":
    unittest.main()
