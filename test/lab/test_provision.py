"""setup-host on a host without Incus: what it would install, and that it asks apt for exactly that. The package manager is
the test's own: the machine's packages are not the lab's.
"""

import unittest

import harness

LAB = harness.Lab("provision")
FAKE = "/root/fake"
# In mounts of its own the daemon's program is hidden; the daemon itself goes on, as one that was just installed.
HIDDEN = ("mount -t tmpfs none /usr/libexec/incus && mount --bind %s/os-release /usr/lib/os-release && "
          "PATH=%s:/usr/sbin:/usr/bin:/sbin:/bin exec \"$@\"" % (FAKE, FAKE))
RELEASES = {
    "debian bookworm": "incus-base incus-client",
    "debian trixie": "incus-base incus-client",
    "ubuntu noble": "incus-base incus-client",
}


def setUpModule():
    LAB.up()
    LAB.must(["mkdir", "-p", FAKE])
    for name, text in (("apt-get", 'echo "$*" >> %s/log' % FAKE), ("apt-cache", "exit 0")):
        LAB.must(["bash", "-c", "cat > %s/%s; chmod 755 %s/%s" % (FAKE, name, FAKE, name)], input="#!/bin/sh\n%s\n" % text)


def tearDownModule():
    LAB.run(["rm", "-rf", FAKE, "/etc/apt/sources.list.d/box-backports.list"])


def setup(release, *more):
    identity, codename = release.split()
    LAB.must(["bash", "-c", "rm -f %s/log; cat > %s/os-release" % (FAKE, FAKE)],
             input="ID=%s\nVERSION_CODENAME=%s\n" % (identity, codename))
    done = LAB.run(["unshare", "-m", "bash", "-c", HIDDEN, "bash", harness.binary(), "setup-host", *more], timeout=120)
    return done, LAB.run(["cat", FAKE + "/log"]).stdout


class Missing(unittest.TestCase):
    def test_a_dry_run_names_the_packages_and_installs_none(self):
        done, log = setup("debian bookworm", "--dry-run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Incus is not installed", done.stderr)
        self.assertIn("from bookworm-backports", done.stderr)
        self.assertEqual(log, "")

    def test_installs_and_goes_on(self):
        for release in RELEASES:
            with self.subTest(release=release):
                done, log = setup(release, "--pool-size", "2GiB")
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = log.splitlines()
                self.assertEqual(lines[0], "-y -o DPkg::Lock::Timeout=300 update")
                self.assertRegex(lines[1], "install .*incus(-base)? incus-client btrfs-progs dnsmasq-base nftables")
                self.assertEqual("-t bookworm-backports" in lines[1], release == "debian bookworm")
                self.assertEqual(len(lines), 2)
                self.assertIn("boxnet", str(LAB.query("/1.0/networks")))
        text = LAB.must(["cat", "/etc/apt/sources.list.d/box-backports.list"]).stdout
        self.assertRegex(text, r"\ndeb( \[signed-by=\S+\])? \S+ bookworm-backports main\n")

    def test_another_distribution_gets_the_list(self):
        done, log = setup("fedora rawhide")
        self.assertEqual(done.returncode, 1)
        self.assertIn("incus-client btrfs-progs", done.stderr)
        self.assertEqual(log, "")


if __name__ == "__main__":
    unittest.main()
