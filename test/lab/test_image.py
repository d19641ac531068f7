"""`box image build|list|rm`: the cache, the daemon's store, what an interrupted build leaves, and what a box of the image
is like. Builds use the machine's own network and cache, which the labs share."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness

LAB = harness.Lab()
PREFIX = "image-"
CACHE = Path("/var/cache/box/images")


def setUpModule():
    LAB.ready()
    LAB.remove_boxes(PREFIX)


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def cached():
    """The finished images of containers: name to the time of its last change."""
    return {path.name: path.stat().st_mtime_ns for path in CACHE.iterdir() if path.suffix == ".squashfs"}


def work():
    """What builds that are under way, or were killed, have there."""
    return [path.name for path in CACHE.iterdir() if path.name.startswith(".build-")]


def mounts():
    return [line for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if str(CACHE) in line]


def children(pid):
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.split()[1] == str(pid)]


class Build:
    """A forced build on the machine itself, read line by line."""

    def __init__(self):
        self.process = subprocess.Popen([harness.binary(), "image", "build", "--force", "--no-import"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.words = ""

    def wait_for(self, word):
        while word not in self.words:
            line = self.process.stderr.readline().decode()
            if not line:
                raise AssertionError("it ended: " + self.words)
            self.words += line
        return self

    def wait_for_work(self):
        """Until packages are being unpacked; what it narrates of that depends on how fast the machine is."""
        while not list(CACHE.glob(".build-*/root/usr/bin/dpkg")):
            if self.process.poll() is not None:
                raise AssertionError("it ended: " + self.words + self.process.stderr.read().decode())
            time.sleep(0.05)
        return self

    def end(self, number, timeout=30):
        self.process.send_signal(number)
        out, rest = self.process.communicate(timeout=timeout)
        self.words += rest.decode()
        return self.process.returncode, out.decode()


class Building(unittest.TestCase):
    def test_what_the_cache_has_is_not_built_again(self):
        before = cached()
        done = LAB.box("image", "build", "debian/13")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in the cache, built", done.stderr)
        self.assertIn("Incus has this very image already", done.stderr)
        self.assertRegex(done.stdout, r"^debian/13 [0-9a-f]{12}\n$")
        self.assertEqual(cached(), before)

    def test_without_import_it_needs_no_daemon(self):
        done = LAB.box("image", "build", "--no-import", env={"INCUS_SOCKET": "/nonexistent"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(Path(done.stdout.strip()).is_file())

    def test_without_a_daemon_it_says_so_before_it_builds(self):
        done = LAB.box("image", "build", "--force", env={"INCUS_SOCKET": "/nonexistent"}, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("to be imported", done.stderr)

    def test_an_image_that_has_no_recipe(self):
        done = LAB.box("image", "build", "debian/99")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("debian/13", done.stderr)

    def test_needs_root_to_build_and_not_to_look(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            program = Path(directory) / "box"
            program.write_bytes(Path(harness.binary()).read_bytes())
            program.chmod(0o755)
            Path(directory).chmod(0o755)
            run = lambda *words: subprocess.run([program, "image", "build", "--no-import", *words], user=65534, group=65534,
                                                extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                                timeout=30, check=False)
            self.assertEqual(run().returncode, 0)
            done = run("--force")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("sudo box image build", done.stderr)

    def test_a_bad_mirror(self):
        done = LAB.box("image", "build", "--no-import", env={"BOX_MIRROR": "ftp://mirror.example/debian"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("BOX_MIRROR", done.stderr)

    def test_a_mirror_for_boxes_is_another_image(self):
        """Another mirror must not find this image; without root it says that it would have to build."""
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", harness.binary(), "image",
                               "build", "--no-import"], env={**os.environ, "BOX_MIRROR": "http://mirror.example/debian"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("needs root", done.stderr)


class Interrupted(unittest.TestCase):
    """The cache keeps what it had, and nothing of the build is left: no file, no mount, no process."""

    def setUp(self):
        self.before = cached()

    def kept(self):
        """What was there is there as it was; another box on this machine may have built one more."""
        now = cached()
        self.assertEqual({name: now.get(name) for name in self.before}, self.before)

    def clean(self):
        self.kept()
        self.assertEqual((work(), mounts()), ([], []))

    def test_by_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            build = Build().wait_for_work()
            self.assertTrue(children(build.process.pid))
            status, out = build.end(number)
            self.assertEqual((status, out), (1, ""), build.words)
            self.assertIn("interrupted", build.words)
            self.assertEqual(children(build.process.pid), [])
            self.clean()

    def test_killed_and_swept_by_the_next(self):
        build = Build().wait_for_work()
        build.end(signal.SIGKILL)
        self.kept()
        left = work()
        build = Build().wait_for("installing")
        deadline = time.monotonic() + 120
        while set(left) & set(work()) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertFalse(set(left) & set(work()))
        build.end(signal.SIGINT)
        self.clean()

    def test_a_second_one_waits_and_says_so(self):
        first = Build().wait_for("installing")
        second = Build().wait_for("waiting for another build")
        self.assertEqual(second.end(signal.SIGINT)[0], 1)
        self.assertIsNone(first.process.poll())
        first.end(signal.SIGINT)
        self.clean()


class Store(unittest.TestCase):
    def test_lists(self):
        done = LAB.box("image", "list")
        self.assertRegex(done.stdout, r"(?m)^IMAGE +FINGERPRINT +TYPE +SIZE +AGE +DESCRIPTION$")
        self.assertRegex(done.stdout, r"(?m)^debian/13 +[0-9a-f]{12} +container +\d+ MiB ")
        images = json.loads(LAB.box("image", "list", "--json").stdout)
        image, = (image for image in images if image["alias"] == harness.IMAGE)
        self.assertEqual((image["type"], image["built"]), ("container", True))
        self.assertGreater(image["size"], 50_000_000)

    def test_removes_by_alias_and_by_fingerprint_and_imports_again(self):
        for chosen in (lambda image: image["alias"], lambda image: image["fingerprint"][:12]):
            images = json.loads(LAB.box("image", "list", "--json").stdout)
            image, = (image for image in images if image["alias"] == harness.IMAGE)
            refused = LAB.box("image", "rm", chosen(image))
            self.assertEqual(refused.returncode, 2)
            self.assertIn("--force", refused.stderr)
            done = LAB.box("image", "rm", "--force", chosen(image))
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertFalse([row for row in json.loads(LAB.box("image", "list", "--json").stdout)
                              if row["fingerprint"] == image["fingerprint"]])
            self.assertEqual(LAB.box("image", "build", timeout=300).returncode, 0)

    def test_what_is_not_there(self):
        for name in ("debian/99", "abcdef012345", "abc", "*"):
            done = LAB.box("image", "rm", "--force", name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("no such image", done.stderr)


class Inside(unittest.TestCase):
    """What a box of the image is like."""

    @classmethod
    def setUpClass(cls):
        for name in ("image-a", "image-b"):
            done = LAB.box("new", name, timeout=300)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)

    def inside(self, script, name="image-a"):
        done = LAB.box("exec", name, "--", "sudo", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_every_unit_is_well(self):
        self.assertEqual(self.inside("systemctl --failed --no-legend --plain"), "")
        self.assertEqual(self.inside("systemctl is-system-running || true"), "running")
        self.assertEqual(self.inside("cloud-init status || true"), "status: done")

    def test_listens_to_nobody(self):
        listening = [line.split()[4] for line in self.inside("ss -Hlntu").splitlines()]
        open_ones = [address for address in listening if not address.startswith("127.") and not address.endswith(":68")]
        self.assertTrue(listening)
        self.assertEqual(open_ones, [])

    def test_two_boxes_share_no_identity(self):
        for script in ("cat /etc/machine-id", "cat /etc/ssh/ssh_host_ed25519_key.pub", "hostname",
                       "cat /sys/class/net/eth0/address", "ip -4 -o address show dev eth0 scope global"):
            pair = [self.inside(script, name) for name in ("image-a", "image-b")]
            self.assertTrue(all(pair), script)
            self.assertNotEqual(*pair, script)

    def test_sshd_is_there_for_who_opens_a_stream_to_it(self):
        self.assertEqual(self.inside("test -x /usr/sbin/sshd && /usr/sbin/sshd -t && echo well"), "well")
        self.assertEqual(self.inside("systemctl is-enabled ssh.service ssh.socket || true"), "masked\nmasked")

    def test_its_apt_uses_the_machines_mirror(self):
        sources = self.inside("cat /etc/apt/sources.list.d/debian.sources")
        uris = [line.split()[1] for line in sources.splitlines() if line.startswith("URIs:")]
        machine = "".join(path.read_text(encoding="utf-8") for path in
                          [*Path("/etc/apt").glob("sources.list"), *Path("/etc/apt/sources.list.d").iterdir()])
        self.assertTrue(uris)
        for uri in uris if "BOX_MIRROR" not in os.environ else []:
            self.assertIn(uri, machine)
        self.assertIn("trixie-updates", sources)

    def test_carries_nothing_of_the_machine_that_built_it(self):
        self.assertEqual(self.inside("cat /etc/hostname"), "image-a")
        self.assertEqual(self.inside("readlink /etc/resolv.conf"), "../run/systemd/resolve/stub-resolv.conf")
        self.assertEqual(self.inside("ls /var/lib/apt/lists | grep -c _ || true"), "0")
        self.assertEqual(self.inside("ls /etc/ssh | grep -c rsa || true"), "0")

    def test_knows_the_terminals_that_people_use(self):
        for term in ("xterm-256color", "tmux-256color", "screen-256color", "alacritty", "foot"):
            self.assertEqual(self.inside(f"infocmp {term} >/dev/null && echo known"), "known", term)
        self.assertEqual(self.inside(". /etc/default/locale; echo $LANG"), "C.UTF-8")


if __name__ == "__main__":
    unittest.main()
