"""src/incus against a real daemon: requests, operations, files, images and, above all, exec.

Each test runs test/lab/incus_tool, which exposes the client's functions, on the lab's host. The guest is a container of one
static busybox, so nothing here needs an image, a network or a host that is set up.
"""

import hashlib
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness
import tinyimage

LAB = harness.Lab()
POOL = "clienttest"
GUEST = "clienttest"
MEBIBYTE = 1 << 20
DEVICES = {"root": {"type": "disk", "path": "/", "pool": POOL}}


def tool_path():
    path = Path(harness.binary()).parent.parent.parent / "test" / "lab" / "incus_tool"
    if not path.is_file():
        raise RuntimeError("%s is not built" % path)
    return str(path)


def tool(*arguments, **options):
    return LAB.run([tool_path(), *arguments], **options)


def ok(case, *arguments, **options):
    """Runs the tool, which must succeed without an error; returns its stdout."""
    done = tool(*arguments, **options)
    case.assertEqual((done.returncode, "error " in done.stderr), (0, False), done.stderr)
    return done.stdout


def execute(*command, options=(), **others):
    return tool("exec", GUEST, *options, "--", *command, **others)


def body(name, **more):
    return json.dumps({"name": name, "type": "container", "profiles": [], "devices": DEVICES,
                       "source": {"type": "image", "alias": "clienttest"}, **more})


def setUpModule():
    LAB.up()
    tearDownModule()
    tool("request", "POST", "/1.0/storage-pools", json.dumps({"name": POOL, "driver": "dir"}))
    with tempfile.TemporaryDirectory() as directory:
        metadata, rootfs = tinyimage.build(directory)
        imported = tool("import", str(metadata), str(rootfs), "clienttest", "kind=test")
        if imported.returncode:
            raise RuntimeError(imported.stderr)
    created = tool("create", body(GUEST, start=True))
    if created.returncode:
        raise RuntimeError(created.stderr)


def tearDownModule():
    for row in LAB.query("/1.0/instances?recursion=1") or []:
        if row["name"].startswith(GUEST):
            LAB.run(["incus", "delete", "--force", row["name"]])
    for alias in LAB.query("/1.0/images/aliases?recursion=1") or []:
        if alias["name"].startswith("clienttest"):
            LAB.run(["incus", "image", "delete", alias["target"]])
    LAB.run(["incus", "storage", "delete", POOL])


class Requests(unittest.TestCase):
    def test_server_is_described(self):
        self.assertRegex(ok(self, "server"), r"^[0-9.]+ containers=1 vms=[01] trusted=1 socket=/")

    def test_absent_instance_is_not_found_in_the_daemons_words(self):
        done = tool("instance", "nosuchbox")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error not-found http=404: Incus says: .*not found")

    def test_names_are_encoded(self):
        for name in ("a/b", "a?b=c", "a%2fb", "a b", "ä", "..", "a#b"):
            done = tool("instance", name)
            self.assertRegex(done.stderr, r"^error (not-found|refused) ", name)

    def test_filter_selects(self):
        ok(self, "patch", GUEST, json.dumps({"config": {"user.mark": "it"}}))
        found = json.loads(ok(self, "list", "config.user.mark eq it"))
        self.assertEqual([row["name"] for row in found], [GUEST])
        self.assertEqual(json.loads(ok(self, "list", "config.user.mark eq other")), [])

    def test_put_is_conditional(self):
        ok(self, "put", GUEST, "user.first=1")
        self.assertEqual(json.loads(ok(self, "instance", GUEST))["config"]["user.first"], "1")
        done = tool("put", GUEST, "user.second=2", "between")
        self.assertRegex(done.stderr, r"^error refused http=412")
        self.assertNotIn("user.second", json.loads(ok(self, "instance", GUEST))["config"])

    def test_put_of_a_plain_object_is_conditional(self):
        profile = json.dumps({"description": "told by the test", "config": {}, "devices": {}})
        ok(self, "request", "POST", "/1.0/profiles", json.dumps({"name": "clienttest"}))
        try:
            ok(self, "tagged", "/1.0/profiles/clienttest", profile)
            self.assertIn("told by the test", ok(self, "get", "/1.0/profiles/clienttest"))
            done = tool("tagged", "/1.0/profiles/clienttest", profile, "0badc0de")
            self.assertRegex(done.stderr, r"^error refused http=412")
        finally:
            ok(self, "request", "DELETE", "/1.0/profiles/clienttest")

    def test_project_of_the_environment_is_asked(self):
        done = tool("instance", GUEST, env={"INCUS_PROJECT": "no such"})
        self.assertRegex(done.stderr, r"^error not-found http=404: .*[Pp]roject")

    def test_trace_tells_each_request(self):
        done = tool("server", env={"INCUS_TOOL_TRACE": "1"})
        self.assertRegex(done.stderr, r"^trace: GET /1\.0: 200, \d+ ms\n$")


class Instances(unittest.TestCase):
    def test_life_of_an_instance(self):
        name = GUEST + "-life"
        ok(self, "create", body(name, start=True))
        self.assertEqual(json.loads(ok(self, "state", name))["status"], "Running")
        again = tool("create", body(name))
        self.assertRegex(again.stderr, r"^error exists ")
        ok(self, "change", name, "stop", "force")
        started = tool("exec", name, "--no-input", "--", "true")
        self.assertRegex(started.stderr, r"^error refused http=400: .*not running")
        ok(self, "rename", name, name + "2")
        ok(self, "snapshot", "create", name + "2", "s0")
        self.assertEqual([row["name"] for row in json.loads(ok(self, "snapshot", "list", name + "2"))], ["s0"])
        ok(self, "snapshot", "restore", name + "2", "s0")
        self.assertRegex(tool("snapshot", "restore", name + "2", "none").stderr, r"^error not-found ")
        ok(self, "snapshot", "delete", name + "2", "s0")
        ok(self, "delete", name + "2")
        self.assertRegex(tool("delete", name + "2").stderr, r"^error not-found ")

    def test_files_of_a_stopped_one(self):
        name = GUEST + "-cold"
        ok(self, "create", body(name))
        ok(self, "write", name, "/etc/machine-id", "cold\n")
        self.assertEqual(ok(self, "read", name, "/etc/machine-id", "100"), "cold\n")
        ok(self, "unlink", name, "/etc/machine-id")
        self.assertRegex(tool("read", name, "/etc/machine-id", "100").stderr, r"^error not-found ")
        ok(self, "delete", name)


class Operations(unittest.TestCase):
    def test_failure_is_told_in_the_daemons_words(self):
        done = tool("change", GUEST, "start")
        self.assertRegex(done.stderr, r"^error refused http=\d+: Incus says: .*already running")

    def waiting(self):
        """An operation that does not end by itself: an exec whose streams nobody opens for 10 s."""
        return ["operation", "POST", "/1.0/instances/%s/exec" % GUEST,
                json.dumps({"command": ["sleep", "100"], "wait-for-websocket": True})]

    def test_budget_ends_the_wait(self):
        start = time.monotonic()
        done = tool(*self.waiting(), "700")
        self.assertLess(time.monotonic() - start, 4)
        self.assertIn("error timeout http=0: Incus is not done after 1 s", done.stderr)
        self.assertRegex(done.stderr, r"ticks [2-4]\n")

    def test_signal_ends_the_wait(self):
        process = LAB.popen([tool_path(), *self.waiting(), "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"error interrupted", errors)

    def test_progress_is_narrated(self):
        """A backup that takes seconds, because gzip takes random bytes slowly."""
        execute("sh", "-c", "head -c 167772160 /dev/urandom > /root/random")
        backups = "/1.0/instances/%s/backups" % GUEST
        request = json.dumps({"name": "b0", "instance_only": True, "compression_algorithm": "gzip"})
        done = tool("operation", "POST", backups, request, "120000", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"narrated: .*[0-9]")
        self.assertRegex(done.stderr, r"ticks [1-9]")
        tool("operation", "DELETE", backups + "/b0")
        execute("rm", "/root/random")

    def test_transfer_is_narrated(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 200 * MEBIBYTE)
            file.flush()
            pushed = tool("push", GUEST, "/root/large", file.name, "0", "0", "0600", timeout=120)
        self.assertEqual(pushed.returncode, 0, pushed.stderr)
        self.assertRegex(pushed.stderr, r"narrated: \d+%, \d+ MB \([\d.]+ [MG]B/s\)")
        execute("rm", "/root/large")


class Files(unittest.TestCase):
    def test_owner_and_mode(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"owned")
            file.flush()
            ok(self, "push", GUEST, "/home/dev/owned", file.name, "1000", "1000", "0640")
        self.assertEqual(execute("stat", "-c", "%u %g %a %s", "/home/dev/owned").stdout, "1000 1000 640 5\n")

    def test_large_file_both_ways(self):
        data = os.urandom(120 * MEBIBYTE)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            pushed = tool("push", GUEST, "/root/large", file.name, "0", "0", "0600", timeout=120)
        self.assertEqual(pushed.returncode, 0, pushed.stderr)
        pulled = tool("pull", GUEST, "/root/large", text=False, timeout=120)
        self.assertEqual(hashlib.sha256(pulled.stdout).hexdigest(), hashlib.sha256(data).hexdigest())
        ok(self, "unlink", GUEST, "/root/large")

    def test_odd_names(self):
        for name in ("/tmp/a b", "/tmp/ä&b=c", "/tmp/a%2fb", "/tmp/q?x#y+z"):
            ok(self, "write", GUEST, name, "it")
            self.assertEqual(execute("cat", name).stdout, "it")
            self.assertEqual(ok(self, "read", GUEST, name, "10"), "it")
            ok(self, "unlink", GUEST, name)

    def test_ceiling(self):
        ok(self, "write", GUEST, "/tmp/ten", "0123456789")
        self.assertEqual(ok(self, "read", GUEST, "/tmp/ten", "10"), "0123456789")
        self.assertRegex(tool("read", GUEST, "/tmp/ten", "9").stderr, r"^error system .*larger than 9 bytes")
        execute("dd", "if=/dev/zero", "of=/tmp/big", "bs=1M", "count=2")
        self.assertRegex(tool("read", GUEST, "/tmp/big", "100").stderr, r"^error system .*larger than")

    def test_links_are_followed_within_the_guest(self):
        execute("sh", "-c", "cd /tmp && mkdir -p d && echo inner > d/f && ln -sf d/f l1 && ln -sf l1 l2 &&"
                            "ln -sf loop loop && ln -sfn /etc hostetc")
        self.assertEqual(ok(self, "read", GUEST, "/tmp/l2", "100"), "inner\n")
        self.assertEqual(ok(self, "pull", GUEST, "/tmp/l2"), "inner\n")
        self.assertRegex(tool("read", GUEST, "/tmp/loop", "100").stderr, r"^error system .*symbolic links")
        self.assertIn("inittab", json.loads(ok(self, "ls", GUEST, "/tmp/hostetc")))

    def test_what_is_no_file(self):
        self.assertRegex(tool("read", GUEST, "/etc", "1000").stderr, r"^error system .*not a regular file")
        self.assertRegex(tool("pull", GUEST, "/etc").stderr, r"^error system .*not a regular file")
        self.assertRegex(tool("ls", GUEST, "/etc/passwd").stderr, r"^error system .*not a directory")

    def test_deleting_what_is_absent(self):
        ok(self, "unlink", GUEST, "/tmp/never")
        self.assertRegex(tool("unlink", GUEST + "-none", "/tmp/never").stderr, r"^error not-found ")


class Images(unittest.TestCase):
    def test_alias_moves_and_the_older_image_goes(self):
        with tempfile.TemporaryDirectory() as directory:
            metadata, rootfs = tinyimage.build(directory)
            first = ok(self, "import", str(metadata), str(rootfs), "clienttest-a", "n=1", "text=ä & b").strip()
            again = ok(self, "import", str(metadata), str(rootfs), "clienttest-b").strip()
            self.assertEqual(first, again, "the same bytes are the same image")
            image = json.loads(ok(self, "alias", "clienttest-b", "container"))
            self.assertEqual(image["fingerprint"], first)
            self.assertRegex(tool("alias", "clienttest-b", "virtual-machine").stderr, r"^error not-found ")
            with open(metadata, "ab") as file:
                file.write(b"\0" * 10240)  # another fingerprint, the same archive
            second = ok(self, "import", str(metadata), str(rootfs), "clienttest-a", "n=2", "text=ä & b").strip()
            self.assertNotEqual(first, second)
            ok(self, "import", str(metadata), str(rootfs), "clienttest-b")
        image = json.loads(ok(self, "alias", "clienttest-a"))
        self.assertEqual((image["fingerprint"], image["properties"]["text"]), (second, "ä & b"))
        known = [image["fingerprint"] for image in json.loads(ok(self, "images"))]
        self.assertEqual((second in known, known.count(first)), (True, 1 if first in kept_by_others(first) else 0))
        ok(self, "image-delete", second)
        self.assertRegex(tool("alias", "clienttest-a").stderr, r"^error not-found ")


def kept_by_others(fingerprint):
    """The module's own alias names the same bytes, and keeps them."""
    return [alias["target"] for alias in LAB.query("/1.0/images/aliases?recursion=1") if alias["target"] == fingerprint]


class Exec(unittest.TestCase):
    def test_every_exit_status(self):
        for status in (0, 1, 2, 77, 125, 128, 130, 254, 255):
            done = execute("sh", "-c", "exit %d" % status)
            self.assertEqual((done.returncode, done.stderr), (status, ""))

    def test_signalled_command(self):
        for number in (1, 2, 9, 15):
            done = execute("sh", "-c", "kill -%d $$" % number)
            self.assertEqual((done.returncode, done.stderr), (128 + number, ""))

    def test_not_found_and_not_executable(self):
        self.assertEqual([execute("no-such-command").returncode, execute("/etc/passwd").returncode], [127, 126])

    def test_arguments_arrive_byte_for_byte(self):
        arguments = ["$HOME", "", "a\nb", "\n", ";", "*", "ü€", "'\"\\", "-n", "%s", " x ", "\t", "\x01"]
        done = execute("sh", "-c", 'for a in "$@"; do printf "%s\\0" "$a"; done', "sh", *arguments, text=False)
        self.assertEqual(done.stdout.split(b"\0")[:-1], [os.fsencode(a) for a in arguments])

    def test_arguments_that_are_not_utf8(self):
        raw = [b"\xff", b"a\xfe\n\n", b"plain", b"\x80 %s \\n '", b"", "ä".encode(), b"\xc3", b"$x`\xfd`"]
        done = execute("sh", "-c", 'for a in "$@"; do printf "%s\\0" "$a"; done', "sh", *map(os.fsdecode, raw),
                       text=False)
        self.assertEqual(done.stdout.split(b"\0")[:-1], raw)
        self.assertEqual(execute(os.fsdecode(b"nope\xff")).returncode, 127)

    def test_user_directory_and_environment(self):
        done = execute("sh", "-c", "id -u; id -g; pwd; echo $WORD",
                       options=["--user", "1000", "--cwd", "/home/dev", "--env", "WORD=a b=c"])
        self.assertEqual(done.stdout, "1000\n1000\n/home/dev\na b=c\n")

    def test_streams_stay_apart(self):
        done = execute("sh", "-c", "echo out; echo err >&2; echo out2")
        self.assertEqual((done.stdout, done.stderr), ("out\nout2\n", "err\n"))

    def test_input_ends(self):
        self.assertEqual(execute("cat", input="").stdout, "")
        self.assertEqual(execute("cat").stdout, "", "/dev/null")
        self.assertEqual(execute("wc", "-c", input="x" * 100000).stdout.strip(), "100000")
        self.assertEqual(execute("cat", options=["--no-input"], input="ignored").stdout, "")

    def test_closed_descriptors(self):
        for closing, command, status in (("<&-", "cat", 0), (">&-", "echo x", 1), ("2>&-", "sh -c 'echo x >&2'", 0)):
            line = "%s exec %s -- %s %s" % (tool_path(), GUEST, command, closing)
            done = LAB.run(["sh", "-c", line])
            self.assertEqual((done.returncode, done.stdout), (status, ""), line)

    def test_200_mib_out(self):
        ask = "head -c 209715200 /dev/urandom > /root/200; sha256sum < /root/200"
        expected = execute("sh", "-c", ask, timeout=120).stdout.split()[0]
        digest = hashlib.sha256()
        process = LAB.popen([tool_path(), "exec", GUEST, "--", "cat", "/root/200"], stdout=subprocess.PIPE)
        for chunk in iter(lambda: process.stdout.read(MEBIBYTE), b""):
            digest.update(chunk)
        process.stdout.close()
        self.assertEqual((process.wait(60), digest.hexdigest()), (0, expected))
        execute("rm", "/root/200")

    def test_200_mib_in(self):
        data = os.urandom(200 * MEBIBYTE)
        done = execute("sha256sum", input=data, text=False, timeout=120)
        self.assertEqual(done.stdout.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_both_ways_at_once(self):
        data = os.urandom(40 * MEBIBYTE)
        done = execute("cat", input=data, text=False, timeout=120)
        self.assertEqual(hashlib.sha256(done.stdout).digest(), hashlib.sha256(data).digest())

    def test_slow_reader_gets_everything(self):
        process = LAB.popen([tool_path(), "exec", GUEST, "--", "head", "-c", str(6 * MEBIBYTE), "/dev/zero"],
                            stdout=subprocess.PIPE)
        time.sleep(2.5)  # longer than the grace after the command's end: a slow reader is no gone one
        total = sum(len(chunk) for chunk in iter(lambda: process.stdout.read(MEBIBYTE), b""))
        process.stdout.close()
        self.assertEqual((process.wait(30), total), (0, 6 * MEBIBYTE))

    def test_reader_that_leaves_early(self):
        line = "%s exec %s -- yes | head -n 1" % (tool_path(), GUEST)
        done = LAB.run(["sh", "-c", line], timeout=30)
        self.assertEqual(done.stdout, "y\n")
        self.assertEqual(execute("pidof", "yes").returncode, 1, "the guest's command heard of it")

    def test_guest_that_reads_no_input(self):
        line = "yes | %s exec %s -- head -n 1" % (tool_path(), GUEST)
        done = LAB.run(["sh", "-c", line], timeout=30)
        self.assertEqual((done.stdout, done.returncode), ("y\n", 0))

    def test_background_child_does_not_hold_us(self):
        start = time.monotonic()
        done = execute("sh", "-c", "echo before; sleep 30 & echo after")
        self.assertEqual(done.stdout, "before\nafter\n")
        self.assertLess(time.monotonic() - start, 5)
        execute("killall", "sleep")

    def test_capture_has_a_ceiling(self):
        done = execute("sh", "-c", "echo 0123456789; echo oops >&2", options=["--capture", "4"])
        self.assertEqual(done.stdout, "0123")
        self.assertIn("captured 4 4\n", done.stderr)

    def test_budget_kills(self):
        start = time.monotonic()
        done = execute("sleep", "100", options=["--budget", "700", "--ticks"])
        self.assertLess(time.monotonic() - start, 4)
        self.assertRegex(done.stderr, r"error timeout .*sleep did not end within 1 s and was killed")
        self.assertRegex(done.stderr, r"ticks [2-4]\n")
        self.assertEqual(self.wait_gone("sleep"), 1)

    def wait_gone(self, name):
        for _ in range(30):
            status = execute("pidof", name).returncode
            if status == 1:
                break
            time.sleep(0.1)
        return status

    def start(self, *arguments):
        process = LAB.popen([tool_path(), "exec", GUEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return process

    def test_signals_reach_the_command(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("--", "sh", "-c", "trap 'echo got %d; exit 42' %d; echo ready; while :; do sleep 0.1; done"
                                 % (number, number))
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            out, _ = process.communicate(timeout=10)
            self.assertEqual((out, process.returncode), (b"got %d\n" % number, 42))

    def test_second_signal_kills_us_and_with_us_the_command(self):
        process = self.start("--", "sh", "-c", "trap '' 15; echo ready; exec sleep 60")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the command ignores it, so we go on")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        self.assertIn(process.returncode, (-signal.SIGTERM, 128 + signal.SIGTERM))
        self.assertEqual(self.wait_gone("sleep"), 1)

    def test_signal_ends_a_captured_command(self):
        process = self.start("--capture", "100", "--", "sh", "-c", "trap '' 2; sleep 50")
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        self.assertIn(b"error interrupted", errors)
        self.assertEqual(self.wait_gone("sleep"), 1)

    def test_killed_client_takes_the_command_along(self):
        process = self.start("--", "sh", "-c", "echo ready; exec sleep 60")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.kill()
        process.communicate(timeout=10)
        self.assertEqual(self.wait_gone("sleep"), 1)

    def test_full_disk_is_an_error(self):
        done = LAB.run(["sh", "-c", "%s exec %s -- head -c 100000 /dev/zero > /dev/full" % (tool_path(), GUEST)])
        self.assertRegex(done.stderr, r"^error system .*No space left")

    def test_inherited_stdout_stays_blocking(self):
        reader, writer = os.pipe()
        process = LAB.popen([tool_path(), "exec", GUEST, "--", "echo", "x"], stdout=writer)
        self.assertEqual(process.wait(10), 0)
        self.assertTrue(os.get_blocking(writer))
        os.close(reader)
        os.close(writer)

    def test_many_at_once(self):
        running = [self.start("--", "sh", "-c", "cat > /dev/null; echo %d; exit %d" % (n, n)) for n in range(12)]
        for number, process in enumerate(running):
            out, errors = process.communicate(timeout=60)
            self.assertEqual((out, errors, process.returncode), (b"%d\n" % number, b"", number))


class Terminal(unittest.TestCase):
    """An interactive session on a pty of our own."""

    def session(self, *command):
        child, master = pty.fork()
        if child == 0:
            argv = LAB.argv([tool_path(), "exec", GUEST, "--interactive", "--env", "TERM=vt100", "--", *command])
            os.execv(argv[0], argv)
        self.addCleanup(os.close, master)
        self.child, self.master, self.seen = child, master, b""

    def expect(self, text, budget=10):
        deadline = time.monotonic() + budget
        while text not in self.seen:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                self.fail("no %r within %d s in %r" % (text, budget, self.seen))
            try:
                chunk = os.read(self.master, 65536)
            except OSError:
                chunk = b""
            if not chunk:
                self.fail("the session ended without %r: %r" % (text, self.seen))
            self.seen += chunk
        self.seen = self.seen[self.seen.index(text) + len(text):]

    def finish(self, budget=10):
        deadline = time.monotonic() + budget
        while time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    pass
            done, status = os.waitpid(self.child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        return self.fail("the session did not end: %r" % self.seen)

    def modes(self):
        import termios
        return termios.tcgetattr(self.master)

    def resize(self, columns, rows):
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def test_a_shell(self):
        self.session("sh", "-c", "stty -echo; echo ready; read a; echo \"[$a]\"; tty; exit 7")
        self.expect(b"ready")
        os.write(self.master, b"hello\r")
        self.expect(b"[hello]")
        self.expect(b"/dev/pts/")
        self.assertEqual(self.finish(), 7)

    def test_modes_come_back(self):
        self.session("sh", "-c", "echo ready; read a")
        self.expect(b"ready")
        import termios
        self.assertFalse(self.modes()[3] & termios.ICANON, "raw meanwhile")
        os.write(self.master, b"\r")
        while os.waitpid(self.child, os.WNOHANG)[0] == 0:
            time.sleep(0.02)
        self.assertTrue(self.modes()[3] & termios.ICANON)

    def test_interrupt_key_goes_to_the_guest(self):
        self.session("sh", "-c", "trap 'echo trapped; exit 3' INT; echo ready; while :; do sleep 0.1; done")
        self.expect(b"ready")
        os.write(self.master, b"\x03")
        self.expect(b"trapped")
        self.assertEqual(self.finish(), 3)

    def test_window_follows(self):
        self.session("sh", "-c", "echo ready; while read a; do stty size; done")
        self.expect(b"ready")
        self.resize(91, 37)
        time.sleep(0.3)
        os.write(self.master, b"\r")
        self.expect(b"37 91")
        os.write(self.master, b"\x04")
        self.assertEqual(self.finish(), 0)

    def test_term_restores(self):
        import termios
        self.session("sh", "-c", "echo ready; sleep 60")
        self.expect(b"ready")
        os.kill(self.child, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while os.waitpid(self.child, os.WNOHANG)[0] == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.assertTrue(self.modes()[3] & termios.ICANON)

    def test_large_output_through_a_pty(self):
        self.session("sh", "-c", "seq 1 60000; echo THE END")
        self.expect(b"\r\n59999\r\n60000\r\nTHE END", 60)
        self.assertEqual(self.finish(), 0)

    def test_without_a_terminal_it_is_refused(self):
        done = execute("sh", options=["--interactive"])
        self.assertRegex(done.stderr, r"^error usage .*needs a terminal")


class DaemonGone(unittest.TestCase):
    """The daemon dies under us. Last, for the lab mends itself afterwards."""

    def tearDown(self):
        LAB.up()

    def test_killed_under_an_exec(self):
        process = LAB.popen([tool_path(), "exec", GUEST, "--", "sh", "-c", "echo ready; sleep 60"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        LAB.command("kill-daemon")
        _, errors = process.communicate(timeout=15)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, rb"error no-daemon ")

    def test_killed_under_a_wait(self):
        process = LAB.popen([tool_path(), *Operations.waiting(self), "0"], stderr=subprocess.PIPE)
        time.sleep(0.5)
        LAB.command("kill-daemon")
        _, errors = process.communicate(timeout=15)
        self.assertRegex(errors, rb"error no-daemon ")

    def test_absent_and_back(self):
        process = LAB.popen([tool_path(), "again", "/1.0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ok\n")
        LAB.command("kill-daemon")
        done = tool("server")
        self.assertRegex(done.stderr, r"^error no-daemon .*not running")
        self.assertIn("remedy: ", done.stderr)
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"no-daemon\n")
        LAB.up()
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"ok\n", "the same client finds the daemon again")
        process.communicate(timeout=10)


class Denied(unittest.TestCase):
    """Who may not open the socket, and why. Users and groups are the lab's own."""

    def as_user(self, groups):
        inner = tool_path()
        copied = "/run/incus_tool"
        LAB.must(["install", "-m", "755", inner, copied])
        return LAB.run(["setpriv", "--reuid=%s" % self.uid, "--regid=%s" % self.uid, *groups, copied, "server"])

    def setUp(self):
        LAB.run(["useradd", "--no-create-home", "clienttest"])
        self.uid = LAB.must(["id", "-u", "clienttest"]).stdout.strip()
        socket = ok(self, "server").split("socket=")[1].strip()
        self.group = LAB.must(["stat", "-L", "-c", "%G", socket]).stdout.strip()

    def tearDown(self):
        LAB.run(["userdel", "clienttest"])

    def test_not_in_the_group(self):
        done = self.as_user(["--clear-groups"])
        self.assertRegex(done.stderr, r"^error denied .*clienttest .*not in the group " + self.group)
        self.assertIn("usermod -aG %s clienttest" % self.group, done.stderr)

    def test_session_older_than_the_membership(self):
        LAB.must(["usermod", "-aG", self.group, "clienttest"])
        done = self.as_user(["--clear-groups"])
        self.assertRegex(done.stderr, r"^error denied .*this session is older")
        self.assertIn("newgrp %s" % self.group, done.stderr)
        self.assertEqual(self.as_user(["--init-groups"]).returncode, 0, "a session that holds the group")


if __name__ == "__main__":
    unittest.main()
