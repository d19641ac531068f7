"""setup-host from the table: from nothing to a stack, a second run that changes nothing, a dry run that names exactly the
damage that was done, foreign objects left alone, a run killed anywhere and finished by the next.
"""

import json
import time
import unittest

import harness
import killing

LAB = harness.Lab("stack")
SETUP = ("setup-host", "--pool-size", "2GiB")


def setUpModule():
    LAB.up()


def tearDownModule():
    LAB.remove_boxes()


def dry_run(**options):
    done = LAB.box("setup-host", "--dry-run", "--json", **options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [(change["object"], change["item"]) for change in json.loads(done.stdout)["changes"]]


def setup(*more, env=None):
    done = LAB.box(*SETUP, "--json", *more, env=env, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def bare():
    """Nothing of the stack: what a host is before its first setup-host. The commands' own words do not matter."""
    LAB.remove_boxes()
    pid = json.loads(LAB.box("firewall", "show", "--json").stdout)["watcher"]
    if pid:
        LAB.must(["kill", "-9", str(pid)])
        while json.loads(LAB.box("firewall", "show", "--json").stdout)["watcher"]:
            time.sleep(0.01)
    for words in (["profile", "delete", "box-net"], ["network", "delete", "boxnet"],
                  ["network", "acl", "delete", "box-isolate"]):
        LAB.run(["incus", *words])
    for image in LAB.query("/1.0/images?recursion=1") or []:
        LAB.run(["incus", "image", "delete", image["fingerprint"]])
    LAB.run(["incus", "storage", "delete", "default"])
    LAB.run(["nft", "flush", "ruleset"])
    LAB.run(["ip", "link", "delete", "boxnet"])
    LAB.must(["sysctl", "-qw", "net.ipv4.ip_forward=0", "fs.inotify.max_user_instances=128"])


def facts():
    """Everything that a second run must not touch."""
    state = [LAB.query(path) for path in ("/1.0/networks/boxnet", "/1.0/network-acls/box-isolate",
                                          "/1.0/profiles/box-net", "/1.0/storage-pools/default")]
    return json.dumps(state, sort_keys=True), LAB.must(["nft", "-a", "list", "ruleset"]).stdout


class FromNothing(unittest.TestCase):
    def setUp(self):
        bare()

    def test_setup_and_again(self):
        begun = time.monotonic()
        report = setup()
        took = time.monotonic() - begun
        self.assertTrue(report["changes"])
        self.assertTrue(all(change["done"] for change in report["changes"]))
        self.assertEqual(report["subnet"], "10.88.0.0/24")
        before = facts()
        begun = time.monotonic()
        done = LAB.box(*SETUP)
        again = time.monotonic() - begun
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing to change", done.stderr)
        self.assertEqual(facts(), before)
        self.assertEqual(dry_run(), [])
        print("from nothing %.2f s, again %.2f s" % (took, again))

    def test_dry_run_changes_nothing(self):
        wanted = {name for name, _ in dry_run()}
        self.assertEqual(wanted, {"watcher", "nft tables box", "forwarding", "inotify instances", "pool default", "ACL box-isolate", "network boxnet",
                                  "profile box-net"})
        self.assertIsNone(LAB.query("/1.0/networks/boxnet") if LAB.run(
            ["incus", "network", "show", "boxnet"]).returncode == 0 else None)
        self.assertNotIn("table inet box", LAB.must(["nft", "list", "tables"]).stdout)

    def test_killed_anywhere_converges(self):
        killed = []
        for line in killing.each_line(LAB, [harness.binary(), *SETUP], bare, stride=2):
            with self.subTest(line=line):
                killed.append(line)
                setup()
                self.assertEqual(dry_run(), [])
        self.assertGreater(len(killed), 5)
        self.assertEqual(dry_run(), [], "the last one was let run")
        print("set-up killed at %d places" % len(killed))

    def test_walls_stand_before_the_bridge_appears(self):
        setup()
        log = LAB.must(["cat", "/run/box/firewall.log"]).stdout
        self.assertLess(log.index("no address yet: nothing passes"), log.index("loaded the walls for boxnet (10.88.0.0/24)"))


class Subnets(unittest.TestCase):
    def setUp(self):
        bare()

    def test_claims_are_skipped(self):
        claims = {
            "an address": (["ip", "address", "add", "10.88.0.7/32", "dev", "lo"],
                           ["ip", "address", "delete", "10.88.0.7/32", "dev", "lo"]),
            "a route in another table": (["ip", "route", "add", "10.88.0.0/16", "dev", "eth0", "table", "77"],
                                         ["ip", "route", "delete", "10.88.0.0/16", "dev", "eth0", "table", "77"]),
            "a policy rule": (["ip", "rule", "add", "from", "10.88.0.0/24", "lookup", "main"],
                              ["ip", "rule", "delete", "from", "10.88.0.0/24", "lookup", "main"]),
        }
        for what, (add, remove) in claims.items():
            with self.subTest(claim=what):
                LAB.must(add)
                try:
                    done = LAB.box("setup-host", "--dry-run", "--json")
                    self.assertEqual(json.loads(done.stdout)["subnet"], "10.89.0.0/24")
                    pinned = LAB.box("setup-host", env={"BOX_SUBNET": "10.88.0.0/24"})
                    self.assertEqual(pinned.returncode, 2)
                    self.assertIn("in use on this host", pinned.stderr)
                finally:
                    LAB.must(remove)
        self.assertEqual({name for name, _ in dry_run()} & {"network boxnet"}, {"network boxnet"}, "nothing was touched")

    def test_pin_is_honoured_and_kept(self):
        report = setup(env={"BOX_SUBNET": "172.31.99.0/24", "BOX_DNS": "9.9.9.9"})
        self.assertEqual(report["subnet"], "172.31.99.0/24")
        config = LAB.query("/1.0/networks/boxnet")["config"]
        self.assertEqual(config["ipv4.address"], "172.31.99.1/24")
        self.assertIn("server=9.9.9.9\n", config["raw.dnsmasq"])
        self.assertIn("172.31.99.0/24", LAB.must(["nft", "list", "table", "inet", "box"]).stdout)
        self.assertEqual(json.loads(LAB.box("setup-host", "--dry-run", "--json").stdout)["subnet"], "172.31.99.0/24")
        other = LAB.box("setup-host", env={"BOX_SUBNET": "10.88.0.0/24"})
        self.assertEqual(other.returncode, 2)
        self.assertIn("never re-addressed", other.stderr)

    def test_bad_settings_are_refused_before_anything_is_touched(self):
        for env in ({"BOX_SUBNET": "10.88.0.1/24"}, {"BOX_SUBNET": "8.8.8.0/24"}, {"BOX_SUBNET": "x"},
                    {"BOX_DNS": "1.1.1.1\naddn-hosts=/etc/shadow"}, {"BOX_DNS": "dns.example"}, {"BOX_DNS": " , "}):
            with self.subTest(env=env):
                done = LAB.box(*SETUP, env=env)
                self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(LAB.box("setup-host", "--pool-size", "12").returncode, 2)
        self.assertNotIn("table inet box", LAB.must(["nft", "list", "tables"]).stdout)


class Foreign(unittest.TestCase):
    def setUp(self):
        bare()

    def refused(self, word):
        before = LAB.must(["nft", "list", "ruleset"]).stdout
        done = LAB.box(*SETUP)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(word, done.stderr)
        self.assertEqual(LAB.must(["nft", "list", "ruleset"]).stdout, before, "nothing was touched")

    def test_foreign_bridge(self):
        LAB.must(["ip", "link", "add", "boxnet", "type", "bridge"])
        try:
            self.refused("an interface boxnet exists that the daemon does not manage")
        finally:
            LAB.must(["ip", "link", "delete", "boxnet"])

    def test_foreign_acl_and_profile_and_network(self):
        for make, name in ((["network", "acl", "create", "box-isolate"], "ACL box-isolate"),
                           (["profile", "create", "box-net"], "profile box-net"),
                           (["network", "create", "boxnet", "ipv4.address=10.90.0.1/24", "ipv6.address=none"],
                            "network boxnet")):
            with self.subTest(name=name):
                bare()
                LAB.must(["incus", *make])
                self.refused(name + " exists and was not made by box")


def network(*settings):
    return [["incus", "network", "set", "boxnet", *settings]]


def profile(*words):
    return [["incus", "profile", *words]]


def nft(*words):
    return [["nft", *words]]


# What is done, and exactly what the dry run must then say.
DAMAGES = [
    ("names of siblings resolve", network("dns.mode=managed"), [("network boxnet", "dns.mode")]),
    ("the host's resolver answers", network("raw.dnsmasq="), [("network boxnet", "raw.dnsmasq")]),
    ("NAT off", network("ipv4.nat=false"), [("network boxnet", "ipv4.nat"), ("service of boxnet", "NAT rule")]),
    ("IPv6 on", network("ipv6.address=fd42:1:2:3::1/64"), [("network boxnet", "ipv6.address"),
                                                           ("kernel parameters of boxnet", "disable_ipv6")]),
    ("the ACL detached", network("security.acls="), [("network boxnet", "security.acls"),
                                                     ("service of boxnet", "ACL rules")]),
    ("egress dropped", network("security.acls.default.egress.action=drop"),
     [("network boxnet", "security.acls.default.egress.action")]),
    ("ingress allowed", network("security.acls.default.ingress.action=allow"),
     [("network boxnet", "security.acls.default.ingress.action")]),
    ("routes added", network("ipv4.routes=198.51.100.0/24"), [("network boxnet", "ipv4.routes")]),
    ("DHCP off", network("ipv4.dhcp=false"), [("network boxnet", "ipv4.dhcp"), ("service of boxnet", "dnsmasq")]),
    ("an ACL rule missing", [["incus", "network", "acl", "rule", "remove", "box-isolate", "egress",
                              "destination=100.64.0.0/10"]], [("ACL box-isolate", "egress rule")]),
    ("an ACL rule added", [["incus", "network", "acl", "rule", "add", "box-isolate", "egress", "action=allow",
                            "destination=192.168.50.20/32"]], [("ACL box-isolate", "egress rule")]),
    ("the carve-out is another's", [["incus", "network", "acl", "rule", "remove", "box-isolate", "ingress", "--force"],
                                    ["incus", "network", "acl", "rule", "add", "box-isolate", "ingress",
                                     "action=allow", "source=10.99.0.1"]],
     [("ACL box-isolate", "ingress rule"), ("ACL box-isolate", "ingress rule")]),
    ("port isolation off", profile("device", "set", "box-net", "eth0", "security.port_isolation=false"),
     [("profile box-net", "eth0 security.port_isolation")]),
    ("MAC filter off", profile("device", "set", "box-net", "eth0", "security.mac_filtering=false"),
     [("profile box-net", "eth0 security.mac_filtering")]),
    ("address filter off", profile("device", "unset", "box-net", "eth0", "security.ipv4_filtering"),
     [("profile box-net", "eth0 security.ipv4_filtering")]),
    ("a host path in every box", profile("device", "add", "box-net", "leak", "disk", "source=/etc", "path=/mnt"),
     [("profile box-net", "leak path"), ("profile box-net", "leak source"), ("profile box-net", "leak type")]),
    ("every box privileged", profile("set", "box-net", "security.privileged=true"),
     [("profile box-net", "security.privileged")]),
    ("the profile gone", profile("delete", "box-net"), [("profile box-net", "profile")]),
    ("ARP for every address", [["sysctl", "-qw", "net.ipv4.conf.boxnet.arp_ignore=0"]],
     [("kernel parameters of boxnet", "arp_ignore")]),
    ("loopback routed", [["sysctl", "-qw", "net.ipv4.conf.boxnet.route_localnet=1"]],
     [("kernel parameters of boxnet", "route_localnet")]),
    ("IPv6 on in the kernel", [["sysctl", "-qw", "net.ipv6.conf.boxnet.disable_ipv6=0"]],
     [("kernel parameters of boxnet", "disable_ipv6")]),
    ("router advertisements heard", [["sysctl", "-qw", "net.ipv6.conf.boxnet.accept_ra=2"]],
     [("kernel parameters of boxnet", "accept_ra")]),
    ("reserved frames learnt", [["ip", "link", "set", "boxnet", "type", "bridge", "no_linklocal_learn", "0"]],
     [("kernel parameters of boxnet", "no_linklocal_learn")]),
    ("forwarding off", [["sysctl", "-qw", "net.ipv4.ip_forward=0"]], [("forwarding", "ip_forward")]),
    ("forwarding off for boxes", [["sysctl", "-qw", "net.ipv4.conf.boxnet.forwarding=0"]],
     [("forwarding", "forwarding of boxnet")]),
    ("few inotify instances", [["sysctl", "-qw", "fs.inotify.max_user_instances=128"]],
     [("inotify instances", "max_user_instances")]),
    ("inotify instances until the next boot", [["rm", "/etc/sysctl.d/60-box.conf"]],
     [("inotify instances", "/etc/sysctl.d/60-box.conf")]),
    ("another firewall drops", nft("add table ip filter; add chain ip filter FORWARD "
                                   "{ type filter hook forward priority 0; policy drop; }"),
     [("other firewalls", "chain FORWARD of ip filter")]),
    ("a table gone", nft("delete", "table", "arp", "box"), [("nft tables box", "rules")]),
    ("a rule gone", nft("flush", "chain", "inet", "box", "forward"), [("nft tables box", "rules")]),
    ("a rule too many", nft("insert", "rule", "inet", "box", "input", "accept"), [("nft tables box", "rules")]),
    ("a foreign uplink", nft("add", "element", "inet", "box", "uplink", '{ "eth1" . 192.168.50.1 }'),
     [("nft tables box", "rules")]),
    ("the ruleset flushed", nft("flush", "ruleset"), [("nft tables box", "rules"), ("service of boxnet", "ACL rules"),
                                                      ("service of boxnet", "NAT rule")]),
    ("the address flushed", [["ip", "address", "flush", "dev", "boxnet"]],
     [("nft tables box", "rules"), ("nft tables box", "rules"), ("service of boxnet", "address")]),
    ("the bridge gone", [["ip", "link", "delete", "boxnet"]],
     [("nft tables box", "rules"), ("nft tables box", "rules"), ("service of boxnet", "bridge")]),
]


class Damage(unittest.TestCase):
    """With the watcher held still: it would undo half of these before anybody looks."""

    @classmethod
    def setUpClass(cls):
        bare()
        setup()

    def setUp(self):
        setup()
        self.assertEqual(dry_run(), [])
        self.watcher = json.loads(LAB.box("firewall", "show", "--json").stdout)["watcher"]

    def freeze(self):
        LAB.must(["kill", "-STOP", str(self.watcher)])

    def thaw(self):
        LAB.must(["kill", "-CONT", str(self.watcher)])

    def test_dry_run_names_exactly_the_damage(self):
        for what, commands, expected in DAMAGES:
            with self.subTest(damage=what):
                self.setUp()
                self.freeze()
                try:
                    for command in commands:
                        LAB.must(command)
                    found = dry_run()
                finally:
                    self.thaw()
                self.assertEqual(sorted(found), sorted(expected))
                setup()
                self.assertEqual(dry_run(), [], "it is repaired")

    def test_dnsmasq_killed(self):
        pid = next(words.split()[0] for words in LAB.must(["ps", "axo", "pid,args"]).stdout.splitlines()
                   if "--interface=boxnet" in words)
        LAB.must(["kill", "-9", pid])
        self.assertEqual(dry_run(), [("service of boxnet", "dnsmasq")])
        setup()
        self.assertEqual(dry_run(), [])

    def test_watcher_killed(self):
        LAB.must(["kill", "-9", str(self.watcher)])
        self.assertEqual(dry_run(), [("watcher", "process")])
        setup()
        self.assertEqual(dry_run(), [])


class Pool(unittest.TestCase):
    def test_grows_and_never_shrinks(self):
        bare()
        setup()
        grown = LAB.box("setup-host", "--pool-size", "3GiB", "--json", timeout=120)
        self.assertEqual([change["item"] for change in json.loads(grown.stdout)["changes"]], ["size"], grown.stderr)
        self.assertGreater(LAB.query("/1.0/storage-pools/default/resources")["space"]["total"], 2.9 * 2 ** 30)
        smaller = LAB.box("setup-host", "--pool-size", "1GiB", timeout=120)
        self.assertEqual(smaller.returncode, 0, smaller.stderr)
        self.assertIn("never made smaller", smaller.stderr)
        self.assertGreater(LAB.query("/1.0/storage-pools/default/resources")["space"]["total"], 2.9 * 2 ** 30)


class Refusals(unittest.TestCase):
    def test_only_root(self):
        done = LAB.run(["setpriv", "--reuid", "65534", "--clear-groups", harness.binary(), "setup-host"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("sudo", done.stderr)


if __name__ == "__main__":
    unittest.main()
