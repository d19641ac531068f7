"""teardown-host and wipe: the host is afterwards what it was before set-up, also when a run was killed half-way, with a
stack of the older generation, and without having touched what is somebody else's.
"""

import os
import unittest

import harness
import killing
import older
import tinybox

LAB = harness.Lab("teardown")
BOXES = tinybox.Boxes(LAB)
FACTS = """
ip -o link | sed 's/^[0-9]*: //' | sort
ip -o address | sed 's/^[0-9]*: //' | sort
ip route show table all | sort
ip rule
nft list ruleset
getent group
getent passwd
sysctl -a 2>/dev/null | grep -E '^(net|fs|kernel)[.]' | grep -vE 'neigh|_count|random|timestamp|fastopen_key|pty.nr|ns_last_pid|inode|dentry|file-nr|seed|quota|hostname|aio-nr'
find /etc /run /var/lib/box -xdev 2>/dev/null | grep -vE '^/run/(incus|box-lab|lxc)' | sort
find /var/lib/incus/networks /var/lib/incus/disks /var/lib/incus/storage-pools -mindepth 1 -maxdepth 1 2>/dev/null
"""


def setUpModule():
    LAB.up()
    LAB.remove_boxes()
    for image in LAB.query("/1.0/images?recursion=1") or []:
        LAB.must(["incus", "image", "delete", image["fingerprint"]])
    LAB.box("teardown-host", "--yes", timeout=120)


def facts():
    """What a host is: the kernel's objects, rules, groups, parameters, files, and the daemon's collections."""
    lines = LAB.must(["bash", "-c", FACTS]).stdout.splitlines()
    for path in ("networks", "network-acls", "profiles", "storage-pools", "instances", "images"):
        lines += ["%s %s" % (path, name) for name in LAB.query("/1.0/" + path) or []]
    return lines


def setup():
    LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], timeout=120)


def clear_images():
    """The images that the tests import: not box's, so they would rightly keep the pool alive."""
    for image in LAB.query("/1.0/images?recursion=1") or []:
        LAB.must(["incus", "image", "delete", image["fingerprint"]])


class Identical(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        # The directory stays, as on a host that has systemd: the test compares, and must not make the difference itself.
        LAB.must(["mkdir", "-p", "/etc/systemd/system/multi-user.target.wants"])
        LAB.must(["sysctl", "-qw", "net.ipv4.ip_forward=0"])
        self.before = facts()

    def assert_as_before(self):
        self.assertEqual([line for line in facts() if line not in self.before], [])
        self.assertEqual(facts(), self.before)

    def test_teardown_leaves_nothing(self):
        setup()
        BOXES.prepare()
        BOXES.launch("a")
        BOXES.make("stopped")
        BOXES.make("old", "user.claudebox=1")
        LAB.must(["incus", "config", "unset", "old", "user.box"])
        clear_images()
        self.assertNotEqual(facts(), self.before, "the control: set-up is seen")
        done = LAB.box("teardown-host", "--yes", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("box a", "box stopped", "box old", "network boxnet", "profile box-net", "ACL box-isolate",
                     "pool default", "nft table inet box"):
            self.assertIn("absent: %s\n" % name, done.stdout)
        self.assert_as_before()
        again = LAB.box("teardown-host")
        self.assertEqual(again.returncode, 0, "nothing is left to ask about")
        self.assertIn("nothing of box is on this host", again.stderr)
        self.assertEqual(again.stdout, "")

    def test_only_whom_set_up_put_into_the_group_leaves_it(self):
        for user in ("ann", "bea"):
            LAB.must(["useradd", "-M", user])
            self.addCleanup(LAB.run, ["userdel", user])
        LAB.must(["usermod", "-a", "-G", "incus-admin", "bea"])
        self.before = facts()
        for user in ("ann", "bea"):
            LAB.must([harness.binary(), "setup-host", "--pool-size", "2GiB"], env={"SUDO_USER": user}, timeout=120)
        self.assertIn("ann", LAB.must(["getent", "group", "incus-admin"]).stdout)
        done = LAB.box("teardown-host", "--yes", env={"SUDO_USER": "bea"}, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("absent: ann in the group incus-admin\n", done.stdout)
        self.assertNotIn("bea", done.stdout)
        self.assert_as_before()

    def test_killed_anywhere_and_run_again(self):
        self.killed_and_run_again("teardown-host", "--yes", stride=5)

    def test_wipe_killed_anywhere_and_run_again(self):
        self.killed_and_run_again("wipe", "--yes", "--purge-storage", stride=8)

    def killed_and_run_again(self, *command, stride):
        def prepare():
            setup()
            BOXES.prepare()
            BOXES.launch("a")
            clear_images()

        killed = []
        for line in killing.each_line(LAB, [harness.binary(), *command], prepare, stride):
            with self.subTest(line=line):
                killed.append(line)
                done = LAB.box(*command, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_as_before()
        self.assertGreater(len(killed), 1)
        self.assert_as_before()
        print("%s killed at %d places" % (command[0], len(killed)))

    def test_killed_setup_is_taken_down_too(self):
        def teardown():
            done = LAB.box("teardown-host", "--yes", timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)

        killed = []
        for line in killing.each_line(LAB, [harness.binary(), "setup-host", "--pool-size", "2GiB"], teardown, stride=5):
            with self.subTest(line=line):
                killed.append(line)
                teardown()
                self.assert_as_before()
        teardown()
        self.assertGreater(len(killed), 1)

    def test_the_older_generation_goes_too(self):
        older.stack(LAB)
        setup()
        done = LAB.box("teardown-host", "--yes", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("network claudenet", "profile claude-dev", "ACL claude-isolate", "nft table inet claudebox",
                     "nft table bridge claudebox", "file " + older.SCRIPT, "file " + older.UNIT):
            self.assertIn("absent: %s\n" % name, done.stdout)
        # That generation did not note whether the host forwarded before it.
        LAB.must(["sysctl", "-qw", "net.ipv4.ip_forward=0"])
        self.assert_as_before()
        self.assertNotEqual(LAB.run(["test", "-e", older.SCRIPT]).returncode, 0)

    def test_wipe_leaves_nothing_of_a_drill_either(self):
        setup()
        BOXES.prepare()
        LAB.must(["incus", "init", tinybox.ALIAS, "drill-a-1f", "--profile", "box-net", "--config", "user.box.drill=1f"])
        LAB.must(["incus", "network", "create", "drill-net", "ipv4.address=10.99.0.1/24", "ipv6.address=none",
                  "user.box.drill=1f"])
        LAB.must(["incus", "profile", "create", "drill-net"])
        LAB.must(["incus", "profile", "set", "drill-net", "user.box.drill=1f"])
        kept = LAB.box("wipe", "--yes", timeout=120)
        self.assertEqual(kept.returncode, 0, kept.stderr)
        self.assertEqual(len(LAB.query("/1.0/images")), 1, "images and pool stay unless asked")
        done = LAB.box("wipe", "--yes", "--purge-storage", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("absent: pool default\n", done.stdout)
        LAB.must(["sysctl", "-qw", "net.ipv4.ip_forward=0"])  # what the drill's own network switched on
        self.assert_as_before()


class Refusals(unittest.TestCase):
    def setUp(self):
        setup()
        BOXES.prepare()

    def tearDown(self):
        LAB.remove_boxes()
        clear_images()
        LAB.box("teardown-host", "--yes", timeout=120)

    def untouched(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(LAB.box("firewall", "show").returncode, 0, "the walls stand")
        self.assertIn("boxnet", str(LAB.query("/1.0/networks")))

    def test_asks_and_names_what_dies(self):
        BOXES.make("a")
        self.untouched(LAB.box("teardown-host"), 2, "box with all that is on its disk: a", "network boxnet", "--yes")
        self.untouched(LAB.box("wipe"), 2, "--yes")
        self.assertEqual(len(LAB.query("/1.0/instances")), 1)

    def test_a_stranger_on_boxnet_stops_it(self):
        LAB.must(["incus", "init", tinybox.ALIAS, "mail", "--profile", "box-net"])
        BOXES.make("a")
        self.untouched(LAB.box("teardown-host", "--yes"), 1, "instance mail uses the profile box-net", "Nothing was touched")
        LAB.must(["incus", "delete", "mail"])
        LAB.must(["incus", "profile", "create", "theirs"])
        LAB.must(["incus", "profile", "device", "add", "theirs", "eth0", "nic", "network=boxnet"])
        try:
            self.untouched(LAB.box("teardown-host", "--yes"), 1, "profile theirs uses the network boxnet")
        finally:
            LAB.must(["incus", "profile", "delete", "theirs"])
        self.assertEqual([row["name"] for row in LAB.query("/1.0/instances?recursion=1")], ["a"])

    def test_what_is_not_ours_stays(self):
        """A pool that holds somebody's image, and forwarding that another bridge lives on."""
        LAB.must(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        LAB.must(["ip", "link", "add", "docker0", "type", "bridge"])
        BOXES.make("a")  # the daemon lays an image on the pool when it is first used
        try:
            done = LAB.box("teardown-host", "--yes", timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("the pool default stays", done.stderr)
            self.assertEqual(len(LAB.query("/1.0/images")), 1)
            self.assertEqual(LAB.must(["sysctl", "-n", "net.ipv4.ip_forward"]).stdout.strip(), "1")
        finally:
            LAB.must(["ip", "link", "delete", "docker0"])

    def test_a_daemon_that_is_down_is_not_taken_for_a_clean_host(self):
        LAB.command("kill-daemon")
        try:
            done = LAB.box("teardown-host", "--yes")
            self.assertEqual(done.returncode, 1)
            self.assertIn("not running", done.stderr)
            self.assertIn("table inet box", LAB.must(["nft", "list", "tables"]).stdout)
        finally:
            LAB.command("up")

    def test_purging_spares_a_daemon_with_other_instances(self):
        LAB.must(["incus", "profile", "create", "theirs"])
        LAB.must(["incus", "profile", "device", "add", "theirs", "root", "disk", "pool=default", "path=/"])
        LAB.must(["incus", "init", tinybox.ALIAS, "mail", "--profile", "theirs"])
        try:
            self.untouched(LAB.box("teardown-host", "--yes", "--purge-incus"), 1, "mail", "Incus stays")
        finally:
            LAB.must(["incus", "delete", "mail"])
            LAB.must(["incus", "profile", "delete", "theirs"])

    def test_purging_asks_the_package_manager(self):
        """With an apt-get and a dpkg-query of the test's own: the machine's packages are not the lab's."""
        LAB.must(["bash", "-c", "mkdir -p /root/fake; cat > /root/fake/dpkg-query; chmod 755 /root/fake/dpkg-query"],
                 input="#!/bin/sh\ntest -e /root/fake/purged || echo 'installed incus-base'\n")
        LAB.must(["bash", "-c", "cat > /root/fake/apt-get; chmod 755 /root/fake/apt-get"],
                 input='#!/bin/sh\necho "$DEBIAN_FRONTEND $*" > /root/fake/purged\n')
        path = "/root/fake:" + os.environ["PATH"]
        try:
            done = LAB.box("teardown-host", "--yes", "--purge-incus", env={"PATH": path}, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("absent: package incus-base", done.stdout)
            self.assertEqual(LAB.must(["cat", "/root/fake/purged"]).stdout,
                             "noninteractive -y -o DPkg::Lock::Timeout=300 purge incus-base\n")
        finally:
            LAB.must(["rm", "-r", "/root/fake"])

    def test_only_root(self):
        for command in ("teardown-host", "wipe"):
            done = LAB.run(["setpriv", "--reuid", "65534", "--clear-groups", harness.binary(), command, "--yes"])
            self.assertEqual(done.returncode, 1)
            self.assertIn("sudo", done.stderr)


if __name__ == "__main__":
    unittest.main()
