"""The installer of packages: what it asks for on which machine, whose mirror it uses, and that it waits for apt aloud."""

import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import harness

LAB = harness.Lab("lab-deps")
DEPS = str(harness.ROOT / "scripts" / "deps")
INCUS = {"incus-base", "incus"}


def deps(*arguments, root=""):
    return subprocess.run([DEPS, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ROOT": root})


class Elsewhere(unittest.TestCase):
    """Another machine's /etc in a directory."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def machine(self, distribution, version, **sources):
        (self.root / "etc/apt/sources.list.d").mkdir(parents=True, exist_ok=True)
        (self.root / "etc/os-release").write_text('ID=%s\nVERSION_ID="%s"\n' % (distribution, version))
        for name, text in sources.items():
            where = "etc/apt/sources.list" if name == "main" else "etc/apt/sources.list.d/" + name.replace("_", ".")
            (self.root / where).write_text(text)
        return str(self.root)

    def test_each_distribution_has_its_list(self):
        for distribution, version, clang in (("debian", "12", "14"), ("debian", "13", "19"), ("ubuntu", "24.04", "18")):
            done = deps("--list", root=self.machine(distribution, version))
            listed = done.stdout.split()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("libclang-rt-%s-dev" % clang, listed)
            self.assertTrue(INCUS & set(listed))
            self.assertTrue({"gcc", "meson", "libwslay-dev", "btrfs-progs", "nftables", "mmdebstrap"} <= set(listed))
            self.assertEqual(len(listed), len(set(listed)))

    def test_another_distribution_gets_the_list_and_a_failure(self):
        done = deps(root=self.machine("plan9", "4"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("'plan9 4'", done.stderr)
        self.assertEqual(done.stdout, deps("--list", root=str(self.root)).stdout)

    def test_a_source_in_the_new_format_keeps_mirror_keys_and_options(self):
        stanza = ("# a comment\nTypes: deb deb-src\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
                  "Components: main contrib\nArchitectures: amd64\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n")
        other = "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n"
        off = "Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\n"
        done = deps("--source", root=self.machine("debian", "12", a_sources=off + "\n" + other + "\n" + stanza))
        self.assertEqual((done.stdout, done.returncode), (
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
            "Architectures: amd64\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n", 0))

    def test_a_source_in_the_old_format_does_so_too(self):
        lines = ("# deb http://off.example/debian bookworm main\ndeb-src http://src.example/debian bookworm main\n"
                 "deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://mirror.example/debian/ bookworm main contrib\n")
        done = deps("--source", root=self.machine("debian", "12", main=lines))
        self.assertEqual(done.stdout, "deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://mirror.example/debian/ "
                                      "bookworm-backports main\n")
        (self.root / "etc/apt/sources.list").write_text("deb http://plain.example/debian bookworm main\n")
        self.assertEqual(deps("--source", root=str(self.root)).stdout,
                         "deb http://plain.example/debian bookworm-backports main\n")

    def test_a_machine_without_a_source_of_its_release_is_told_so(self):
        done = deps("--source", root=self.machine("debian", "12", main="deb http://mirror.example/debian sid main\n"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("bookworm-backports", done.stderr)


class Here(unittest.TestCase):
    def test_nothing_changes_where_all_is_there(self):
        status = Path("/var/lib/dpkg/status")
        before = (status.stat().st_mtime_ns, sorted(Path("/etc/apt/sources.list.d").iterdir()))
        done = deps()
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual((status.stat().st_mtime_ns, sorted(Path("/etc/apt/sources.list.d").iterdir())), before)
        self.assertEqual(deps("--missing").stdout, "")

    def test_a_wrong_argument_is_refused(self):
        done = deps("--nonsense")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage:", done.stderr)


class Lock(unittest.TestCase):
    """On the lab's host, whose package database is its own: a package is missing, and another holds the lock."""

    def test_the_holder_of_the_lock_is_named_and_the_wait_is_bounded(self):
        LAB.up()
        self.addCleanup(LAB.down)
        LAB.must(["sed", "-i", "/^Package: slirp4netns$/,/^$/s/^Status: .*/Status: deinstall ok config-files/",
                  "/var/lib/dpkg/status"])
        self.assertEqual(LAB.must([DEPS, "--missing"]).stdout, "slirp4netns\n")
        hold = ("import fcntl, os, sys\nf = open('/var/lib/dpkg/lock-frontend', 'w')\nfcntl.lockf(f, fcntl.LOCK_EX)\n"
                "print(os.getpid(), flush=True)\nsys.stdin.read()\n")
        with LAB.popen(["/usr/bin/python3", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            pid = holder.stdout.readline().decode().strip()
            begun = time.monotonic()
            done = LAB.run([DEPS], env={"BOX_DEPS_LOCK_SECONDS": "2"})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertLess(time.monotonic() - begun, 30)
            self.assertIn("installing slirp4netns: ", done.stderr)
            self.assertIn("held by process %s (/usr/bin/python3" % pid, done.stderr)
            self.assertIn("still held after 2 s", done.stderr)
            holder.stdin.close()
            self.assertEqual(holder.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
