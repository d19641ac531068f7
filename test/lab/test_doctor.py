"""doctor against a host that is damaged in one way at a time: it names that damage and no other, what it says repairs it does,
and an attack from a box that worked under the damage fails again.

The whole list takes minutes: BOX_DOCTOR_ALL=1. Without it some of each kind are tried.
"""

import json
import os
import time
import unittest

import harness
import tinybox

LAB = harness.Lab("doctor")
BOXES = tinybox.Boxes(LAB)
ALL = os.environ.get("BOX_DOCTOR_ALL") == "1"
HOST = "45.33.10.2"  # the lab's host on its uplink


def setUpModule():
    LAB.up()
    LAB.remove_boxes()
    LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], timeout=120)
    BOXES.prepare()
    for name in ("a", "b"):
        BOXES.launch(name)
        if not any(BOXES.dhcp(name) for _ in range(5)):
            raise RuntimeError("box %s got no address" % name)


def tearDownModule():
    LAB.remove_boxes()


def doctor(*more, timeout=120):
    done = LAB.box("doctor", "--json", *more, timeout=timeout)
    if not done.stdout:
        raise AssertionError(done.stderr)
    answer = json.loads(done.stdout)
    return done.returncode, answer["findings"], done


def broken(findings):
    return {finding["check"] for finding in findings if finding["finding"] in ("broken", "not set up")}


def watcher():
    return str(json.loads(LAB.box("firewall", "show", "--json").stdout)["watcher"])


def renew(tries=10):
    """A real guest asks for its address again when the daemon has put its interface in anew; these small ones are told."""
    for name in ("a", "b"):
        if not BOXES.shell(name, "ip -4 -o address show dev eth0 | grep global").stdout:
            BOXES.shell(name, "ip link set eth0 up")
            BOXES.dhcp(name, tries=tries)


def port_of(name):
    return BOXES.port(name)


def incus(*words):
    return ["incus", *words]


def network(*settings):
    return incus("network", "set", "boxnet", *settings)


def device(*settings):
    return incus("profile", "device", "set", "box-net", "eth0", *settings)


STILL = "the watcher is held still: it would undo this before anybody looks"
NETWORK, ACL, PROFILE = "network boxnet", "ACL box-isolate", "profile box-net"
TABLES, SERVICE, KERNEL = "nft tables box", "service of boxnet", "kernel parameters of boxnet"
OTHERS = "other firewalls"
DOCKER = """table ip filter {
 chain DOCKER-USER { return; }
 chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; }
}
"""
UFW = """table inet strict {
 chain INPUT { type filter hook input priority 0; policy drop; ct state established,related accept; iifname { "lo", "eth0", "eth1" } accept; }
}
"""

# What is done, what must be found broken, whether the watcher is held still, and how what is not box's own is undone.
DAMAGES = [
    ("names of siblings resolve", [network("dns.mode=managed")], {NETWORK}),
    ("the host's resolver answers", [network("raw.dnsmasq=")], {NETWORK}),
    ("NAT off", [network("ipv4.nat=false")], {NETWORK, SERVICE, "boxes"}),
    ("IPv6 on", [network("ipv6.address=fd42:1:2:3::1/64")], {NETWORK, KERNEL}, STILL),
    ("the ACL detached", [network("security.acls=")], {NETWORK, SERVICE}),
    ("egress dropped", [network("security.acls.default.egress.action=drop")], {NETWORK, "boxes"}),
    ("an ACL rule missing", [incus("network", "acl", "rule", "remove", "box-isolate", "egress",
                                   "destination=100.64.0.0/10")], {ACL}),
    ("an ACL rule added", [incus("network", "acl", "rule", "add", "box-isolate", "egress", "action=allow",
                                 "destination=192.168.50.20/32")], {ACL}),
    ("the carve-out is another's", [incus("network", "acl", "rule", "remove", "box-isolate", "ingress", "--force"),
                                    incus("network", "acl", "rule", "add", "box-isolate", "ingress", "action=allow",
                                          "source=10.99.0.1")], {ACL}),
    ("port isolation off", [device("security.port_isolation=false")], {PROFILE, "contract"}),
    ("filters off", [device("security.mac_filtering=false", "security.ipv4_filtering=false")],
     {PROFILE, "contract", "ports", "boxes"}),
    ("a host path in every box", [incus("profile", "device", "add", "box-net", "leak", "disk", "source=/etc",
                                        "path=/mnt")], {PROFILE, "contract"}),
    ("arp for every address", [["sysctl", "-qw", "net.ipv4.conf.boxnet.arp_ignore=0"]], {KERNEL}, STILL),
    ("loopback routed", [["sysctl", "-qw", "net.ipv4.conf.boxnet.route_localnet=1"]], {KERNEL}, STILL),
    ("IPv6 on in the kernel", [["sysctl", "-qw", "net.ipv6.conf.boxnet.disable_ipv6=0"]], {KERNEL}, STILL),
    ("reserved frames learnt", [["ip", "link", "set", "boxnet", "type", "bridge", "no_linklocal_learn", "0"]], {KERNEL},
     STILL),
    ("a table gone", [["nft", "delete", "table", "arp", "box"]], {TABLES}, STILL),
    ("a rule gone", [["nft", "flush", "chain", "inet", "box", "forward"]], {TABLES}, STILL),
    ("a rule too many", [["nft", "insert", "rule", "inet", "box", "input", "accept"]], {TABLES}, STILL),
    ("a foreign uplink", [["nft", "add", "element", "inet", "box", "uplink", '{ "eth1" . 192.168.50.1 }']], {TABLES}, STILL),
    ("the ruleset flushed", [["nft", "flush", "ruleset"]], {TABLES, SERVICE, "ports", "boxes"}, STILL),
    ("isolation off in the kernel", [["bridge", "link", "set", "dev", port_of, "isolated", "off"]], {TABLES, "ports"}, STILL),
    ("the watcher killed", [["kill the watcher"]], {"watcher"}),
    ("dnsmasq killed", [["kill dnsmasq"]], {SERVICE, "resolver", "boxes"}),
    ("forwarding off", [["sysctl", "-qw", "net.ipv4.ip_forward=0"]], {"forwarding", "boxes"}),
    ("forwarding off for boxes", [["sysctl", "-qw", "net.ipv4.conf.boxnet.forwarding=0"]], {"forwarding", "boxes"}),
    ("a port that a guest left", [["ip", "link", "add", "ghost0", "type", "veth", "peer", "name", "ghost1"],
                                  ["ip", "link", "set", "ghost0", "up", "master", "boxnet"]], {SERVICE, "ports"}),
    ("Docker drops", [["nft", DOCKER]], {OTHERS, "boxes"}, None, [["nft", "delete", "table", "ip", "filter"]]),
    ("a strict firewall", [["nft", UFW]], {OTHERS, "boxes"}, None, [["nft", "delete", "table", "inet", "strict"]]),
    ("leftovers of a drill", [incus("init", tinybox.ALIAS, "drill-x", "--profile", "box-net", "--config", "user.box=1",
                                    "--config", "user.box.drill=1f")], {"drills"}),
    # What is not box's own to repair: the command that doctor gives does it.
    ("a policy route", [["ip", "rule", "add", "from", "10.88.0.0/24", "lookup", "77"]], {"subnet"}, None, "its fix"),
    ("the gateway held locally", [["ip", "address", "add", "10.88.0.1/32", "dev", "lo"]], {"subnet"}, None,
     [["ip", "address", "delete", "10.88.0.1/32", "dev", "lo"]]),
    ("a route that captures", [["ip", "route", "add", "10.88.0.128/25", "dev", "eth1"]], {"subnet"}, None, "its fix"),
    ("a failed mint", [incus("init", tinybox.ALIAS, "half", "--profile", "box-net", "--config", "user.box=1", "--config",
                             "user.box.state=failed")], {"mints"}, None, "its fix"),
    ("a box off the contract", [incus("config", "device", "add", "b", "leak", "disk", "source=/etc", "path=/mnt")],
     {"contract"}, None, [incus("config", "device", "remove", "b", "leak")]),
    ("a stale image", [incus("image", "set-property", tinybox.ALIAS, "box.built", "2020-01-01T00:00:00Z")], {"images"}, None,
     [incus("image", "unset-property", tinybox.ALIAS, "box.built")]),
    ("no ids for containers", [["sed", "-i", "/^root:/d", "/etc/subuid"]], {"ids"}, None,
     [["bash", "-c", "echo root:1000000:1000000000 >> /etc/subuid"]]),
    ("the gateway held inside a box", [incus("exec", "b", "--", "/bin/sh", "-c",
                                             "/bin/busybox ip address add 10.88.0.1/32 dev lo")], {"boxes"}, None,
     [incus("exec", "b", "--", "/bin/sh", "-c", "/bin/busybox ip address delete 10.88.0.1/32 dev lo")]),
]


def kill_watcher():
    pid = watcher()
    if pid == "0":
        raise RuntimeError("no watcher runs")
    LAB.must(["kill", "-9", pid])


def do(command):
    """A step of a damage: a command, with what only the moment knows filled in; or a text for nft."""
    words = [word("a") if callable(word) else word for word in command]
    if words[0] == "nft" and len(words) == 2:
        LAB.must(["nft", "-f", "-"], input=words[1])
    elif words[0] == "kill the watcher":
        kill_watcher()
    elif words[0] == "kill dnsmasq":
        pid = next(line.split()[0] for line in LAB.must(["ps", "axo", "pid,args"]).stdout.splitlines()
                   if "--interface=boxnet" in line)
        LAB.must(["kill", "-9", pid])
    else:
        LAB.must(words)


def whole():
    """The host as it must be before a test, whatever the one before it left."""
    LAB.must([harness.binary(), "setup-host"], timeout=120)
    renew()


class Healthy(unittest.TestCase):
    def setUp(self):
        whole()

    def test_no_false_alarm(self):
        for i in range(20 if ALL else 4):
            with self.subTest(run=i):
                status, findings, done = doctor()
                self.assertEqual(broken(findings), set(), done.stdout)
                self.assertEqual(status, 0)
        self.assertEqual({finding["finding"] for finding in findings}, {"ok"}, findings)

    def test_quick_with_ten_boxes(self):
        names = ["t%d" % i for i in range(8)]
        for name in names:
            BOXES.launch(name)
            self.assertTrue(BOXES.dhcp(name, tries=10))
        try:
            times = []
            for _ in range(3):
                begun = time.monotonic()
                status, findings, done = doctor()
                times.append(time.monotonic() - begun)
                self.assertEqual(status, 0, done.stdout)
            self.assertIn("10 run", str(findings))
            print("doctor with ten boxes: %.2f s" % min(times))
        finally:
            BOXES.remove(*names)

    def test_a_user_sees_what_a_user_can(self):
        """A socket that may not be read is not a broken daemon."""
        done = LAB.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", harness.binary(), "doctor",
                        "--json"])
        findings = {finding["check"]: finding["finding"] for finding in json.loads(done.stdout)["findings"]}
        self.assertEqual(findings["daemon"], "not seen")
        self.assertEqual(findings[TABLES], "not seen")
        self.assertEqual(findings[KERNEL], "ok", "what needs no root is judged")
        fix = LAB.run(["setpriv", "--reuid", "65534", "--clear-groups", harness.binary(), "doctor", "--fix"])
        self.assertEqual(fix.returncode, 1)
        self.assertIn("only root", fix.stderr)

    def test_for_people(self):
        done = LAB.box("doctor")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("this host is healthy", done.stderr)


class Damaged(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        whole()

    def settle(self):
        renew()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            status, findings, _ = doctor()
            if status == 0:
                return
        self.fail("not healthy again: %s" % [f for f in findings if f["finding"] != "ok"])

    def repair(self, undo, findings):
        if undo == "its fix":
            fix = next(finding["fix"] for finding in findings if finding["finding"] == "broken")
            words = fix.replace("sudo ", "").split()
            LAB.must([harness.binary() if word == "box" else word for word in words])
        elif undo:
            for command in undo:
                LAB.must(command)

    def heal(self, expected, undo, findings):
        if undo:
            if expected & {OTHERS}:  # box lets itself through; then the other firewall goes
                LAB.must([harness.binary(), "setup-host"], timeout=120)
                renew()
                self.assertEqual(broken(doctor()[1]), set())
            self.repair(undo, findings)
        elif expected <= {"drills", "watcher", "forwarding", "boxes", ACL}:
            LAB.box("doctor", "--fix", timeout=120)
        else:
            LAB.must([harness.binary(), "setup-host"], timeout=120)

    def hurt(self, name, commands, expected, still=None, undo=None):
        pid = watcher()
        findings = []
        if still:
            LAB.must(["kill", "-STOP", pid])
        try:
            for command in commands:
                do(command)
            renew(tries=2)
            status, findings, done = doctor()
            self.assertEqual(broken(findings), expected, json.dumps([f for f in findings if f["finding"] != "ok"], indent=1))
            self.assertEqual(status, 1)
            self.assertTrue(all(f["fix"] for f in findings if f["finding"] == "broken"), findings)
        finally:
            try:
                self.heal(expected, undo, findings)
            finally:
                if still:
                    LAB.run(["kill", "-CONT", pid])
                renew()
        self.settle()

    def test_names_each_damage_and_no_other(self):
        self.settle()
        tried = DAMAGES if ALL else DAMAGES[1::6]
        for damage in tried:
            with self.subTest(damage=damage[0]):
                self.hurt(*damage)
        print("%d of %d damages tried" % (len(tried), len(DAMAGES)))

    def test_a_dead_daemon(self):
        LAB.command("kill-daemon")
        try:
            status, findings, _ = doctor()
            self.assertEqual(status, 1)
            self.assertEqual(broken(findings), {"daemon"}, findings)
        finally:
            LAB.command("up")
        self.settle()

    def listener(self):
        process = LAB.popen(["/bin/busybox", "httpd", "-f", "-p", "8099", "-h", "/etc"])
        self.addCleanup(lambda: (process.kill(), process.wait()))
        self.addCleanup(lambda: LAB.run(["/bin/busybox", "killall", "-9", "httpd"]))
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            done = LAB.run(["/bin/busybox", "nc", "-w", "2", HOST, "8099"], input="GET / HTTP/1.0\r\n\r\n")
            if done.stdout.startswith("HTTP/1."):
                return
        self.fail("the control: the host's own service does not answer")

    def test_an_attack_that_worked_fails_again(self):
        """Walls gone and nobody to lay them: the host's own services are open. The names of the host's network, told."""
        self.listener()
        self.assertEqual(BOXES.connect("a", HOST, 8099, seconds=1), "silent")
        kill_watcher()
        do(["nft", "delete", "table", "inet", "box"])
        do(["nft", "delete", "table", "bridge", "box"])
        do(["nft", "delete", "table", "arp", "box"])
        self.assertEqual(BOXES.connect("a", HOST, 8099, seconds=1), "answered", "the attack works under the damage")
        _, findings, _ = doctor()
        self.assertEqual(broken(findings), {"watcher", TABLES})
        fixed = LAB.box("doctor", "--fix", timeout=120)
        self.assertIn("repaired watcher: process", fixed.stderr)
        self.settle()
        self.assertEqual(BOXES.connect("a", HOST, 8099, seconds=1), "silent", "it fails again")
        name = "nas.internal.example.com"
        self.assertEqual(BOXES.resolve("a", name), [])
        do(network("raw.dnsmasq="))
        self.assertEqual(BOXES.resolve("a", name), ["192.168.50.20"], "the attack works under the damage")
        LAB.must([harness.binary(), "doctor", "--fix", "--json"], timeout=120)
        self.settle()
        self.assertEqual(BOXES.resolve("a", name), [], "it fails again")

    def test_siblings_that_met_are_apart_again(self):
        target = BOXES.shell("b", "ip -4 -o address show dev eth0 | sed 's/.*inet //; s,/.*,,'").stdout.strip()
        BOXES.shell("b", "httpd -p 8080 -h /etc")
        control = LAB.run(["/bin/busybox", "nc", "-w", "2", target, "8080"], input="GET / HTTP/1.0\r\n\r\n").stdout
        self.assertIn("HTTP/1.", control, "the control: the host reaches b's service")
        self.assertEqual(BOXES.connect("a", target, 8080, seconds=1), "silent")
        kill_watcher()
        do(["nft", "delete", "table", "bridge", "box"])
        do(["nft", "delete", "table", "arp", "box"])
        do(["nft", "delete", "table", "inet", "box"])
        do(network("security.acls="))  # it sees switched frames too, where bridge-nf-call-iptables is on
        for name in ("a", "b"):
            LAB.must(["bridge", "link", "set", "dev", port_of(name), "isolated", "off"])
        reached = any(BOXES.connect("a", target, 8080, seconds=2) == "answered" for _ in range(4))
        self.assertTrue(reached, "the attack works under the damage")
        _, findings, _ = doctor()
        self.assertEqual(broken(findings), {"watcher", TABLES, "ports", NETWORK, SERVICE})
        fixed = LAB.box("doctor", "--fix", timeout=120)
        self.assertIn("repaired", fixed.stderr)
        self.settle()
        self.assertEqual(BOXES.connect("a", target, 8080, seconds=1), "silent", "it fails again")

    def test_pinned_resolvers_stay_unless_asked(self):
        """Public ones that somebody chose are kept by repairs; --pin-dns goes back to the usual ones."""
        live = LAB.query("/1.0/networks/boxnet")["config"]["raw.dnsmasq"]
        chosen = live.replace("server=1.1.1.1\n", "").replace("server=8.8.8.8", "server=8.8.8.8\nserver=9.9.9.9")
        LAB.must(network("raw.dnsmasq=" + chosen))
        try:
            status, findings, done = doctor()
            self.assertEqual(status, 0, done.stdout)
            self.assertIn("8.8.8.8 9.9.9.9", str(findings))
        finally:
            pinned = LAB.box("doctor", "--pin-dns", timeout=120)
        self.assertEqual(pinned.returncode, 0, pinned.stdout + pinned.stderr)
        self.assertEqual(LAB.query("/1.0/networks/boxnet")["config"]["raw.dnsmasq"], live)


if __name__ == "__main__":
    unittest.main()
