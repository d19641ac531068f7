"""Beside other firewalls: UFW and firewalld as their own commands run them, and Docker's chains as dockerd lays them.
Boxes have their network through each, are as isolated as without it, and teardown leaves its state as it was.
"""

import json
import os
import unittest

import harness
import strangers
import tinybox

LAB = harness.Lab("neighbours")
BOXES = tinybox.Boxes(LAB)
ALL = os.environ.get("BOX_ALL") == "1"
WEB, LAN = "93.184.215.14", "192.168.50.20"
STATE = """
nft -s list ruleset
iptables-save | grep -v '^#' | sed 's/\\[.*//'
find /etc/ufw /etc/firewalld | sort
find /etc/ufw /etc/firewalld -type f | sort | xargs sha256sum
"""
DOCKER = """
iptables -t nat -N DOCKER
iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
iptables -N DOCKER; iptables -N DOCKER-ISOLATION-STAGE-1; iptables -N DOCKER-ISOLATION-STAGE-2
iptables -A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
iptables -A DOCKER-ISOLATION-STAGE-1 -j RETURN
iptables -A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
iptables -A DOCKER-ISOLATION-STAGE-2 -j RETURN
iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
iptables -A FORWARD -o docker0 -j DOCKER
iptables -A FORWARD -i docker0 ! -o docker0 -j ACCEPT
iptables -I FORWARD -j DOCKER-ISOLATION-STAGE-1
iptables -P FORWARD DROP
"""
# At each start; the chain and what others put into it outlive one.
DOCKER_USER = """
iptables -N DOCKER-USER && iptables -A DOCKER-USER -j RETURN
while iptables -C FORWARD -j DOCKER-USER; do iptables -D FORWARD -j DOCKER-USER; done
iptables -I FORWARD -j DOCKER-USER
"""
UFW_CHANGES = ("ufw allow 8000/tcp && ufw delete allow 8000/tcp", "ufw reload", "ufw disable && ufw --force enable",
               "iptables-save > /run/rules && iptables-restore < /run/rules; rm /run/rules")


def setUpModule():
    LAB.up()
    strangers.unpack(LAB)


def shell(script):
    return LAB.must(["bash", "-c", script], timeout=120).stdout


def state():
    return sorted(shell(STATE).splitlines())


def setup(**options):
    return LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], timeout=120, **options)


def differing():
    """The rows of the stack's table that are not as they must be: doctor's findings are made of them."""
    changes = json.loads(LAB.must([harness.binary(), "setup-host", "--dry-run", "--json"]).stdout)["changes"]
    return {change["object"] for change in changes}


def fetch(address, port=80, **options):
    return LAB.run(["/bin/busybox", "nc", "-w", "1", address, str(port)], input="GET / HTTP/1.0\r\n\r\n",
                   **options).stdout.startswith("HTTP/1.")


class Firewall:
    """One that stands beside box: how it starts, how it goes, and what doctor calls it."""

    row = "other firewalls"


class Ufw(Firewall):
    def start(self):
        shell("ufw --force enable")

    def stop(self):
        shell("ufw --force reset; rm -f /etc/ufw/*.rules.[0-9]*; nft delete table ip filter; nft delete table ip6 filter; true")


class Docker(Firewall):
    def start(self):
        shell("ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0;" + DOCKER + DOCKER_USER)

    def stop(self):
        shell("ip link delete docker0; nft delete table ip filter; nft delete table ip nat; true")


class Firewalld(Firewall):
    row = "firewalld"

    def start(self):
        strangers.firewalld(LAB)

    def stop(self):
        strangers.stop_firewalld(LAB)
        shell("rm -f /etc/firewalld/zones/*.xml* /etc/firewalld/policies/*.xml*")


class Neighbours(unittest.TestCase):
    maxDiff = 4000

    def start(self, firewall):
        self.addCleanup(firewall.stop)
        firewall.start()

    def boxes(self, *names):
        self.addCleanup(LAB.box, "teardown-host", "--yes", timeout=120)
        self.addCleanup(self.remove_boxes)
        BOXES.prepare()
        for name in names:
            BOXES.launch(name)
            self.assertTrue(any(BOXES.dhcp(name) for _ in range(5)), "%s has an address" % name)
            BOXES.shell(name, "httpd -p 80 -h /etc")

    def remove_boxes(self):
        LAB.remove_boxes()
        for image in LAB.query("/1.0/images?recursion=1") or []:
            LAB.must(["incus", "image", "delete", image["fingerprint"]])

    def address(self, name):
        return BOXES.shell(name, "ip -4 -o address show dev eth0 | sed 's/.*inet //; s,/.*,,'").stdout.strip()

    def assert_open(self):
        self.assertEqual(BOXES.connect("a", WEB), "answered", "the internet")
        self.assertTrue(BOXES.resolve("a", "example.com"), "names")
        self.assertEqual(differing(), set())

    def assert_isolated(self, sibling):
        address = self.address(sibling)
        self.assertTrue(any(fetch(LAN) for _ in range(5)), "the control: the LAN answers this host")
        self.assertEqual(BOXES.connect("a", LAN, seconds=1), "silent", "the LAN")
        self.assertTrue(any(fetch(address) for _ in range(5)), "the control: %s answers this host" % sibling)
        if sibling != "a":
            self.assertEqual(BOXES.connect("a", address, seconds=1), "silent", "a sibling")
        self.assertFalse(fetch(address, world=True), "somebody outside")

    def assert_leaves(self, before):
        self.remove_boxes()
        done = LAB.box("teardown-host", "--yes", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = state()
        self.assertEqual([line for line in after if line not in before], [])
        self.assertEqual(after, before)

    def test_that_come_after_set_up(self):
        setup()
        self.boxes("a", "b")
        for firewall in (Ufw(), Docker(), Firewalld()):
            with self.subTest(firewall=type(firewall).__name__):
                try:
                    firewall.start()
                    reached = BOXES.connect("a", WEB, seconds=1)
                    self.assertNotEqual(reached, "answered", "the control: it drops what it does not know")
                    self.assertEqual(differing(), {firewall.row})
                    setup()
                    self.assert_open()
                    self.assert_isolated("b")
                finally:
                    firewall.stop()

    def test_ufw_that_was_there(self):
        changes = UFW_CHANGES if ALL else UFW_CHANGES[1::2]
        self.start(Ufw())
        for change in changes:
            shell(change)  # its files are now as its own commands write them
        before = state()
        setup()
        self.boxes("a")
        self.assert_open()
        self.assert_isolated("a")
        for change in changes:
            with self.subTest(change=change):
                shell(change)
                self.assertIn("Status: active", shell("ufw status"))
                self.assertIn("nothing to change", setup().stderr)
                self.assertEqual(len(self.rules()), 5, "iptables reads them, none is lost, none is there twice")
        self.assert_open()
        rules = self.rules()
        self.assert_leaves(before)
        # Another subnet: the rules know the bridge and no address, so none is stale.
        setup(env={"BOX_SUBNET": "172.31.7.0/24"})
        self.assertEqual(self.rules(), rules)
        self.assertFalse([line for line in rules if "10.88." in line])

    def rules(self):
        return [line for line in shell("iptables-save -t filter").splitlines() if "boxnet" in line]

    def test_docker_that_was_there(self):
        self.start(Docker())
        before = state()
        setup()
        self.boxes("a")
        self.assert_open()
        self.assert_isolated("a")
        self.assertIn("-A DOCKER-USER -i boxnet", shell("iptables -S DOCKER-USER"))
        self.assertEqual(shell("iptables -S FORWARD").count("boxnet"), 0, "its own chain is left to it")
        shell(DOCKER_USER)  # it is started again
        self.assert_open()
        self.assert_leaves(before)

    def test_firewalld_that_was_there(self):
        self.start(Firewalld())
        before = state()
        setup()
        self.boxes("a")
        self.assert_open()
        self.assert_isolated("a")
        self.assertIn("box\n  interfaces: boxnet", shell("firewall-cmd --get-active-zones"))
        shell("firewall-cmd --reload")
        self.assertIn("nothing to change", setup().stderr)
        shell("firewall-cmd --permanent --zone=box --remove-service=dns && firewall-cmd --reload")
        self.assertEqual(differing(), {"firewalld"})
        setup()
        self.assert_open()
        shell("rm -f /etc/firewalld/zones/box.xml.old")  # its own copy of what was changed by hand above
        self.assert_leaves(before)

    def test_a_zone_that_is_not_ours(self):
        path = "/etc/firewalld/zones/box.xml"
        self.start(Firewalld())
        shell("printf '<zone><short>theirs</short></zone>' > %s" % path)
        before = state()
        done = LAB.box("setup-host", "--pool-size", "2GiB", timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn(path + " was not made by box", done.stderr)
        self.assertEqual(state(), before, "nothing was touched")
        shell("rm %s; firewall-cmd --permanent --zone=trusted --add-interface=boxnet; firewall-cmd --reload" % path)
        before = state()
        self.assertIn("left there", setup().stderr)
        self.boxes("a")
        self.assert_open()
        self.assert_isolated("a")
        self.assert_leaves(before)


if __name__ == "__main__":
    unittest.main()
