"""The instrument itself, in network namespaces of its own: every verdict has to be earned against a known truth.

    box (10.99.0.2) --.
                       br0 in the host (10.99.0.1), which routes to -- world (198.51.100.2)
    sibling (10.99.0.3)'

No Incus is needed here: what the probes say inside a real box is the drill's affair.
"""

import json
import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PREFIX = "probe-%d-" % os.getpid()
NAMES = ("box", "sibling", "host", "world")
HOST, BOX, SIBLING, WORLD = "10.99.0.1", "10.99.0.2", "10.99.0.3", "198.51.100.2"
BOX_MAC, SIBLING_MAC, ROGUE_MAC = "02:00:00:00:99:02", "02:00:00:00:99:03", "02:00:00:00:99:66"
RULES = """
flush ruleset
table inet t {
 chain input {
  type filter hook input priority 0; policy accept;
  tcp dport 81 drop
  udp dport 81 drop
  tcp dport 82 reject with tcp reset
  udp dport 82 reject
  tcp dport 83 reject with icmp type admin-prohibited
  icmp type echo-request ip daddr 10.99.0.254 drop
 }
 chain forward {
  type filter hook forward priority 0; policy accept;
  ip daddr 198.51.100.9 reject
  ip daddr 198.51.100.8 drop
 }
}
"""


def binary():
    """The instrument to test: $BOX_PROBE, else the newest build in the tree."""
    chosen = os.environ.get("BOX_PROBE")
    if chosen:
        return chosen
    built = [path for path in ROOT.glob("build*/probe/box-probe") if path.is_file()]
    if not built:
        raise RuntimeError("no box-probe is built. Build it: meson setup build && meson compile -C build")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def must(*argv, **options):
    done = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=30, **options)
    if done.returncode != 0:
        raise RuntimeError("%s: %s%s" % (" ".join(map(str, argv)), done.stdout, done.stderr))
    return done.stdout


def inside(name, *argv):
    return ["ip", "netns", "exec", PREFIX + name, *map(str, argv)]


def ip(name, *words):
    must("ip", "-n", PREFIX + name, *words)


def sysctl(name, key, value):
    must(*inside(name, "sysctl", "-qw", "%s=%s" % (key, value)))


def parse(line):
    answer = json.loads(line)
    assert set(answer) >= {"probe", "verdict", "errno", "errno_name", "ms", "evidence"}, line
    return answer


def probe(name, *words, status=0):
    """Runs one probe in a namespace; its one line of JSON, decoded."""
    started = time.monotonic()
    done = subprocess.run(inside(name, binary(), *words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)
    lines = done.stdout.splitlines()
    if len(lines) != 1 or done.returncode != status:
        raise AssertionError("%s: status %d, %d lines: %s%s" % (words, done.returncode, len(lines), done.stdout,
                                                                done.stderr))
    answer = parse(lines[0])
    answer["wall_ms"] = (time.monotonic() - started) * 1000
    return answer


class Listener:
    """`box-probe listen` in the background, ready before the block begins, stopped and read at its end."""

    def __init__(self, name, *words):
        self.process = subprocess.Popen(inside(name, binary(), "listen", *words), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answer = None

    def __enter__(self):
        ready = self.process.stderr.readline().split()
        if not ready or ready[0] != "ready":
            raise AssertionError("the listener did not get ready: %s%s" % (ready, self.process.communicate()))
        self.port = int(ready[2])
        return self

    def finish(self, wait=0):
        """What it heard; `wait` gives it that many seconds to hear enough by itself."""
        if self.answer is None:
            try:
                self.process.wait(wait)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
            out, err = self.process.communicate(timeout=10)
            if len(out.splitlines()) != 1:
                raise AssertionError("a listener said: %s%s" % (out, err))
            self.answer = parse(out)
        return self.answer

    def __exit__(self, *_):
        self.finish()


def wire(name, address, mac):
    """A veth from the namespace's eth0 to a port of the bridge."""
    ip("host", "link", "add", "p-" + name, "type", "veth", "peer", "name", "eth0", "netns", PREFIX + name)
    ip("host", "link", "set", "p-" + name, "master", "br0", "up")
    ip(name, "link", "set", "eth0", "address", mac, "up")
    ip(name, "addr", "add", address + "/24", "dev", "eth0")
    ip(name, "route", "add", "default", "via", HOST)


def setUpModule():
    unittest.addModuleCleanup(remove_all)
    for name in NAMES:
        must("ip", "netns", "add", PREFIX + name)
        ip(name, "link", "set", "lo", "up")
    # No duplicate detection: an address that is tentative for a second would make every IPv6 test wait for it.
    for name in NAMES:
        sysctl(name, "net.ipv6.conf.default.accept_dad", 0)
        sysctl(name, "net.ipv6.conf.default.router_solicitations", 0)
    ip("host", "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
    ip("host", "addr", "add", HOST + "/24", "dev", "br0")
    ip("host", "addr", "add", "10.99.0.254/24", "dev", "br0")
    ip("host", "addr", "add", "fd99::1/64", "dev", "br0")
    ip("host", "link", "set", "br0", "up")
    wire("box", BOX, BOX_MAC)
    wire("sibling", SIBLING, SIBLING_MAC)
    ip("box", "addr", "add", "fd99::2/64", "dev", "eth0")
    ip("sibling", "addr", "add", "fd99::3/64", "dev", "eth0")
    ip("host", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", PREFIX + "world")
    ip("host", "addr", "add", "198.51.100.1/24", "dev", "up0")
    ip("host", "link", "set", "up0", "up")
    ip("world", "addr", "add", WORLD + "/24", "dev", "eth0")
    ip("world", "link", "set", "eth0", "up")
    ip("world", "route", "add", "10.99.0.0/24", "via", "198.51.100.1")
    sysctl("host", "net.ipv4.ip_forward", 1)
    for name in NAMES:
        # The kernel's pace for ICMP errors would make a refusal look like silence.
        sysctl(name, "net.ipv4.icmp_ratelimit", 0)
    subprocess.run(inside("host", "nft", "-f", "-"), input=RULES, text=True, check=True, timeout=30)


def remove_all():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", PREFIX + name], stdin=subprocess.DEVNULL, capture_output=True,
                       check=False)


class Verdicts(unittest.TestCase):
    """Reachable, refused, dropped and unreachable are four facts, for each kind of packet."""

    def test_tcp(self):
        with Listener("host", "tcp", "--echo", "--timeout", 20000) as server:
            got = probe("box", "connect", HOST, server.port, "--echo")
            self.assertEqual(got["verdict"], "reachable")
            self.assertTrue(got["evidence"]["echo"])
            self.assertEqual(got["evidence"]["path_mtu"], 1500)
            self.assertLess(got["ms"], 1000)
        refused = probe("box", "connect", HOST, 9)
        self.assertEqual((refused["verdict"], refused["errno_name"]), ("refused", "ECONNREFUSED"))
        self.assertLess(refused["ms"], 500)
        self.assertEqual(probe("box", "connect", HOST, 82)["verdict"], "refused")
        dropped = probe("box", "connect", HOST, 81, "--timeout", 700)
        self.assertEqual((dropped["verdict"], dropped["errno_name"]), ("dropped", "ETIMEDOUT"))
        self.assertGreaterEqual(dropped["ms"], 700)
        self.assertLess(dropped["ms"], 1200)

    def test_tcp_unreachable_names_its_author(self):
        by_host = probe("box", "connect", HOST, 83)
        self.assertEqual((by_host["verdict"], by_host["errno_name"]), ("unreachable", "EHOSTUNREACH"))
        self.assertEqual(by_host["evidence"]["icmp"]["from"], HOST)
        self.assertEqual(by_host["evidence"]["icmp"]["code"], 13)
        no_route = probe("box", "connect", "203.0.113.5", 80)
        self.assertEqual((no_route["verdict"], no_route["evidence"]["icmp"]["from"]), ("unreachable", HOST))
        self.assertFalse(no_route["evidence"]["icmp"]["from_own_stack"])
        silent_neighbour = probe("box", "connect", "10.99.0.77", 80, "--timeout", 6000)
        self.assertEqual(silent_neighbour["verdict"], "unreachable")
        self.assertTrue(silent_neighbour["evidence"]["icmp"]["from_own_stack"])
        ip("box", "route", "add", "prohibit", "203.0.113.6/32")
        prohibited = probe("box", "connect", "203.0.113.6", 80)
        self.assertEqual((prohibited["verdict"], prohibited["errno_name"]), ("unreachable", "EACCES"))
        self.assertEqual(prohibited["evidence"]["from"], "own stack")

    def test_a_routers_port_unreachable_is_no_refusal(self):
        """The same ICMP code, but not from the destination: the packet did not arrive."""
        for words in (("connect",), ("udp",)):
            got = probe("box", *words, "198.51.100.9", 80)
            self.assertEqual((words, got["verdict"]), (words, "unreachable"))
            self.assertEqual(got["evidence"]["icmp"]["from"], HOST)
            self.assertEqual(got["evidence"]["icmp"]["code"], 3)
        self.assertEqual(probe("box", "connect", "198.51.100.8", 80, "--timeout", 400)["verdict"], "dropped")
        self.assertEqual(probe("box", "connect", WORLD, 80)["verdict"], "refused")

    def test_udp(self):
        with Listener("world", "udp", "--echo", "--timeout", 20000) as server:
            got = probe("box", "udp", WORLD, server.port)
            self.assertEqual((got["verdict"], got["evidence"]["echo"]), ("reachable", True))
            many = probe("box", "udp", WORLD, server.port, "--all", "--count", 20, "--interval-ms", 5)
            self.assertEqual((many["evidence"]["sent"], many["evidence"]["answered"]), (20, 20))
        refused = probe("box", "udp", HOST, 9)
        self.assertEqual((refused["verdict"], refused["evidence"]["icmp"]["from"]), ("refused", HOST))
        self.assertEqual(probe("box", "udp", HOST, 82)["verdict"], "refused")
        dropped = probe("box", "udp", HOST, 81, "--timeout", 500)
        self.assertEqual((dropped["verdict"], dropped["evidence"]["sent"]), ("dropped", 3))
        no_route = probe("box", "udp", "203.0.113.5", 53)
        self.assertEqual((no_route["verdict"], no_route["evidence"]["icmp"]["from"]), ("unreachable", HOST))

    def test_an_answer_without_the_token_is_none(self):
        with Listener("host", "udp", "--reply", "something else", "--timeout", 20000, "--count", 0) as server:
            got = probe("box", "udp", HOST, server.port, "--timeout", 500)
            self.assertEqual((got["verdict"], got["evidence"]["foreign"]), ("dropped", 3))
            got = probe("box", "udp", HOST, server.port, "--any-reply")
            self.assertEqual((got["verdict"], got["evidence"]["reply"]), ("reachable", "something else"))

    def test_icmp(self):
        self.assertEqual(probe("box", "icmp", HOST)["verdict"], "reachable")
        self.assertEqual(probe("box", "icmp", "127.0.0.1")["verdict"], "reachable")
        self.assertEqual(probe("box", "icmp", BOX)["verdict"], "reachable")
        self.assertEqual(probe("box", "icmp", WORLD, "--size", 1400, "--df")["verdict"], "reachable")
        self.assertEqual(probe("box", "icmp", "fd99::1")["verdict"], "reachable")
        self.assertEqual(probe("box", "icmp", "10.99.0.254", "--timeout", 400)["verdict"], "dropped")
        no_route = probe("box", "icmp", "203.0.113.5")
        self.assertEqual((no_route["verdict"], no_route["evidence"]["icmp"]["from"]), ("unreachable", HOST))
        expired = probe("box", "icmp", WORLD, "--ttl", 1)
        self.assertEqual((expired["verdict"], expired["evidence"]["icmp"]["type"]), ("unreachable", 11))
        counted = probe("box", "icmp", SIBLING, "--all", "--count", 25, "--interval-ms", 4)
        self.assertEqual((counted["evidence"]["sent"], counted["evidence"]["answered"]), (25, 25))

    def test_path_mtu(self):
        ip("host", "link", "set", "up0", "mtu", 1300)
        self.addCleanup(ip, "host", "link", "set", "up0", "mtu", 1500)
        got = probe("box", "icmp", WORLD, "--size", 1400, "--df")
        self.assertEqual((got["verdict"], got["evidence"]["icmp"]["from"]), ("unreachable", HOST))
        self.assertEqual(got["evidence"]["icmp"]["mtu"], 1300)
        own = probe("box", "icmp", WORLD, "--size", 4000, "--df")
        self.assertEqual((own["verdict"], own["errno_name"]), ("unreachable", "EMSGSIZE"))
        must(*inside("box", "ip", "route", "flush", "cache"))

    def test_ipv6(self):
        with Listener("host", "tcp", "--echo", "--address", "::", "--timeout", 20000) as server:
            self.assertEqual(probe("box", "connect", "fd99::1", server.port)["verdict"], "reachable")
        self.assertEqual(probe("box", "connect", "fd99::1", 9)["verdict"], "refused")
        self.assertEqual(probe("box", "udp", "fd99::1", 9)["verdict"], "refused")
        self.assertEqual(probe("box", "connect", "2001:db8::1", 80)["verdict"], "unreachable")

    def test_every_ip_protocol(self):
        got = probe("box", "protocols", HOST, "--timeout", 2500)
        self.assertEqual(got["verdict"], "refused")
        self.assertGreater(got["evidence"]["refused"], 200)
        got = probe("box", "protocols", "198.51.100.8", "--from", 90, "--to", 110, "--timeout", 400)
        self.assertEqual((got["verdict"], got["evidence"]["refused"]), ("dropped", 0))

    def test_a_connection_that_is_held(self):
        with Listener("host", "tcp", "--echo", "--timeout", 20000) as server:
            got = probe("box", "connect", HOST, server.port, "--beats", 10, "--beat-ms", 20)
        self.assertEqual((got["evidence"]["beats_sent"], got["evidence"]["beats_answered"]), (10, 10))
        self.assertEqual(got["evidence"]["stream"], "open")


class Forgery(unittest.TestCase):
    """What is forged leaves as it was asked for, and is seen at the other end."""

    def heard(self, listener):
        answer = listener.finish(3)
        self.assertEqual(answer["verdict"], "reachable", answer)
        return next(event for event in answer["evidence"]["events"] if event["matched"])

    def test_a_spoofed_source(self):
        sysctl("host", "net.ipv4.conf.all.rp_filter", 0)
        sysctl("host", "net.ipv4.conf.br0.rp_filter", 0)
        for protocol in ("udp", "icmp", "99"):
            words = ("ip", "--protocol", protocol, "--token", "tok-spoof-1")
            with Listener("host", *words, "--timeout", 5000) as listener:
                got = probe("box", "spoof", protocol, HOST, 7777, "--source", "10.99.0.200", "--token", "tok-spoof-1")
                self.assertEqual(got["verdict"], "done")
                self.assertEqual(self.heard(listener)["from"], "10.99.0.200")
        with Listener("host", "ip", "--protocol", "tcp", "--from", "10.99.0.201", "--timeout", 5000) as listener:
            probe("box", "spoof", "tcp", HOST, 80, "--source", "10.99.0.201", "--tcp-flags", "SA", "--sequence", 5)
            event = self.heard(listener)
            self.assertEqual((event["tcp_flags"], event["tcp_sequence"], event["to_port"]), (18, 5, 80))

    def test_an_answer_on_the_wire_is_judged(self):
        with Listener("host", "tcp", "--count", 0, "--timeout", 20000) as server:
            syn = probe("box", "spoof", "tcp", HOST, server.port, "--wait")
            self.assertEqual((syn["verdict"], syn["evidence"]["answer"]["tcp_flags"]), ("reachable", 18))
        self.assertEqual(probe("box", "spoof", "tcp", HOST, 9, "--wait")["verdict"], "refused")
        self.assertEqual(probe("box", "spoof", "tcp", HOST, 81, "--wait", "--timeout", 300)["verdict"], "dropped")
        self.assertEqual(probe("box", "spoof", "udp", HOST, 9, "--wait")["verdict"], "refused")
        self.assertEqual(probe("box", "spoof", "udp", "198.51.100.9", 9, "--wait")["verdict"], "unreachable")

    def test_fragments_and_options(self):
        with Listener("sibling", "ether", "--to-ip", SIBLING, "--count", 3, "--timeout", 5000) as listener:
            probe("box", "spoof", "udp", SIBLING, 7, "--size", 64, "--fragment", 24)
            offsets = [event["fragment_offset"] for event in listener.finish(3)["evidence"]["events"]]
        self.assertEqual(offsets, [0, 24, 48])
        with Listener("host", "udp", "--token", "tok-frag-2", "--timeout", 5000) as listener:
            probe("box", "spoof", "udp", HOST, listener.port, "--size", 64, "--fragment", 24, "--token", "tok-frag-2")
            self.assertEqual(self.heard(listener)["size"], 64)
        with Listener("sibling", "ether", "--token", "tok-route", "--timeout", 5000) as listener:
            probe("box", "raw", SIBLING_MAC, "--ip", SIBLING, "--source-route", "10.99.0.1,192.0.2.1",
                  "--token", "tok-route")
            self.assertEqual(self.heard(listener)["ip_options"], 12)

    def test_frames_of_every_kind(self):
        kinds = [
            (("--vlan", "0"), [0], 0x88b5),
            (("--vlan", "1"), [1], 0x88b5),
            (("--vlan", "100"), [100], 0x88b5),
            (("--vlan", "4095"), [4095], 0x88b5),
            (("--vlan", "100,200", "--outer-type", "0x88a8"), [100, 200], 0x88b5),
            (("--ethertype", "0x8863"), [], 0x8863),
            (("--ethertype", "0x8847"), [], 0x8847),
            (("--ethertype", "0x888e"), [], 0x888e),
            (("--ip", "fd99::3", "--source", "fd99::2"), [], 0x86dd),
            (("--vlan", "0", "--ip", SIBLING), [0], 0x0800),
            (("--lldp",), [], 0x88cc),
        ]
        for number, (words, vlans, ethertype) in enumerate(kinds):
            token = "tok-frame-%d" % number
            with Listener("sibling", "ether", "--token", token, "--timeout", 5000) as listener:
                got = probe("box", "raw", SIBLING_MAC, *words, "--token", token)
                self.assertEqual((got["verdict"], got["evidence"]["sent"]), ("done", 1))
                event = self.heard(listener)
            self.assertEqual((words, event["vlans"], event["ethertype"]), (words, vlans, ethertype))
            self.assertEqual((event["source_mac"], event["destination_mac"]), (BOX_MAC, SIBLING_MAC))

    def test_a_bpdu_and_snap(self):
        with Listener("host", "ether", "--interface", "p-box", "--count", 1, "--timeout", 5000) as listener:
            probe("box", "raw", "01:80:c2:00:00:00", "--bpdu")
            event = self.heard(listener)
        self.assertEqual((event["destination_mac"], event["ethertype"]), ("01:80:c2:00:00:00", 38))
        self.assertTrue(event["data"].startswith("BB\\u0003" if "\\u" in event["data"] else "BB\x03"), event["data"])
        with Listener("sibling", "ether", "--token", "tok-snap", "--timeout", 5000) as listener:
            probe("box", "raw", SIBLING_MAC, "--snap", "--ethertype", "0x0800", "--token", "tok-snap")
            self.assertLess(self.heard(listener)["ethertype"], 0x600)

    def test_a_reserved_mac_is_heard_by_the_host(self):
        """The attack of row 1: it arrives with the port, not the bridge, as its interface."""
        with Listener("host", "udp", "--echo", "--token", "tok-reserved", "--timeout", 8000) as listener:
            got = probe("box", "raw", "01:80:c2:00:00:0e", "--ip", HOST, "--port", listener.port, "--token",
                        "tok-reserved", "--wait")
            self.assertEqual(got["verdict"], "reachable")
            listener.finish(0)
        self.assertEqual(listener.answer["evidence"]["matched"], 1)
        # A closed port proves nothing there: the kernel sends no ICMP error about a frame to a group address.
        silent = probe("box", "raw", "01:80:c2:00:00:0e", "--ip", HOST, "--port", 9, "--wait", "--timeout", 300)
        self.assertEqual(silent["verdict"], "dropped")

    def test_a_spoofed_mac(self):
        with Listener("sibling", "ether", "--token", "tok-mac", "--timeout", 5000) as listener:
            probe("box", "raw", "broadcast", "--source-mac", ROGUE_MAC, "--token", "tok-mac")
            self.assertEqual(self.heard(listener)["source_mac"], ROGUE_MAC)

    def test_a_flood_of_macs(self):
        with Listener("sibling", "ether", "--ethertype", "0x88b5", "--count", 0, "--timeout", 8000) as listener:
            got = probe("box", "raw", "broadcast", "--flood-macs", "--count", 2000, "--timeout", 5000)
            answer = listener.finish(0.5)
        self.assertEqual(got["evidence"]["sent"], 2000)
        self.assertGreater(answer["evidence"]["matched"], 1500)
        macs = {event["source_mac"] for event in answer["evidence"]["events"]}
        self.assertEqual(len(macs), len(answer["evidence"]["events"]))

    def test_an_icmp_error_reaches_the_flow_that_it_quotes(self):
        script = ("import socket,sys\n"
                  "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('%s',5000)); s.settimeout(4)\n"
                  "print(s.getsockname()[1],flush=True)\n"
                  "try: s.recv(10); print('data')\n"
                  "except OSError as e: print(type(e).__name__)\n" % WORLD)
        victim = subprocess.Popen(inside("sibling", "/usr/bin/python3", "-c", script), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True)
        port = int(victim.stdout.readline())
        got = probe("box", "icmp-error", SIBLING, "--quote-source", "%s:%d" % (SIBLING, port), "--quote-destination",
                    WORLD + ":5000", "--source", HOST)
        self.assertEqual(got["verdict"], "done")
        self.assertEqual(victim.communicate(timeout=10)[0].strip(), "ConnectionRefusedError")

    def test_a_forged_path_mtu(self):
        with Listener("sibling", "ip", "--protocol", "icmp", "--from", "10.99.0.254", "--timeout", 5000) as listener:
            probe("box", "icmp-error", SIBLING, "--kind", "frag", "--mtu", 576, "--source", "10.99.0.254",
                  "--quote-source", SIBLING + ":1000", "--quote-destination", WORLD + ":80", "--quote", "tcp")
            event = self.heard(listener)
        self.assertEqual((event["icmp_type"], event["icmp_code"]), (3, 4))


class Neighbourhood(unittest.TestCase):
    """ARP, the bridge, multicast, IPv6."""

    def test_who_has(self):
        got = probe("box", "arp", "who-has", SIBLING)
        self.assertEqual((got["verdict"], got["evidence"]["macs"]), ("reachable", [SIBLING_MAC]))
        self.assertEqual(probe("box", "arp", "who-has", "10.99.0.99", "--timeout", 500)["verdict"], "dropped")

    def test_taking_a_siblings_address_wins_its_packets(self):
        self.addCleanup(must, *inside("host", "ip", "neigh", "flush", "dev", "br0"))
        attack = subprocess.Popen(inside("box", binary(), "arp", "claim", SIBLING, "--timeout", 1500),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        victim = probe("sibling", "icmp", WORLD, "--all", "--count", 40, "--interval-ms", 20, "--timeout", 1200)
        got = parse(attack.communicate(timeout=10)[0])
        self.assertEqual(got["verdict"], "reachable")
        self.assertGreater(got["evidence"]["captured"]["icmp"], 5)
        self.assertLess(victim["evidence"]["answered"], 35)

    def test_taking_a_siblings_mac_wins_its_packets(self):
        """The bridge's table believes the last frame: under the sibling's MAC its packets come here, while it is silent.

        A sibling that talks takes its entry back with each frame, so what is sent to it here gets no answer.
        """
        self.assertEqual(probe("host", "icmp", SIBLING)["verdict"], "reachable")
        with Listener("sibling", "udp", "--count", 0, "--timeout", 10000) as listener:
            attack = subprocess.Popen(inside("box", binary(), "raw", "broadcast", "--source-mac", SIBLING_MAC,
                                             "--send-ms", 800, "--capture", SIBLING, "--timeout", 1000),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            time.sleep(0.3)
            for _ in range(10):
                probe("world", "spoof", "udp", SIBLING, listener.port, "--count", 5)
            got = parse(attack.communicate(timeout=10)[0])
            heard = listener.finish(0)["evidence"]["heard"]
        self.assertEqual(got["verdict"], "reachable")
        self.assertGreater(got["evidence"]["captured"]["udp"], 10)
        self.assertLess(heard, 40)

    def test_a_claim_that_wins_nothing_is_dropped(self):
        got = probe("box", "arp", "claim", "10.99.0.90", "--timeout", 400)
        self.assertEqual((got["verdict"], got["evidence"]["captured"]["packets"]), ("dropped", 0))

    def test_multicast_and_broadcast(self):
        with Listener("sibling", "udp", "--group", "239.9.9.9", "--interface", "eth0", "--echo", "--timeout",
                      20000) as listener:
            for group in ("239.9.9.9", "255.255.255.255", "10.99.0.255"):
                got = probe("box", "multicast", group, listener.port, "--interface", "eth0", "--timeout", 600)
                self.assertEqual((group, got["verdict"]), (group, "reachable"))
                self.assertEqual([who["address"] for who in got["evidence"]["responders"]], [SIBLING])
            got = probe("box", "multicast", "239.9.9.8", listener.port, "--timeout", 300)
            self.assertEqual(got["verdict"], "dropped")

    def test_neighbours_over_ipv6(self):
        got = probe("box", "ipv6", "neighbours", "--timeout", 900)
        self.assertEqual(got["verdict"], "reachable")
        self.assertEqual(len(got["evidence"]["responders"]), 2)
        got = probe("box", "ipv6", "ask", "fd99::3")
        self.assertEqual((got["verdict"], got["evidence"]["neighbour"]["mac"]), ("reachable", SIBLING_MAC))
        self.assertEqual(probe("box", "ipv6", "ask", "fd99::77", "--timeout", 400)["verdict"], "dropped")
        self.assertEqual(probe("box", "ipv6", "solicit", "--timeout", 400)["verdict"], "dropped")

    def test_a_rogue_router(self):
        sysctl("sibling", "net.ipv6.conf.eth0.accept_ra", 1)
        got = probe("box", "ipv6", "advertise", "--prefix", "fd77:1:2:3::", "--lifetime", 30)
        self.assertEqual(got["verdict"], "done")
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            links = probe("sibling", "interfaces")["evidence"]["interfaces"]
            addresses = [a["address"] for link in links for a in link["addresses"]]
            if any(address.startswith("fd77:1:2:3:") for address in addresses):
                break
        self.assertTrue(any(address.startswith("fd77:1:2:3:") for address in addresses), addresses)
        self.assertTrue(any(route["destination"] == "::" and route["gateway"]
                            for route in probe("sibling", "routes")["evidence"]["routes"]))
        probe("box", "ipv6", "advertise", "--prefix", "fd77:1:2:3::", "--lifetime", 0)

    def test_ipv6_by_hand(self):
        must("ip", "netns", "add", PREFIX + "extra")
        self.addCleanup(must, "ip", "netns", "del", PREFIX + "extra")
        wire("extra", "10.99.0.4", "02:00:00:00:99:04")
        sysctl("extra", "net.ipv6.conf.all.disable_ipv6", 1)
        self.assertEqual(probe("extra", "icmp", "fe80::1%eth0")["verdict"], "unreachable")
        got = probe("extra", "ipv6", "enable", "--address", "fd99::4", "--gateway", "fd99::1")
        self.assertIn("fd99::4", got["evidence"]["addresses"])
        self.assertEqual(probe("extra", "icmp", "fd99::1")["verdict"], "reachable")
        self.assertEqual(probe("extra", "ipv6", "status")["evidence"]["knobs"]["disable_ipv6"], "0")
        self.assertEqual(probe("extra", "ipv6", "disable")["verdict"], "done")
        self.assertEqual(probe("extra", "icmp", "fd99::1")["verdict"], "unreachable")


class Services(unittest.TestCase):
    """DNS and DHCP, against a dnsmasq."""

    @classmethod
    def setUpClass(cls):
        cls.directory = Path("/tmp") / (PREFIX + "dnsmasq")
        cls.directory.mkdir()
        cls.addClassCleanup(cls.remove)
        (cls.directory / "hosts").write_text("10.99.0.50 private.example\n", encoding="utf-8")
        cls.server = subprocess.Popen(
            inside("host", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--pid-file=",
                   "--no-resolv", "--no-hosts", "--interface=br0", "--bind-interfaces", "--except-interface=lo",
                   "--addn-hosts=%s" % (cls.directory / "hosts"), "--local=/example/", "--txt-record=t.example,a\\b",
                   "--dhcp-range=10.99.0.100,10.99.0.109,1h", "--dhcp-leasefile=%s" % (cls.directory / "leases"),
                   "--dhcp-option=option:domain-name,lan.example", "--log-facility=-", "--dhcp-authoritative", "--no-ping"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cls.addClassCleanup(cls.stop)
        for line in cls.server.stdout:
            if "read " in line:
                break

    @classmethod
    def stop(cls):
        cls.server.terminate()
        cls.server.communicate(timeout=10)

    @classmethod
    def remove(cls):
        for path in cls.directory.iterdir():
            path.unlink()
        cls.directory.rmdir()

    def test_questions(self):
        got = probe("box", "dns", "private.example", "--server", HOST)
        self.assertEqual((got["verdict"], got["evidence"]["rcode"]), ("reachable", "NOERROR"))
        self.assertEqual(got["evidence"]["records"][0]["data"], "10.99.0.50")
        got = probe("box", "dns", "private.example", "--server", HOST, "--tcp")
        self.assertEqual(got["evidence"]["records"][0]["data"], "10.99.0.50")
        self.assertEqual(probe("box", "dns", "no.example", "--server", HOST)["evidence"]["rcode"], "NXDOMAIN")
        got = probe("box", "dns", "version.bind", "--server", HOST, "--class", "CH", "--type", "TXT")
        self.assertIn("dnsmasq", got["evidence"]["records"][0]["data"])
        self.assertEqual(probe("box", "dns", "x.example", "--server", HOST, "--port", 9)["verdict"], "refused")
        self.assertEqual(probe("box", "dns", "x.example", "--server", HOST, "--port", 81, "--timeout", 400)["verdict"],
                         "dropped")
        self.assertEqual(probe("box", "dns", "x.example", "--server", HOST, "--port", 9, "--tcp")["verdict"], "refused")

    def test_a_forged_question_is_answered_to_the_victim(self):
        with Listener("sibling", "ip", "--protocol", "udp", "--from", HOST, "--port", 5353, "--timeout", 5000) as ear:
            probe("box", "dns", "private.example", "--server", HOST, "--forge-source", SIBLING, "--forge-port", 5353)
            self.assertEqual(ear.finish(3)["verdict"], "reachable")

    def test_leases(self):
        got = probe("box", "dhcp", "discover", "--client-id", "one")
        self.assertEqual((got["verdict"], got["evidence"]["offer"]["server"]), ("reachable", HOST))
        self.assertEqual(got["evidence"]["offer"]["domain"], "lan.example")
        got = probe("box", "dhcp", "request", "--client-id", "two", "--hostname", "wpad", "--release")
        self.assertEqual((got["verdict"], got["evidence"]["answer"]["type"]), ("reachable", 5))
        starved = probe("box", "dhcp", "starve", "--count", 40, "--timeout", 60000, "--release")
        self.assertIn(starved["evidence"]["leases"], (9, 10))
        deadline = time.monotonic() + 5
        while (self.directory / "leases").read_text(encoding="utf-8").strip() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual((self.directory / "leases").read_text(encoding="utf-8").strip(), "")
        self.assertEqual(probe("box", "dhcp", "discover", "--client-id", "three")["verdict"], "reachable")

    def test_no_server_is_silence(self):
        self.assertEqual(probe("world", "dhcp", "discover", "--interface", "eth0", "--timeout", 600)["verdict"],
                         "dropped")

    def test_a_rogue_server_wins_a_client(self):
        rogue = subprocess.Popen(inside("box", binary(), "dhcp", "rogue", "--offer", "10.99.0.66", "--for-mac",
                                        ROGUE_MAC, "--timeout", 2500),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        offers = set()
        for _ in range(6):
            got = probe("sibling", "dhcp", "request", "--mac", ROGUE_MAC, "--request-ip", "10.99.0.66", "--timeout", 700)
            offers.add(got["evidence"].get("offer", {}).get("address"))
            if "10.99.0.66" in offers:
                break
        self.assertIn("10.99.0.66", offers)
        self.assertEqual(parse(rogue.communicate(timeout=10)[0])["verdict"], "reachable")


class Frame(unittest.TestCase):
    """What holds for every probe: one line, a budget, honest exit statuses."""

    def test_budgets_are_kept(self):
        got = probe("host", "listen", "udp", "--timeout", 300)
        self.assertEqual((got["verdict"], got["evidence"]["heard"]), ("dropped", 0))
        self.assertLess(got["ms"], 600)
        for words in (("arp", "claim", "10.99.0.90"), ("dhcp", "rogue", "--offer", "10.99.0.66"),
                      ("flows", "198.51.100.8", 80, "--proto", "tcp"), ("protocols", "198.51.100.8"),
                      ("dns", "x.example", "--server", "198.51.100.8")):
            got = probe("box", *words, "--timeout", 300)
            self.assertLess(got["ms"], 800, words)
            self.assertEqual(got["verdict"], "dropped", words)

    def test_a_flood_does_not_stretch_a_budget(self):
        flood = subprocess.Popen(inside("sibling", binary(), "raw", "broadcast", "--send-ms", "2500", "--timeout",
                                        "2600"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        for words in (("arp", "who-has", "10.99.0.99"), ("spoof", "tcp", HOST, 81, "--wait"),
                      ("listen", "ether", "--token", "never-there")):
            got = probe("box", *words, "--timeout", 400)
            self.assertEqual((words, got["verdict"]), (words, "dropped"))
            self.assertLess(got["ms"], 900, words)
        flood.communicate(timeout=10)

    def test_a_reader_that_is_wedged_cannot_hold_it(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, b"x" * 65536)
        except BlockingIOError:
            os.set_blocking(writing, True)
        started = time.monotonic()
        process = subprocess.Popen([binary(), "listen", "udp", "--timeout", "200"], stdin=subprocess.DEVNULL,
                                   stdout=writing, stderr=subprocess.DEVNULL)
        os.close(writing)
        self.assertNotEqual(process.wait(timeout=10), 0)
        self.assertLess(time.monotonic() - started, 4)

    def test_a_listener_that_is_asked_to_stop_says_what_it_heard(self):
        with Listener("host", "tcp", "--timeout", 20000, "--count", 5) as listener:
            probe("box", "connect", HOST, listener.port)
            answer = listener.finish(0)
        self.assertEqual((answer["evidence"]["heard"], answer["evidence"]["stopped"]), (1, True))
        self.assertEqual(listener.process.returncode, 0)

    def test_a_token_in_two_pieces(self):
        with Listener("host", "tcp", "--token", "two-pieces", "--timeout", 5000) as listener:
            script = ("import socket,time\ns=socket.create_connection(('%s',%d))\n"
                      "s.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1)\n"
                      "s.send(b'xxtwo-pi'); time.sleep(0.2); s.send(b'ecesyy')\n" % (HOST, listener.port))
            must(*inside("box", "/usr/bin/python3", "-c", script))
            self.assertEqual(listener.finish(3)["evidence"]["matched"], 1)

    def test_exit_statuses(self):
        self.assertEqual(probe("box", "connect", "nonsense", 99999, status=2)["verdict"], "error")
        self.assertEqual(probe("box", "raw", "not-a-mac", status=2)["errno_name"], "EINVAL")
        self.assertEqual(probe("box", "udp", HOST, 9, "--no-such-flag", status=2)["verdict"], "error")
        self.assertEqual(probe("box", "arp", "who-has", HOST, "--interface", "none0", status=1)["errno_name"], "ENODEV")
        self.assertEqual(probe("box", "connect", HOST, 9, "--source", "192.0.2.77", status=1)["errno_name"],
                         "EADDRNOTAVAIL")
        done = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True, timeout=10)
        self.assertRegex(done.stdout, r"^box-probe \d+\.\d+\.\d+\n$")
        self.assertEqual(subprocess.run([binary()], capture_output=True, check=False, timeout=10).returncode, 2)

    def test_nothing_raw_reaches_the_terminal(self):
        with Listener("host", "tcp", "--reply", "\\x1b[2J\\xff\"\\\\", "--timeout", 20000, "--count", 0) as server:
            done = subprocess.run(inside("box", binary(), "connect", HOST, server.port, "--read", "--timeout", 1500),
                                  stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=20)
        self.assertTrue(all(0x20 <= byte < 0x7f for byte in done.stdout.rstrip(b"\n")), done.stdout)
        self.assertEqual(json.loads(done.stdout)["evidence"]["reply"], "\x1b[2J\xff\"\\")

    def test_limits_on_flows_are_found(self):
        rule = ("table inet limited { chain input { type filter hook input priority -5; "
                "udp dport 7900 ct state new ct count over 40 drop; }\n}\n")
        subprocess.run(inside("host", "nft", "-f", "-"), input=rule, text=True, check=True, timeout=10)
        self.addCleanup(must, *inside("host", "nft", "delete", "table", "inet", "limited"))
        with Listener("host", "udp", "--port", 7900, "--echo", "--timeout", 20000):
            got = probe("box", "flows", HOST, 7900, "--count", 200, "--timeout", 1500, "--per-second", 1000)
        self.assertEqual((got["evidence"]["answered"], got["evidence"]["first_unanswered"]), (40, 40))
        self.assertEqual(probe("box", "flows", HOST, 9, "--proto", "tcp", "--count", 50)["verdict"], "refused")

    def test_facts(self):
        links = probe("box", "interfaces")["evidence"]
        self.assertEqual(links["main"], "eth0")
        eth0 = next(link for link in links["interfaces"] if link["name"] == "eth0")
        self.assertEqual((eth0["mac"], eth0["mtu"]), (BOX_MAC, 1500))
        self.assertIn({"address": BOX, "prefix": 24}, eth0["addresses"])
        self.assertEqual(probe("box", "routes")["evidence"]["gateway"], HOST)
        identity = probe("box", "identity")["evidence"]
        self.assertEqual(identity["boot_id"], Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        self.assertEqual((identity["hostname"], identity["macs"]), (socket.gethostname(), [BOX_MAC]))

    def test_a_static_program_under_a_megabyte(self):
        stripped = Path("/tmp") / (PREFIX + "stripped")
        self.addCleanup(stripped.unlink)
        must("strip", "-o", stripped, binary())
        self.assertLess(stripped.stat().st_size, 1000000)
        self.assertNotIn("INTERP", must("readelf", "-l", "-W", binary()))


if __name__ == "__main__":
    unittest.main()
