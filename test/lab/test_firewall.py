"""The walls and their watcher against a real kernel and a real daemon: what an armed port reaches, what an un-armed one
does not, and that whatever vanishes comes back.

Every negative has its positive control: the same address answers the host.
"""

import json
import time
import unittest

import harness
import tinybox

LAB = harness.Lab("firewall")
BOXES = tinybox.Boxes(LAB)
WEB = "93.184.215.14"


def setUpModule():
    LAB.up()
    LAB.remove_boxes()
    LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], timeout=120)
    BOXES.prepare()
    for name in ("a", "b"):
        BOXES.launch(name)
        if not any(BOXES.dhcp(name) for _ in range(5)):
            raise RuntimeError("box %s got no address: %s" % (name, show()))


def tearDownModule():
    """The daemon now and then leaves the port of a guest that is gone; no other test shall meet it."""
    LAB.remove_boxes()
    for line in LAB.run(["ip", "-o", "link", "show", "master", "boxnet"]).stdout.splitlines():
        LAB.run(["ip", "link", "delete", line.split(": ")[1].split("@")[0]])


def show():
    return json.loads(LAB.box("firewall", "show", "--json").stdout)


def ports():
    return {port["interface"]: port for port in show()["ports"]}


def watcher():
    return show()["watcher"]


def wait(condition, what, seconds=5):
    """Until the condition holds. The watcher tells nobody in a test; asking it often is the event."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("%s: not after %d s\n%s\n%s" % (what, seconds, show(), log()))


def log():
    return LAB.run(["cat", "/run/box/firewall.log"]).stdout


def nft(*words, check=True):
    done = LAB.run(["nft", *words])
    if check and done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def stop_watcher():
    pid = watcher()
    LAB.must(["kill", "-9", str(pid)])
    wait(lambda: watcher() == 0, "the watcher ends")


def start_watcher():
    LAB.must([harness.binary(), "setup-host"])


def served_by(address, port):
    """The positive control: the same question from the host."""
    done = LAB.run(["/bin/busybox", "nc", "-w", "2", address, port], input="GET / HTTP/1.0\r\n\r\n")
    return done.stdout.startswith("HTTP/1.")


def whole():
    """Walls as they must be, both boxes armed."""
    state = show()
    return not state["differences"] and state["watcher"] and len(state["ports"]) >= 2 and all(
        port["armed"] for port in state["ports"])


def restore_filters():
    """What another's flush took from the daemon comes back when its key is toggled."""
    for value in ("false", "true"):
        LAB.must(["incus", "profile", "device", "set", "box-net", "eth0", "security.mac_filtering=" + value])
    LAB.must(["incus", "network", "unset", "boxnet", "user.probe"])
    LAB.must(["incus", "network", "set", "boxnet", "ipv4.nat=false"])
    LAB.must(["incus", "network", "set", "boxnet", "ipv4.nat=true"])
    wait(whole, "the filters are back")


class Walls(unittest.TestCase):
    def setUp(self):
        wait(whole, "the walls stand before the test")

    def test_armed_box_reaches_the_internet(self):
        self.assertEqual(BOXES.connect("a", WEB), "answered")
        self.assertEqual(BOXES.resolve("a", "web.example.com"), [WEB])

    def test_armed_box_reaches_nothing_else(self):
        gateway = LAB.query("/1.0/networks/boxnet")["config"]["ipv4.address"].split("/")[0]
        hosts = [entry["address"] for entry in LAB.world()["addresses"]
                 if entry["family"] == 4 and entry["kind"] not in ("public", "resolver")]
        self.assertGreater(len(hosts), 6)
        for address in hosts:
            with self.subTest(address=address):
                self.assertTrue(served_by(address, 80), "the control")
                self.assertEqual(BOXES.connect("a", address, seconds=1), "silent")
        listener = LAB.popen(["/bin/busybox", "httpd", "-f", "-p", "8099", "-h", "/etc"])
        try:
            wait(lambda: served_by(gateway, 8099), "the listener")
            for address in (gateway, "45.33.10.2", "192.168.50.10"):
                self.assertEqual(BOXES.connect("a", address, 8099, seconds=1), "silent", address)
        finally:
            listener.kill()
            listener.wait()

    def test_siblings_do_not_reach_each_other(self):
        target = next(port["address"] for port in ports().values() if port["interface"] == BOXES.port("b"))
        BOXES.shell("b", "httpd -p 8080 -h /etc")
        wait(lambda: served_by(target, 8080), "b serves the host")
        self.assertEqual(BOXES.connect("a", target, 8080, seconds=1), "silent")

    def test_a_stolen_address_carries_nothing(self):
        own = ports()[BOXES.port("a")]["address"]
        stolen = ports()[BOXES.port("b")]["address"]
        try:
            BOXES.shell("a", "ip address flush dev eth0; ip address add %s/24 dev eth0; "
                             "ip route replace default via 10.88.0.1" % stolen)
            self.assertEqual(BOXES.connect("a", WEB, seconds=1), "silent")
        finally:
            BOXES.shell("a", "ip address flush dev eth0; ip address add %s/24 dev eth0; "
                             "ip route replace default via 10.88.0.1" % own)
        self.assertEqual(BOXES.connect("a", WEB), "answered")

    def test_pinned_and_unlearning(self):
        port = BOXES.port("a")
        mac = ports()[port]["mac"]
        entries = LAB.must(["bridge", "fdb", "show", "br", "boxnet"]).stdout.splitlines()
        self.assertTrue(any(line.startswith("%s dev %s" % (mac, port)) and "static" in line and "sticky" in line
                            for line in entries), entries)
        flags = LAB.must(["bridge", "-d", "link", "show", "dev", port]).stdout
        self.assertIn("learning off", flags)
        self.assertIn("isolated on", flags)
        self.assertIn("no_linklocal_learn 1", LAB.must(["ip", "-d", "link", "show", "boxnet"]).stdout)
        for name, value in (("arp_ignore", "1"), ("route_localnet", "0")):
            self.assertEqual(LAB.must(["cat", "/proc/sys/net/ipv4/conf/boxnet/" + name]).stdout.strip(), value)


class Watcher(unittest.TestCase):
    def setUp(self):
        wait(whole, "the walls stand before the test")

    def test_dead_watcher_closes_new_ports_only(self):
        stop_watcher()
        try:
            self.assertEqual(BOXES.connect("a", WEB), "answered", "a running box keeps its network")
            self.assertIn("table inet box\n", nft("list", "tables"), "the static tables outlive the watcher")
            self.assertNotIn("box-owned", nft("list", "tables"))
            BOXES.launch("late")
            self.assertEqual(BOXES.dhcp("late", tries=2), "", "an un-armed port gets no lease")
            BOXES.shell("late", "ip address add 10.88.0.77/24 dev eth0; ip route replace default via 10.88.0.1")
            self.assertNotEqual(BOXES.connect("late", WEB, seconds=1), "answered")
            self.assertNotEqual(BOXES.connect("late", "10.88.0.1", 53, seconds=1), "answered")
            start_watcher()
            self.assertTrue(BOXES.dhcp("late"), log())
            self.assertEqual(BOXES.connect("late", WEB), "answered")
        finally:
            start_watcher()
            BOXES.remove("late")

    def test_only_one_runs(self):
        second = LAB.box("firewall", "watch")
        self.assertEqual(second.returncode, 1)
        self.assertIn("runs already", second.stderr)

    def test_flushed_ruleset_fails_closed_and_comes_back(self):
        nft("flush", "ruleset")
        wait(lambda: not show()["differences"], "the static tables are loaded again", 2)
        tables = nft("list", "tables")
        self.assertIn("table inet box-owned", tables)
        # The daemon's own filters and its NAT are gone too: nothing may pass, least of all with a private source.
        self.assertFalse(any(port["armed"] for port in show()["ports"]))
        self.assertEqual(BOXES.connect("a", WEB, seconds=1), "silent")
        restore_filters()
        self.assertEqual(BOXES.connect("a", WEB), "answered")

    def test_un_natted_packets_stay_at_home(self):
        nft("delete", "chain", "inet", "incus", "pstrt.boxnet")
        try:
            self.assertEqual(BOXES.connect("a", WEB, seconds=1), "silent")
        finally:
            restore_filters()
        self.assertEqual(BOXES.connect("a", WEB), "answered")

    def test_each_damage_to_the_tables_is_undone(self):
        rule = next(line for line in nft("-a", "list", "chain", "inet", "box", "forward").splitlines()
                    if "198.18.0.0/15" in line)
        damages = {
            "a rule deleted": ["delete", "rule", "inet", "box", "forward", "handle", rule.split()[-1]],
            "a rule added": ["insert", "rule", "inet", "box", "input", "accept"],
            "a table deleted": ["delete", "table", "bridge", "box"],
            "an element added": ["add", "element", "inet", "box", "uplink", '{ "eth1" . 192.168.50.1 }'],
            "a set flushed": ["flush", "set", "bridge", "box", "ports"],
            "a chain added": ["add", "chain", "inet", "box", "extra"],
        }
        for what, words in damages.items():
            with self.subTest(damage=what):
                before = len(log())
                nft(*words)
                wait(lambda: not show()["differences"], what, 2)
                wait(lambda: "loaded the tables box again" in log()[before:], "it is told", 2)
        self.assertEqual(BOXES.connect("a", WEB), "answered")

    def test_owned_tables_cannot_be_touched(self):
        done = LAB.run(["nft", "delete", "table", "inet", "box-owned"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("not permitted", done.stderr)

    def test_port_isolation_is_put_back(self):
        port = BOXES.port("a")
        LAB.must(["bridge", "link", "set", "dev", port, "isolated", "off", "learning", "on"])
        flags = lambda: LAB.must(["bridge", "-d", "link", "show", "dev", port]).stdout
        wait(lambda: "isolated on" in flags() and "learning off" in flags(), "isolation is set again", 2)
        wait(lambda: "had lost its isolation" in log(), "it is told", 2)

    def test_pin_is_put_back(self):
        port = BOXES.port("a")
        mac = ports()[port]["mac"]
        LAB.must(["bridge", "fdb", "delete", mac, "dev", port, "master"])
        wait(lambda: any(line.startswith(mac) and "sticky" in line
                         for line in LAB.must(["bridge", "fdb", "show", "br", "boxnet"]).stdout.splitlines()),
             "the MAC is pinned again", 2)

    def test_filters_off_disarm(self):
        # The daemon filters MACs as long as it filters addresses, whatever the key of the former says.
        both = ["security.mac_filtering=false", "security.ipv4_filtering=false"]
        for keys, reason in ((both, "security.mac_filtering"), (both[1:], "security.ipv4_filtering")):
            with self.subTest(keys=keys):
                LAB.must(["incus", "config", "device", "override", "b", "eth0", *keys])
                try:
                    wait(lambda: reason in ports()[BOXES.port("b")]["reason"], "it is disarmed", 3)
                    self.assertEqual(BOXES.connect("b", WEB, seconds=1), "silent")
                finally:
                    LAB.must(["incus", "config", "device", "remove", "b", "eth0"])
                wait(whole, "it is armed again")

    def test_twins_are_closed_and_ghosts_are_not_heard(self):
        address = ports()[BOXES.port("b")]["address"]
        rules = "".join(
            'chain %s.twin { type filter hook %s priority 0; iifname "twin0" ether saddr != 10:66:6a:00:00:99 drop; '
            'iifname "twin0" arp saddr ip != %s drop; iifname "twin0" ip saddr != %s drop;\n}\n'
            % (chain, hook, address, address) for chain, hook in (("in", "input"), ("fwd", "forward")))
        LAB.must(["ip", "link", "add", "twin0", "type", "veth", "peer", "name", "twin1"])
        try:
            LAB.must(["ip", "link", "set", "twin0", "up", "master", "boxnet"])
            LAB.must(["nft", "-f", "-"], input="table bridge incus {\n%s}\n" % rules)
            wait(lambda: "too" in ports()["twin0"]["reason"], "the ghost is seen")
            self.assertTrue(ports()[BOXES.port("b")]["armed"], "what a guest that is gone left behind")
            LAB.must(["ip", "link", "set", "twin1", "up"])
            wait(lambda: "too" in ports()[BOXES.port("b")]["reason"], "two living claimants are both closed", 2)
            self.assertEqual(BOXES.connect("b", WEB, seconds=1), "silent")
        finally:
            LAB.must(["ip", "link", "delete", "twin0"])
            for chain in ("in.twin", "fwd.twin"):
                LAB.run(["nft", "delete", "chain", "bridge", "incus", chain])
        wait(whole, "armed again")

    def test_uplinks_follow_the_default_route(self):
        LAB.must(["ip", "route", "replace", "default", "via", "192.168.50.1", "dev", "eth1"])
        try:
            wait(lambda: show()["uplinks"] == [{"interface": "eth1", "gateway": "192.168.50.1"}], "the new uplink", 2)
            wait(lambda: "192.168.50.1" in nft("list", "set", "inet", "box", "uplink"), "it is in the kernel", 2)
        finally:
            LAB.must(["ip", "route", "replace", "default", "via", "45.33.10.1", "dev", "eth0"])
        wait(lambda: "45.33.10.1" in nft("list", "set", "inet", "box", "uplink"), "the old uplink", 2)
        self.assertEqual(BOXES.connect("a", WEB), "answered")

    def test_lost_address_closes_and_comes_back(self):
        LAB.must(["ip", "address", "flush", "dev", "boxnet"])
        try:
            wait(lambda: show()["subnet"] is None and not show()["differences"], "closed", 2)
            self.assertFalse(any(port["armed"] for port in show()["ports"]))
        finally:
            LAB.must(["ip", "address", "add", "10.88.0.1/24", "dev", "boxnet"])
        wait(whole, "armed again", 3)

    def test_foreign_tables_stay_byte_identical(self):
        text = """table inet others {
  set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 comment "ten, \'quoted\'", 192.0.2.1 }; }
  map m { type inet_service : verdict; elements = { 22 : accept }; }
  counter hits { packets 7 bytes 700; }
  chain c { tcp dport vmap @m; ip saddr @s counter name "hits" drop comment "mine"; }
}
"""
        LAB.must(["nft", "-f", "-"], input=text)
        try:
            before = nft("list", "table", "inet", "others")
            LAB.must([harness.binary(), "firewall", "apply"])
            nft("delete", "table", "inet", "box")
            wait(lambda: not show()["differences"], "the walls are back", 2)
            LAB.must([harness.binary(), "setup-host"])
            self.assertEqual(nft("list", "table", "inet", "others"), before)
        finally:
            nft("delete", "table", "inet", "others")

    def test_a_port_is_armed_before_it_has_carrier(self):
        """The watcher's own figure, and the fact beside it: the first DHCP request is answered."""
        times = []
        for i in range(5):
            before = len(log())
            BOXES.launch("quick%d" % i)
            line = next(line for line in log()[before:].splitlines() if line.startswith("box firewall: armed"))
            times.append(float(line.split(" in ")[1].split()[0]))
            self.assertTrue(BOXES.dhcp("quick%d" % i, tries=1))
        BOXES.remove(*["quick%d" % i for i in range(5)])
        print("from event to armed: median %.1f ms, most %.1f ms" % (sorted(times)[2], max(times)))


class Show(unittest.TestCase):
    def test_show_for_people_and_machines(self):
        wait(whole, "the walls stand")
        text = LAB.box("firewall", "show")
        self.assertEqual(text.returncode, 0)
        self.assertIn("as they must be", text.stdout)
        self.assertIn(BOXES.port("a"), text.stdout)
        self.assertEqual(set(show()), {"watcher", "subnet", "uplinks", "differences", "ports"})

    def test_a_user_sees_what_is_published(self):
        done = LAB.run(["setpriv", "--reuid", "65534", "--regid", "0", "--clear-groups", harness.binary(), "firewall",
                        "show", "--json"])
        self.assertNotEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
