"""`box ssh-config`: the real ssh client logs in, scp and rsync copy, nothing listens, no secret goes in. In the lab."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import daily
import harness
from session import Session

LAB = harness.Lab()
BOX = "ssh-box"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("ssh-")
    daily.launch(LAB, BOX)
    if LAB.run(["incus", "exec", BOX, "--", "which", "rsync"]).returncode != 0:
        raise RuntimeError("the image has no rsync; build it anew: box image build --force")


def tearDownModule():
    LAB.remove_boxes("ssh-")


class Case(unittest.TestCase):
    def setUp(self):
        self.here = Path(tempfile.mkdtemp(dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.here, ignore_errors=True)

    def make_key(self, name="key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.here / name)], check=True,
                       stdin=subprocess.DEVNULL)
        return self.here / f"{name}.pub"

    def configure(self):
        done = LAB.box("ssh-config", BOX, "--key", self.make_key())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (self.here / "config").write_text(done.stdout)
        return done.stdout

    def ssh(self, *words, program="ssh", **options):
        return LAB.run([program, "-F", self.here / "config", *words], **options)


class Ssh(Case):
    def setUp(self):
        super().setUp()
        self.configure()

    def test_logs_in_as_the_user_and_passes_all_on(self):
        done = self.ssh(BOX, "id -un; pwd; cat; exit 7", input="through")
        self.assertEqual((done.returncode, done.stdout), (7, f"{daily.USER}\n/home/{daily.USER}\nthrough"), done.stderr)

    def test_gives_a_terminal(self):
        session = Session(LAB, "ssh", "-F", str(self.here / "config"), BOX, rows=33, columns=101)
        session.wait_for(r"\$ ")
        self.assertEqual(session.ask("stty size"), "33 101")
        session.type("exit 5\n")
        self.assertEqual(session.finish(), (5, True))

    def test_copies_a_tree_with_rsync_both_ways(self):
        tree = self.here / "tree"
        (tree / "a" / "b").mkdir(parents=True)
        for number in range(20):
            (tree / "a" / f"{number} é").write_bytes(os.urandom(number * 5000))
        (tree / "link").symlink_to("a/b")
        remote = f"ssh -F {self.here}/config"
        done = LAB.run(["rsync", "-a", "-e", remote, f"{tree}/", f"{BOX}:copied/"])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = LAB.run(["rsync", "-a", "-e", remote, f"{BOX}:copied/", f"{self.here}/back/"])
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = lambda top: sorted((str(path.relative_to(top)), path.is_symlink(), path.is_file() and
                                    hashlib.sha256(path.read_bytes()).hexdigest()) for path in top.rglob("*"))
        self.assertEqual(facts(self.here / "back"), facts(tree))
        self.assertEqual(len(facts(tree)), 23)

    def test_copies_with_scp(self):
        (self.here / "file").write_text("words")
        done = self.ssh(self.here / "file", f"{BOX}:by-scp", program="scp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.ssh(BOX, "cat by-scp").stdout, "words")

    def test_forwards_a_port_to_a_server_on_the_boxs_loopback(self):
        daily.as_root(LAB, BOX, "setsid python3 -m http.server --bind 127.0.0.1 3456 -d /etc >/dev/null 2>&1 </dev/null & "
                                "until ss -Hltn sport = :3456 | grep -q .; do sleep 0.1; done")
        script = (f"ssh -F {self.here}/config -L 127.0.0.1:13456:127.0.0.1:3456 -o ExitOnForwardFailure=yes -f {BOX} "
                  "'sleep 5' && curl -s --max-time 5 http://127.0.0.1:13456/hostname")
        self.assertEqual(LAB.run(["bash", "-c", script]).stdout, f"{BOX}\n")

    def test_nothing_listens_and_no_process_stays(self):
        self.assertEqual(self.ssh(BOX, "true").returncode, 0)
        done = LAB.must(["incus", "exec", BOX, "--", "ss", "-Hltnp"])
        self.assertNotIn("sshd", done.stdout)
        self.assertNotIn(":22 ", done.stdout)
        daily.as_root(LAB, BOX, "for n in $(seq 50); do pgrep -x sshd >/dev/null || exit 0; sleep 0.1; done; exit 1")

    def test_only_the_public_key_goes_in_and_once(self):
        LAB.box("ssh-config", BOX, "--key", self.here / "key.pub")
        kept = self.ssh(BOX, "cat .ssh/authorized_keys").stdout
        self.assertEqual(kept.count((self.here / "key.pub").read_text()), 1)
        self.assertNotIn("PRIVATE", kept)
        secret = (self.here / "key").read_text().splitlines()[4]  # the first lines are the same in all keys
        found = LAB.run(["incus", "exec", BOX, "--", "grep", "-rlF", secret, "/home", "/root", "/etc", "/tmp"])
        self.assertEqual(found.stdout, "")
        self.assertEqual(self.ssh(BOX, "stat -c '%a %U' .ssh .ssh/authorized_keys .ssh/box_host_key").stdout,
                         f"700 {daily.USER}\n600 {daily.USER}\n600 {daily.USER}\n")

    def test_another_key_does_not_come_in(self):
        self.make_key("other")
        config = (self.here / "config").read_text().replace(str(self.here / "key"), str(self.here / "other"))
        (self.here / "config").write_text(config)
        done = self.ssh("-o", "BatchMode=yes", BOX, "true")
        self.assertEqual(done.returncode, 255)
        self.assertIn("ermission denied", done.stderr)


class Keys(Case):
    def test_a_private_key_and_other_files_are_refused(self):
        self.make_key()
        (self.here / "two.pub").write_text((self.here / "key.pub").read_text() * 2)
        (self.here / "empty.pub").write_text("")
        (self.here / "option.pub").write_text('command="evil" ssh-ed25519 AAAA\n')
        (self.here / "junk.pub").write_text("ssh-ed25519 AAAAjunk\n")
        (self.here / "other.pub").write_text((self.here / "key.pub").read_text().replace("ssh-ed25519", "ssh-rsa"))
        for name in ("key", "two.pub", "empty.pub", "option.pub", "junk.pub", "other.pub"):
            with self.subTest(name):
                done = LAB.box("ssh-config", BOX, "--key", self.here / name)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("no public key", done.stderr)
        self.assertEqual(LAB.box("ssh-config", BOX, "--key", self.here / "none").returncode, 1)

    def test_finds_the_users_own_key_or_says_how_to_make_one(self):
        done = LAB.box("ssh-config", BOX, env={"HOME": self.here})
        self.assertEqual(done.returncode, 1)
        self.assertIn("ssh-keygen -t ed25519", done.stderr)
        (self.here / ".ssh").mkdir()
        self.make_key(".ssh/id_ed25519")
        done = LAB.box("ssh-config", BOX, env={"HOME": self.here})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'IdentityFile "{self.here}/.ssh/id_ed25519"\n', done.stdout)

    def test_says_that_the_box_has_no_sshd(self):
        daily.as_root(LAB, BOX, "mv /usr/sbin/sshd /usr/sbin/sshd.kept")
        try:
            done = LAB.box("ssh-config", BOX, "--key", self.make_key())
        finally:
            daily.as_root(LAB, BOX, "mv /usr/sbin/sshd.kept /usr/sbin/sshd")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"box exec {BOX} -- sudo apt-get install -y openssh-server", done.stderr)

    def test_what_a_guest_says_does_not_reach_this_hosts_shell(self):
        daily.as_root(LAB, BOX, f"usermod -d '/home/x; touch $(id)' {daily.USER} && mkdir -p '/home/x; touch $(id)' && "
                                f"chown {daily.USER} '/home/x; touch $(id)'")
        try:
            done = LAB.box("ssh-config", BOX, "--key", self.make_key())
        finally:
            daily.as_root(LAB, BOX, f"usermod -d /home/{daily.USER} {daily.USER}")
        self.assertEqual((done.returncode, done.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
