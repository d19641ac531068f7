"""The lab itself: it serves what it publishes, runs commands faithfully, mends itself, and leaves nothing behind."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import unittest
from pathlib import Path

import harness

A, B = harness.Lab("lab-a"), harness.Lab("lab-b")
STATE_FILES = ["/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/subuid", "/etc/subgid", "/etc/group", "/etc/passwd"]

# Runs on the lab's host, asks every published address for everything it serves, prints what is wrong.
ASK_WORLD = r'''
import json, socket, struct, subprocess, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor

QUERY = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\x03web\x07example\x03com\x00" + struct.pack("!HH", 1, 1)

def everything(sock):
    data = b""
    while chunk := sock.recv(65536):
        data += chunk
    return data

def tcp(row, port, send, close=True):
    with socket.create_connection((row["address"], port), 5) as sock:
        sock.sendall(send)
        if close:
            sock.shutdown(socket.SHUT_WR)
        return everything(sock)

def udp(row, port, send):
    with socket.socket(socket.AF_INET6 if row["family"] == 6 else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.connect((row["address"], port))  # connected: an answer from another address would not arrive
        sock.send(send)
        return sock.recv(4096)

def check(row):
    wrong = []
    def expect(what, good):
        if not good:
            wrong.append("%s: %s" % (row["address"], what))
    try:
        body = tcp(row, row["http"], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", close=False).decode()
        expect("http", "200 OK" in body and "server %s\n" % row["address"] in body)
        expect("banner", tcp(row, row["tls_banner"], b"") == b"lab %s\n" % row["address"].encode())
        answer = udp(row, row["dns"], QUERY)
        expect("dns", answer[:2] == QUERY[:2] and answer.endswith(socket.inet_aton(web)))
        answer = tcp(row, row["dns"], struct.pack("!H", len(QUERY)) + QUERY)
        expect("dns over tcp", answer.endswith(socket.inet_aton(web)))
        expect("tcp echo", tcp(row, row["tcp_echo"], b"x" * 300000) == b"x" * 300000)
        expect("udp echo", udp(row, row["udp_echo"], b"hello") == b"hello")
        expect("ping", subprocess.run(["ping", "-n", "-c1", "-W2", row["address"]], stdout=subprocess.DEVNULL).returncode == 0)
    except OSError as problem:
        wrong.append("%s: %s" % (row["address"], problem))
    return wrong

world = json.load(open("/run/box-lab/world.json"))
web = world["web"]["address"]
with ThreadPoolExecutor(8) as pool:
    wrong = sum(pool.map(check, world["addresses"]), [])
print("\n".join(wrong) or "all answered")
'''


def setUpModule():
    A.up()


def tearDownModule():
    A.down()
    B.down()


def kernel_things(lab):
    """What the kernel holds for a lab: its namespaces (by inode) and loop devices (by name and file)."""
    pid = int((lab.directory / "view.pid").read_text().split()[0])
    spaces = {os.readlink("/proc/%d/ns/%s" % (pid, kind)) for kind in ("mnt", "uts", "ipc", "net", "cgroup", "pid")}
    own = {os.readlink("/proc/self/ns/%s" % kind) for kind in ("mnt", "uts", "ipc", "net", "cgroup", "pid")}
    world = "net:[%d]" % os.stat("/run/netns/box-%s-world" % lab.name).st_ino
    return (spaces | {world}) - own


def loop_devices():
    listed = subprocess.run(["losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-INO,BACK-FILE"],
                            capture_output=True, text=True, check=True).stdout
    return set(listed.splitlines())


def ended(pid):
    """Gone, or waiting only for the machine's first process to take note of it."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def users_of(spaces):
    """The processes of the machine that are in one of the namespaces."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for kind in ("mnt", "uts", "ipc", "net", "cgroup", "pid"):
            try:
                if os.readlink("/proc/%s/ns/%s" % (pid, kind)) in spaces and not ended(pid):
                    found.append((pid, kind))
            except OSError:
                pass
    return found


def machine():
    """What of the machine a lab could have changed, without what other labs and programs change meanwhile."""
    run = lambda *argv: subprocess.run(argv, capture_output=True, text=True, check=True).stdout  # noqa: E731
    sysctls = [path for path in Path("/proc/sys/net").rglob("*")
               if path.name in ("ip_forward", "forwarding", "rp_filter", "arp_ignore", "bridge-nf-call-iptables", "accept_ra")]
    return {
        "links": sorted(re.findall(r"^\d+: (\S+):", run("ip", "-o", "link"), re.M)),
        "addresses": re.findall(r"inet6? \S+", run("ip", "-o", "addr")),
        "routes": run("ip", "route", "show", "table", "all").splitlines(),
        "rules": run("ip", "rule").splitlines(),
        "nft": run("nft", "list", "ruleset"),
        "sysctls": {str(path): path.read_text() for path in sysctls},
        "files": {path: Path(path).read_text() for path in STATE_FILES if Path(path).exists()},
        "hostname": os.uname().nodename,
    }


def traces(lab):
    """Every place on the machine where a lab of that name is still to be seen."""
    found = [path for path in (str(lab.directory), "/run/netns/box-%s-host" % lab.name, "/run/netns/box-%s-world" % lab.name)
             if os.path.lexists(path)]
    mark = re.compile(r"box-%s-|/box-lab/%s[/ ]|box-lab-%s\b" % ((lab.name,) * 3))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += ["/proc/%s/mountinfo: %s" % (pid, line) for line in Path("/proc", pid, "mountinfo").read_text().splitlines()
                      if mark.search(line)]
        except OSError:
            pass
    found += [str(path) for path in Path("/sys/fs/cgroup").rglob("box-lab-" + lab.name)]
    return found


class World(unittest.TestCase):
    def test_every_published_address_answers_from_the_host(self):
        done = A.run(["/usr/bin/python3", "-c", ASK_WORLD])
        self.assertEqual((done.stdout, done.stderr), ("all answered\n", ""))

    def test_the_plan_has_what_the_walls_are_tried_against(self):
        rows = A.world()["addresses"]
        addresses = {row["address"] for row in rows}
        self.assertTrue({"1.1.1.1", "8.8.8.8", "169.254.169.254", A.world()["host"]["uplink"]["gateway"]} <= addresses)
        for start in ("192.168.", "172.16.", "10.", "100.64.", "198.18."):
            self.assertTrue(any(address.startswith(start) for address in addresses), start)
        self.assertTrue({"public", "resolver", "gateway", "neighbour", "lan", "vpn", "cgnat", "metadata", "special"}
                        <= {row["kind"] for row in rows})
        self.assertTrue({"public", "resolver", "gateway", "neighbour"} <= {row["kind"] for row in rows if row["family"] == 6})

    def test_names_resolve_on_the_host_and_unknown_ones_do_not(self):
        for row in A.world()["names"]:
            if row["type"] == "TXT":
                continue
            family = "ahostsv4" if row["type"] == "A" else "ahostsv6"
            done = A.run(["getent", family, row["name"]])
            self.assertEqual(done.stdout.split()[:1], [row["value"]], row["name"])
        for row in A.world()["private_hosts"]:
            self.assertIn(row["address"], A.must(["getent", "hosts", row["name"]]).stdout)
        self.assertEqual(A.run(["getent", "hosts", "nobody.example.com"]).returncode, 2)

    def test_a_large_record_is_cut_in_a_datagram_and_whole_over_tcp(self):
        ask = ("import socket, struct\n"
               "q = struct.pack('!HHHHHH', 9, 256, 1, 0, 0, 0) + b'\\3big\\7example\\3com\\0' + struct.pack('!HH', 16, 1)\n"
               "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(5); u.sendto(q, ('8.8.8.8', 53))\n"
               "print(u.recv(4096)[2] >> 1 & 1)\n"
               "t = socket.create_connection(('8.8.8.8', 53), 5); t.sendall(struct.pack('!H', len(q)) + q)\n"
               "t.shutdown(socket.SHUT_WR); f = t.makefile('rb'); print(f.read().count(b'b') >= 1200)\n")
        self.assertEqual(A.must(["/usr/bin/python3", "-c", ask]).stdout, "1\nTrue\n")

    def test_the_world_tells_who_reached_it(self):
        A.must(["/usr/bin/python3", "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                "s.bind(('192.168.50.10', 45451)); s.settimeout(5); s.sendto(b'12345', ('10.20.0.5', 7)); s.recv(9)"])
        seen = json.loads(A.must(["curl", "-sS", "-m5", "http://1.1.1.1/arrivals"]).stdout)
        self.assertIn(("udp_echo", "192.168.50.10", 45451, "10.20.0.5", 5),
                      [(row["service"], row["from"], row["from_port"], row["to"], row.get("bytes")) for row in seen])

    def test_nothing_leads_out_of_the_two_namespaces(self):
        for world, expected in ((False, {"lo", "eth0", "eth1", "vpn0"}), (True, {"lo", "uplink", "lan", "vpn"})):
            other = "box-lab-a-host" if world else "box-lab-a-world"
            links = json.loads(subprocess.run(["ip", "-n", "box-lab-a-world" if world else "box-lab-a-host", "-j", "-d", "link"],
                                              capture_output=True, check=True).stdout)
            links = [link for link in links if link.get("linkinfo", {}).get("info_kind") != "bridge"]  # Incus's own
            self.assertEqual({link["ifname"] for link in links}, expected)
            peers = {link["ifname"]: link.get("link_netnsid") for link in links if link["ifname"] != "lo"}
            self.assertEqual(len(set(peers.values())), 1, peers)
            named = subprocess.run(["ip", "-n", "box-lab-a-world" if world else "box-lab-a-host", "link"],
                                   capture_output=True, text=True, check=True).stdout
            self.assertEqual(named.count("link-netns " + other), 3, named)

    def test_the_host_does_not_see_the_machine(self):
        self.assertEqual(A.must(["hostname"]).stdout, "lab-a-host\n")
        self.assertEqual(A.must(["cat", "/proc/1/comm"]).stdout, "python3\n")
        self.assertNotIn("/run/netns", A.must(["cat", "/proc/self/mountinfo"]).stdout)
        self.assertEqual(A.must(["stat", "-f", "-c", "%T", "/sys/fs/cgroup"]).stdout, "cgroup2fs\n")


    def test_its_device_nodes_are_its_own(self):
        A.must(["sh", "-c", "mknod /dev/box-lab-a c 1 3 && echo x >/dev/box-lab-a && test -b /dev/loop200"])
        self.assertFalse(Path("/dev/box-lab-a").exists())
        self.assertNotEqual(A.must(["stat", "-c", "%d", "/dev/null"]).stdout.strip(), str(os.stat("/dev/null").st_dev))
        A.must(["rm", "/dev/box-lab-a"])


class Run(unittest.TestCase):
    def test_exit_status_is_the_commands(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
            self.assertEqual(A.run(["sh", "-c", script]).returncode, status, script)
        self.assertEqual(A.run(["/nowhere/nothing"]).returncode, 127)
        self.assertEqual(A.run(["/etc/passwd"]).returncode, 126)

    def test_streams_and_arguments_arrive_byte_for_byte(self):
        data = bytes(range(256)) * 40000
        done = A.run(["cat"], input=data, text=False)
        self.assertEqual((done.stdout, done.stderr), (data, b""))
        odd = ["", "$HOME", "a\nb", ";", "*", "ü€", "--name", "--"]
        done = A.run(["printf", "<%s>", *odd])
        self.assertEqual(done.stdout, "".join("<%s>" % word for word in odd))
        done = A.run(["sh", "-c", "echo out; echo err >&2"])
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))

    def test_working_directory_and_environment_pass(self):
        done = A.run(["sh", "-c", "pwd; echo $HELLO"], env={"HELLO": "there"})
        self.assertEqual(done.stdout, "%s\nthere\n" % os.getcwd())

    def test_a_signal_reaches_the_command_once(self):
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            script = ("import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [%d])\nprint('ready', flush=True)\n"
                      "signal.sigwait([%d])\nprint('got', signal.sigtimedwait([%d], 0.3))\nsys.exit(9)\n" % ((signum,) * 3))
            with A.popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE) as process:
                self.assertEqual(process.stdout.readline(), b"ready\n")
                process.send_signal(signum)
                self.assertEqual(process.stdout.read(), b"got None\n")
                self.assertEqual(process.wait(10), 9)

    def test_the_command_dies_with_run(self):
        with A.popen(["sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.kill()
            self.assertTrue(select.select([process.stdout], [], [], 10)[0])  # the end: no holder of the pipe is left
            self.assertEqual(process.stdout.read(), b"")

    def test_a_terminal_passes_through(self):
        parent, child = pty.openpty()
        process = A.popen(["sh", "-c", "test -t 0 && test -t 1 && stty size && read line && echo got $line; exec sleep 600"],
                          stdin=child, stdout=child, stderr=child, start_new_session=True,
                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(child)
        output = b""

        def until(text):
            nonlocal output
            while text not in output:
                self.assertTrue(select.select([parent], [], [], 10)[0], output)
                output += os.read(parent, 4096)

        until(b"0 0\r\n")
        os.write(parent, b"hello\n")
        until(b"got hello\r\n")
        os.write(parent, b"\x03")
        self.assertEqual(process.wait(10), 130)
        os.close(parent)

    def test_a_closed_stdout_is_the_commands_affair(self):
        with A.popen(["yes"], stdout=subprocess.PIPE) as process:
            process.stdout.read(10)
            process.stdout.close()
            self.assertEqual(process.wait(10), 128 + signal.SIGPIPE)

    def test_run_says_what_helps(self):
        done = subprocess.run([harness.PROGRAM, "run", "--name", "lab-none", "--", "true"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("lab/lab up --name lab-none", done.stderr)
        for wrong in (["up", "--name", "../x"], ["up", "--nmae", "x"], ["raise"], ["run", "--name", "lab-a"], ["up", "--name"]):
            done = subprocess.run([harness.PROGRAM, *wrong], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), wrong)


class Life(unittest.TestCase):
    """up, mend, down: with a pool on a loop device and a bridge, which are what a crash leaves behind."""

    @classmethod
    def setUpClass(cls):
        A.must(["incus", "storage", "create", "p", "btrfs", "size=300MiB"])
        A.must(["incus", "network", "create", "br0", "ipv4.address=10.80.0.1/24", "ipv6.address=none"])

    def pids(self):
        return {part: (A.directory / part).read_text() for part in ("view.pid", "world.pid", "incusd.pid")}

    def assert_up_mends(self):
        A.up()
        self.assertTrue(A.stands())
        self.assertEqual(A.query("/1.0/storage-pools/p")["driver"], "btrfs")
        self.assertEqual(A.query("/1.0/networks/br0")["status"], "Created")
        self.assertIn("server 1.1.1.1", A.must(["curl", "-sS", "-m5", "http://1.1.1.1/"]).stdout)

    def test_up_twice_changes_nothing(self):
        before = self.pids()
        A.up()
        self.assertEqual(self.pids(), before)

    def test_up_mends_after_a_kill_of_each_part(self):
        for part in ("incusd.pid", "world.pid", "view.pid"):
            before = self.pids()
            os.kill(int(before[part].split()[0]), signal.SIGKILL)
            self.assert_up_mends()
            self.assertNotEqual(self.pids()[part], before[part])

    def test_up_mends_a_daemon_that_hangs(self):
        os.kill(int(self.pids()["incusd.pid"].split()[0]), signal.SIGSTOP)
        self.assert_up_mends()

    def test_up_mends_a_lost_link_and_route(self):
        A.must(["ip", "link", "del", "eth1"])
        A.must(["ip", "route", "del", "default"])
        self.assert_up_mends()
        self.assertEqual(A.run(["ping", "-n", "-c1", "-W2", "172.16.5.5"]).returncode, 0)

    def test_the_daemon_can_be_killed_and_restarted(self):
        pid = A.must(["cat", "/run/box-lab/incusd.pid"]).stdout.strip()
        self.assertEqual(A.must(["cat", "/proc/%s/comm" % pid]).stdout, "incusd\n")
        A.command("restart-daemon")
        self.assertNotEqual(A.must(["cat", "/run/box-lab/incusd.pid"]).stdout.strip(), pid)
        A.query("/1.0")
        A.command("kill-daemon")
        self.assertNotEqual(A.run(["incus", "query", "/1.0"]).returncode, 0)
        self.assertFalse(A.stands())
        self.assert_up_mends()

    def test_files_of_the_host_are_its_own_and_survive_a_crash(self):
        paths = ["/etc/box-lab-test", "/var/lib/box-lab-test", "/root/box-lab-test", "/home/box-lab-test"]
        A.must(["sh", "-c", "for f in \"$@\"; do echo mine >$f; done; echo other >/etc/hostname", "sh", *paths])
        self.assertEqual([path for path in paths if os.path.exists(path)], [])
        os.kill(int(self.pids()["view.pid"].split()[0]), signal.SIGKILL)
        self.assert_up_mends()
        self.assertEqual(A.must(["cat", *paths]).stdout, "mine\n" * 4)

    def test_two_labs_side_by_side(self):
        B.up()
        A.must(["sh", "-c", "echo a >/etc/whose"])
        B.must(["sh", "-c", "echo b >/etc/whose"])
        self.assertEqual(A.must(["cat", "/etc/whose"]).stdout + B.must(["cat", "/etc/whose"]).stdout, "a\nb\n")
        self.assertEqual(A.query("/1.0/storage-pools"), ["/1.0/storage-pools/p"])
        self.assertEqual(B.query("/1.0/storage-pools"), None)
        self.assertFalse(kernel_things(A) & kernel_things(B))
        spaces = kernel_things(B)
        B.down()
        self.assertEqual((traces(B), users_of(spaces)), ([], []))
        self.assert_up_mends()


class Uplink(unittest.TestCase):
    """The way out to the package registries, by which nothing else may leave."""

    @classmethod
    def setUpClass(cls):
        B.command("up", "--uplink")
        cls.registries = B.world()["uplink"]

    @classmethod
    def tearDownClass(cls):
        B.down()

    def test_registries_answer_at_public_addresses_of_the_world(self):
        self.assertTrue(self.registries)
        for row in self.registries:
            self.assertEqual(B.must(["getent", "ahostsv4", row["name"]]).stdout.split()[0], row["address"])
            for scheme in ("http", "https"):
                done = B.run(["curl", "-sS", "-m20", "-o", "/dev/null", "-w", "%{remote_ip} %{http_code}", scheme + "://" + row["name"]])
                self.assertRegex(done.stdout, re.escape(row["address"]) + r" [2345]\d\d", done.stderr)

    def test_apt_of_the_host_works_through_it(self):
        done = B.run(["apt-get", "update", "-q", "--error-on=any"], timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_else_leaves(self):
        real = json.loads((B.directory / "uplink.json").read_text())[0]["real"][0]
        self.assertNotEqual(B.run(["curl", "-sS", "-m2", "http://%s/" % real]).returncode, 0)
        self.assertNotEqual(B.run(["curl", "-sS", "-m2", "http://%s/" % real], world=True).returncode, 0)
        self.assertEqual(B.run(["curl", "-sS", "-m5", "http://%s:81/" % self.registries[0]["address"]]).returncode, 7)
        self.assertNotIn("tap0", B.must(["ip", "link"]).stdout)
        best = B.must(["ip", "route", "get", real], world=True).stdout
        self.assertIn("dev uplink", best)

    def test_up_without_it_takes_it_away(self):
        try:
            B.up()
            self.assertEqual(B.world()["uplink"], [])
            self.assertNotIn("tap0", B.must(["ip", "link"], world=True).stdout)
            self.assertNotEqual(B.run(["getent", "hosts", self.registries[0]["name"]]).returncode, 0)
        finally:
            B.command("up", "--uplink")


class Down(unittest.TestCase):
    def assert_down_leaves_nothing(self, crash):
        before, loops = machine(), loop_devices()
        B.up()
        B.must(["incus", "storage", "create", "p", "btrfs", "size=300MiB"])
        B.must(["incus", "network", "create", "br0", "ipv4.address=10.80.0.1/24", "ipv6.address=none"])
        B.must(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 </dev/null & mkdir /mnt/x 2>/dev/null; mount -t tmpfs none /mnt"])
        spaces = kernel_things(B)
        self.assertTrue(users_of(spaces))
        self.assertTrue(traces(B))
        ours = loop_devices() - loops
        self.assertTrue(any("/disks/p.img" in line for line in ours), ours)
        if crash:
            os.kill(int((B.directory / crash).read_text().split()[0]), signal.SIGKILL)
        B.down()
        self.assertEqual(traces(B), [])
        self.assertEqual(users_of(spaces), [])
        self.assertFalse([line for line in loop_devices() & ours if "/disks/p.img" in line])
        self.assertEqual(machine(), before)
        B.down()  # of what is not there: no complaint

    def test_down_leaves_nothing(self):
        self.assert_down_leaves_nothing(None)

    def test_down_leaves_nothing_after_a_crash_of_the_host(self):
        self.assert_down_leaves_nothing("view.pid")

    def test_down_leaves_nothing_after_a_crash_of_the_daemon(self):
        self.assert_down_leaves_nothing("incusd.pid")


if __name__ == "__main__":
    unittest.main()
