"""The network that a host is in: one that blocks the pinned resolvers, has IPv6 alone, or is narrower than usual. Set-up and
doctor say so and what helps, and say nothing where it is not so.
"""

import json
import unittest

import harness
import tinybox

LAB = harness.Lab("uplink")
BOXES = tinybox.Boxes(LAB)
BLOCK = "table inet block {\n chain out {\n type filter hook output priority 0;\n ip daddr { 1.1.1.1, 8.8.8.8 } udp dport 53 drop\n }\n}\n"


def setUpModule():
    LAB.up()
    setup()
    BOXES.prepare()


def setup():
    return LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], timeout=120).stderr


def broken():
    done = LAB.box("doctor", "--json", timeout=120)
    found = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"] if finding["finding"] != "ok"}
    if bool(found) == (done.returncode == 0):
        raise AssertionError(done.stdout)
    return found


def differing():
    done = LAB.must([harness.binary(), "setup-host", "--dry-run", "--json"])
    return [(change["item"], change["want"]) for change in json.loads(done.stdout)["changes"]]


class Uplink(unittest.TestCase):
    def setUp(self):
        told = setup()
        self.assertIn("nothing to change", told)
        self.assertNotIn("warning", told)
        self.assertEqual(broken(), {})

    def mtu(self, box):
        return BOXES.shell(box, "cat /sys/class/net/eth0/mtu").stdout.strip()

    def test_narrower_than_usual(self):
        self.addCleanup(LAB.must, ["incus", "network", "unset", "boxnet", "bridge.mtu"])
        self.addCleanup(LAB.must, ["ip", "link", "set", "eth0", "mtu", "1500"])
        LAB.must(["ip", "link", "set", "eth0", "mtu", "1400"])
        found = broken()
        self.assertEqual(set(found), {"network boxnet"})
        self.assertIn("uplink is that narrow", found["network boxnet"]["text"])
        self.assertEqual(differing(), [("bridge.mtu", "1400")])
        self.assertEqual(LAB.box("doctor", "--fix", timeout=120).returncode, 0)
        BOXES.launch("narrow")
        self.addCleanup(BOXES.remove, "narrow")
        self.assertTrue(any(BOXES.dhcp("narrow") for _ in range(5)))
        self.assertEqual(self.mtu("narrow"), "1400")
        self.assertEqual(BOXES.connect("narrow", "93.184.215.14"), "answered")
        LAB.must(["ip", "link", "set", "eth0", "mtu", "1500"])
        self.assertEqual(differing(), [], "it is never made wider again: each change reaches every box")
        self.assertEqual(broken(), {})

    def test_that_blocks_the_resolvers(self):
        self.addCleanup(LAB.must, ["nft", "delete", "table", "inet", "block"])
        LAB.must(["nft", "-f", "-"], input=BLOCK)
        self.assertIn("(1.1.1.1 8.8.8.8) do not answer this host", setup())
        found = broken()
        self.assertEqual(set(found), {"upstream"})
        self.assertIn("BOX_DNS=", found["upstream"]["fix"])
        self.assertEqual(differing(), [], "it is the host's network, not the stack")

    def test_with_ipv6_alone(self):
        route = LAB.must(["ip", "-4", "route", "show", "default"]).stdout.split()
        self.assertIn("default", LAB.must(["ip", "-6", "route", "show", "default"]).stdout)
        self.addCleanup(LAB.must, ["ip", "route", "replace", *route])
        LAB.must(["ip", "route", "delete", "default"])
        self.assertIn("IPv6 only", setup())
        found = broken()
        self.assertEqual(set(found), {"route", "upstream"}, "what boxes need, and what follows from it")
        self.assertIn("IPv6 only", found["route"]["text"])
        self.assertTrue(found["route"]["fix"])

    def test_with_no_way_out_at_all(self):
        routes = {family: LAB.must(["ip", family, "route", "show", "default"]).stdout.split() for family in ("-4", "-6")}
        for family, route in routes.items():
            self.addCleanup(LAB.must, ["ip", family, "route", "replace", *route])
            LAB.must(["ip", family, "route", "delete", "default"])
        self.assertIn("no default route", setup())
        self.assertIn("no default route", broken()["route"]["text"])


if __name__ == "__main__":
    unittest.main()
