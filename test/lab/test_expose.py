"""`box expose`: a door opens on the host's loopback alone, leads where it says, and is gone with its box. In the lab."""
import json
import unittest

import daily
import harness

LAB = harness.Lab()
BOX, OTHER = "door-box", "door-other"
SERVER = """import http.server, socket, sys
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(sys.argv[3].encode())
    def log_message(self, *words):
        pass
Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("door-")
    daily.launch(LAB, BOX)
    daily.launch_plain(LAB, OTHER)


def tearDownModule():
    LAB.remove_boxes("door-")


def serve(box, address, port, word):
    """A web server in a box that says a word; returns once it listens."""
    daily.as_root(LAB, box, "cat >/tmp/server.py", input=SERVER)
    daily.as_root(LAB, box, f"setsid python3 /tmp/server.py {address} {port} {word} >/dev/null 2>&1 </dev/null & "
                            f"for n in $(seq 100); do ss -Hltn sport = :{port} | grep -q . && exit; sleep 0.1; done; exit 1")


def stop_servers(box):
    daily.as_root(LAB, box, "pkill -f [s]erver.py; true")


def get(port, address="127.0.0.1"):
    """What answers there for somebody on the lab's host; empty where nothing does."""
    return LAB.run(["curl", "-s", "--max-time", "5", f"http://{address}:{port}/"]).stdout


def listeners(port):
    return LAB.must(["ss", "-Hltn", f"sport = :{port}"]).stdout.split("\n")[:-1]


def doors():
    return json.loads(LAB.box("expose", "--list", "--json").stdout)


class Case(unittest.TestCase):
    def tearDown(self):
        for door in doors():
            LAB.box("expose", door["box"], "--remove", door["port"])
        for box in (BOX, OTHER):
            stop_servers(box)

    def expose(self, *words, status=0):
        done = LAB.box("expose", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done



class Doors(Case):
    def test_leads_to_a_server_on_any_address_of_the_boxs_own(self):
        for address in ("127.0.0.1", "0.0.0.0", "::", "::1"):
            with self.subTest(address):
                serve(BOX, address, 3000, "inside")
                self.assertEqual(self.expose(BOX, 3000).stdout, "127.0.0.1:3000\n")
                self.assertEqual(get(3000), "inside")
                self.expose(BOX, "--remove", 3000)
                self.assertEqual(listeners(3000), [])
                stop_servers(BOX)

    def test_opens_before_the_server_does(self):
        self.expose(BOX, 3000, 8080)
        self.assertEqual(get(8080), "")
        serve(BOX, "127.0.0.1", 3000, "later")
        self.assertEqual(get(8080), "later")

    def test_is_on_the_loopback_and_on_no_network(self):
        serve(BOX, "0.0.0.0", 3000, "inside")
        self.expose(BOX, 3000)
        self.assertEqual([line.split()[3] for line in listeners(3000)], ["127.0.0.1:3000"])
        addresses = json.loads(LAB.must(["ip", "-j", "-4", "address"]).stdout)
        for link in addresses:
            for entry in link["addr_info"]:
                if link["ifname"] != "lo":
                    self.assertEqual(get(3000, entry["local"]), "", entry)
        self.assertEqual(LAB.must(["sysctl", "-n", "net.ipv4.conf.boxnet.route_localnet"]).stdout, "0\n")

    def test_another_box_reaches_it_by_no_way(self):
        serve(BOX, "0.0.0.0", 3000, "inside")
        self.expose(BOX, 3000)
        self.assertEqual(get(3000), "inside")  # the control
        address = json.loads(LAB.box("info", BOX, "--json").stdout)["ipv4"]
        for target in ("10.88.0.1", address, "127.0.0.1"):
            done = LAB.run(["incus", "exec", OTHER, "--", "curl", "-s", "--max-time", "2", f"http://{target}:3000/"])
            self.assertEqual(done.stdout, "", target)
            self.assertNotEqual(done.returncode, 0, target)

    def test_the_box_keeps_its_contract(self):
        self.expose(BOX, 3000)
        facts = json.loads(LAB.box("info", BOX, "--json").stdout)
        self.assertEqual(facts["deviations"], [])

    def test_lists(self):
        self.expose(BOX, 3000, 8080)
        self.expose(OTHER, 3000)
        done = self.expose("--list")
        self.assertRegex(done.stdout, rf"(?m)^BOX +PORT +HERE +STATE\n{BOX} +3000 +127.0.0.1:8080 +open\n"
                                      rf"{OTHER} +3000 +127.0.0.1:3000 +open\n$")
        self.assertEqual(doors(), [
            {"box": BOX, "port": 3000, "host_address": "127.0.0.1", "host_port": 8080, "open": True},
            {"box": OTHER, "port": 3000, "host_address": "127.0.0.1", "host_port": 3000, "open": True}])
        self.assertEqual(len(json.loads(self.expose(OTHER, "--list", "--json").stdout)), 1)

    def test_is_shut_while_the_box_is_down_and_open_again_when_it_starts(self):
        self.expose(BOX, 3000)
        LAB.must([harness.binary(), "down", BOX], timeout=120)
        self.assertEqual(listeners(3000), [])
        self.assertEqual([door["open"] for door in doors()], [False])
        LAB.must([harness.binary(), "start", BOX], timeout=120)
        self.assertEqual(len(listeners(3000)), 1)
        serve(BOX, "127.0.0.1", 3000, "again")
        self.assertEqual(get(3000), "again")

    def test_is_gone_with_its_box_and_no_new_one_inherits_it(self):
        name = "door-gone"
        daily.launch_plain(LAB, name)
        self.expose(name, 3000)
        LAB.must([harness.binary(), "rm", name, "--force"], timeout=120)
        self.assertEqual((listeners(3000), doors()), ([], []))
        daily.launch_plain(LAB, name)
        serve(name, "0.0.0.0", 3000, "new")
        self.assertEqual((listeners(3000), doors(), get(3000)), ([], [], ""))


    def test_goes_with_its_box_through_rename_and_does_not_come_back_by_restore(self):
        LAB.must([harness.binary(), "snapshot", BOX, "before"], timeout=120)
        self.expose(BOX, 3000)
        LAB.must([harness.binary(), "snapshot", BOX, "within"], timeout=120)
        self.expose(BOX, "--remove", 3000)
        LAB.must([harness.binary(), "restore", BOX, "within", "--force"], timeout=120)
        self.assertEqual((listeners(3000), doors()), ([], []))
        self.expose(OTHER, 3000)
        LAB.must([harness.binary(), "down", OTHER], timeout=120)
        try:
            LAB.must([harness.binary(), "rename", OTHER, "door-named"], timeout=120)
            self.assertEqual([(door["box"], door["open"]) for door in doors()], [("door-named", False)])
            self.assertEqual(listeners(3000), [])
        finally:
            LAB.run([harness.binary(), "rename", "door-named", OTHER], timeout=120)
            LAB.must([harness.binary(), "start", OTHER], timeout=120)
        self.assertEqual(len(listeners(3000)), 1)


class Refusals(Case):
    def test_a_host_port_that_is_taken(self):
        self.expose(OTHER, 3000)
        done = self.expose(BOX, 3000, status=1)
        self.assertIn(f"the door to port 3000 of the box {OTHER}", done.stderr)
        self.assertIn(f"box expose {BOX} 3000 13000", done.stderr)
        self.expose(BOX, 3000, 13000)  # what it suggests
        self.assertIn("has a door already", self.expose(BOX, 3000, 9000, status=1).stderr)
        for address in ("127.0.0.1", "0.0.0.0", "::"):
            with self.subTest(address):
                words = [address, "9000", "host"]
                child = LAB.popen(["/usr/bin/python3", "-c", SERVER, *words])
                try:
                    while not listeners(9000):
                        self.assertIsNone(child.poll())
                    done = self.expose(BOX, 4000, 9000, status=1)
                    self.assertIn("uses the port 9000 already", done.stderr)
                finally:
                    child.terminate()
                    child.wait(timeout=10)
        self.assertEqual(len(doors()), 2)

    def test_bad_words(self):
        for port in ("0", "65536", "080", "+1", "-1", "3000/udp", "", "3 000", "1e3", "99999999999999999999"):
            for words in ((BOX, "--", port), (BOX, "3000", "--", port), (BOX, f"--remove={port}")):
                with self.subTest(words):
                    self.assertIn("port", self.expose(*words, status=2).stderr)
        for words in ((), (BOX,), (BOX, "1", "2", "3"), (BOX, "3000", "--list"), ("--remove", "3000"),
                      (BOX, "3000", "--json"), (BOX, "--list", "--remove", "1")):
            with self.subTest(words):
                self.assertIn("usage", self.expose(*words, status=2).stderr + "usage" * ("--json" in words))
        self.assertEqual(doors(), [])

    def test_the_boundary_and_what_is_not_there(self):
        self.assertIn("no such box", self.expose("door-nothing", 3000, status=1).stderr)
        self.assertIn("box expose --list", self.expose(BOX, "--remove", 3000, status=1).stderr)

    def test_a_box_that_is_down(self):
        LAB.must(["incus", "stop", "--force", OTHER])
        try:
            self.assertIn(f"box start {OTHER}", self.expose(OTHER, 3000, status=1).stderr)
        finally:
            LAB.must([harness.binary(), "start", OTHER], timeout=120)


if __name__ == "__main__":
    unittest.main()
