"""`box cp`: what arrives, under which name, whose it is; what a hostile box may not do. Against a real daemon in the lab."""
import hashlib
import io
import os
import shutil
import signal
import stat
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

import daily
import harness

LAB = harness.Lab()
BOX = "cp-box"
HOME = f"/home/{daily.USER}"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("cp-")
    daily.launch(LAB, BOX)
    LAB.must(["incus", "launch", harness.IMAGE, "cp-foreign", "-p", "box-net"], timeout=120)


def tearDownModule():
    LAB.remove_boxes("cp-")


def guest(script):
    return LAB.must([harness.binary(), "exec", BOX, "--", "sh", "-c", script]).stdout


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Copies(unittest.TestCase):
    def setUp(self):
        # Where a lab and this machine see the same files.
        self.here = Path(tempfile.mkdtemp(dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.here, ignore_errors=True)
        guest("cd; chmod -R u+rwx . ; rm -rf ./* ./.box-cp*")

    def cp(self, *words, status=0, **options):
        done = LAB.box("cp", *words, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        return done

    def leftovers(self):
        return guest("find . -name '.box-cp*'").split() + [str(path) for path in self.here.rglob(".box-cp*")]


class Names(Copies):
    def test_a_file_under_its_name_a_new_name_in_a_directory(self):
        (self.here / "one").write_text("1")
        self.cp(self.here / "one", f"{BOX}:")
        self.cp(self.here / "one", f"{BOX}:two")
        guest("mkdir box-directory")
        self.cp(self.here / "one", f"{BOX}:box-directory")
        self.cp(self.here / "one", f"{BOX}:~/box-directory/three")
        self.cp(self.here / "one", f"{BOX}:/tmp/four")
        self.assertEqual(guest("cat one two box-directory/one box-directory/three /tmp/four"), "11111")
        self.cp(f"{BOX}:two", self.here)
        self.cp(f"{BOX}:two", self.here / "renamed")
        self.cp(f"{BOX}:~/box-directory/three", str(self.here) + "/")
        self.assertEqual({path.name for path in self.here.iterdir()}, {"one", "two", "renamed", "three"})

    def test_several_at_once(self):
        for name in ("x", "y", "-z", "with blank", "é日", "new\nline"):
            (self.here / name).write_text(name)
        guest("mkdir all")
        self.cp(*[self.here / name for name in ("x", "y", "-z", "with blank", "é日", "new\nline")], f"{BOX}:all")
        self.assertEqual(guest("cd all; cat ./x ./y ./-z 'with blank' é日"), "xy-zwith blanké日")
        back = self.here / "back"
        back.mkdir()
        self.cp(f"{BOX}:all/x", f"{BOX}:all/-z", f"{BOX}:all/é日", back)
        self.assertEqual(sorted(path.name for path in back.iterdir()), ["-z", "x", "é日"])

    def test_a_directory_goes_whole_and_merges(self):
        tree = self.here / "tree"
        (tree / "a" / "empty").mkdir(parents=True)
        (tree / ".hidden").write_text("h")
        (tree / "a" / ("n" * 200)).write_text("long")
        (tree / "a" / "run").write_text("#!/bin/sh\necho ran\n")
        (tree / "a" / "run").chmod(0o755)
        (tree / "link").symlink_to("a/run")
        deep = tree / "/".join(["d" * 50] * 8)
        deep.mkdir(parents=True)
        (deep / "file").write_text("deep")
        os.utime(tree / ".hidden", (1000000000, 1000000000))
        self.cp(tree, f"{BOX}:")
        self.cp(tree, f"{BOX}:other")
        self.assertEqual(guest("other/link; readlink tree/link; stat -c %Y tree/.hidden; ls -A tree/a/empty"),
                         "ran\na/run\n1000000000\n")
        guest("echo kept >tree/mine; echo old >tree/.hidden; rm -r tree/a")
        self.cp(tree, f"{BOX}:")
        self.assertEqual(guest("cat tree/mine tree/.hidden; tree/a/run"), "kept\nhran\n")
        self.cp(f"{BOX}:tree", self.here / "back")
        self.assertEqual((self.here / "back" / "mine").read_text(), "kept\n")
        names = lambda top: sorted(str(path.relative_to(top)) for path in top.rglob("*"))
        self.assertEqual([name for name in names(self.here / "back") if name != "mine"], names(tree))
        self.assertEqual(os.readlink(self.here / "back" / "link"), "a/run")
        self.assertEqual(int((self.here / "back" / ".hidden").stat().st_mtime), 1000000000)
        (self.here / "back" / "own").write_text("stays")
        (self.here / "back" / "mine").write_text("changed")
        self.cp(f"{BOX}:tree/.", self.here / "back")
        self.assertEqual((self.here / "back" / "own").read_text() + (self.here / "back" / "mine").read_text(), "stayskept\n")
        self.assertEqual(self.leftovers(), [])

    def test_what_is_in_a_directory(self):
        (self.here / "in").mkdir()
        (self.here / "in" / "f").write_text("f")
        guest("mkdir place; echo p >place/p")
        self.cp(f"{self.here}/in/.", f"{BOX}:place")
        self.cp(f"{self.here}/in/.", f"{BOX}:fresh")
        self.assertEqual(guest("ls place fresh").split(), ["fresh:", "f", "place:", "f", "p"])

    def test_a_colon_in_a_name_of_this_host(self):
        (self.here / "a:b").write_text("colon")
        self.cp(self.here / "a:b", f"{BOX}:")
        self.assertEqual(guest("cat a:b"), "colon")
        self.cp(f"{BOX}:a:b", self.here / "again")
        self.assertEqual((self.here / "again").read_text(), "colon")


class Ownership(Copies):
    def test_what_comes_in_belongs_to_the_user_with_a_sane_mode(self):
        tree = self.here / "tree"
        tree.mkdir()
        for name, mode in (("plain", 0o644), ("secret", 0o600), ("tool", 0o755), ("set", 0o6755)):
            (tree / name).write_text(name)
            os.chown(tree / name, 4321, 4321)
            (tree / name).chmod(mode)
        self.cp(tree, f"{BOX}:")
        self.assertEqual(guest("cd tree; stat -c '%U:%G %a %n' *").splitlines(),
                         [f"{daily.USER}:{daily.USER} {mode} {name}" for mode, name in
                          ((644, "plain"), (600, "secret"), (755, "set"), (755, "tool"))])

    def test_no_bit_of_set_user_id_comes_out(self):
        guest("cp /bin/true evil; chmod 6755 evil; mkdir d; cp -p evil d")
        self.cp(f"{BOX}:evil", f"{BOX}:d", self.here)
        for path in (self.here / "evil", self.here / "d" / "evil"):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o755)

    def test_what_the_user_may_not_write_is_refused(self):
        (self.here / "f").write_text("f")
        done = self.cp(self.here / "f", f"{BOX}:/etc/f", status=1)
        self.assertIn("ermission denied", done.stderr)
        self.assertEqual(guest("ls /etc/f 2>/dev/null || echo none"), "none\n")


class Streams(Copies):
    def copy_measured(self, source, target):
        """Copies and returns the peak of resident memory in MiB (a limit on address space is nothing for a sanitizer)."""
        program = ("import resource, subprocess, sys; status = subprocess.call(sys.argv[1:]); "
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(status)")
        done = LAB.must(["/usr/bin/python3", "-c", program, harness.binary(), "cp", source, target],
                        env={"ASAN_OPTIONS": "quarantine_size_mb=1"})
        return int(done.stdout.split()[-1]) / 1024

    def test_192_mib_arrive_intact_both_ways_in_little_memory(self):
        with open(self.here / "big", "wb") as file:
            for _ in range(192):
                file.write(os.urandom(1 << 20))
        self.assertLess(self.copy_measured(self.here / "big", f"{BOX}:big"), 128)
        self.assertEqual(guest("sha256sum big").split()[0], digest(self.here / "big"))
        self.assertLess(self.copy_measured(f"{BOX}:big", self.here / "back"), 128)
        self.assertEqual(digest(self.here / "back"), digest(self.here / "big"))

    def test_more_than_8_gib_are_told_right(self):
        guest("truncate -s 9G sparse")
        child = LAB.popen([harness.binary(), "cp", f"{BOX}:sparse", self.here / "sparse"], start_new_session=True)
        self.wait_until(lambda: any(path.stat().st_size > 1 << 20 for path in self.here.iterdir()))
        os.killpg(child.pid, signal.SIGTERM)
        self.assertNotEqual(child.wait(timeout=30), 0)
        self.assertEqual(list(self.here.iterdir()), [])

    def test_an_interrupted_copy_leaves_nothing_under_the_final_name(self):
        (self.here / "tree").mkdir()
        for name in ("long", "tree/long"):  # one large file goes another way than a tree
            with open(self.here / name, "wb") as file:
                file.truncate(20 << 30)
        for number, name in ((signal.SIGINT, "long"), (signal.SIGTERM, "tree"), (signal.SIGINT, "tree"),
                             (signal.SIGTERM, "long"), (signal.SIGKILL, "tree"), (signal.SIGKILL, "long")):
            with self.subTest(number=number, name=name):
                child = LAB.popen([harness.binary(), "cp", self.here / name, f"{BOX}:final"], start_new_session=True,
                                  stderr=-1)
                self.wait_until(lambda: guest("find . -path '*.box-cp*' -size +1M") != "")
                os.killpg(child.pid, number)
                child.communicate(timeout=60)
                self.assertNotEqual(child.returncode, 0)
                self.wait_until(lambda: guest("pgrep -x tar || true") == "")
                self.assertEqual(guest("ls"), "")
                if number != signal.SIGKILL:
                    self.wait_until(lambda: self.leftovers() == [])
                guest("rm -rf .box-cp*")

    def wait_until(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come about")
            time.sleep(0.05)

    def test_progress_is_told_where_it_takes_time(self):
        with open(self.here / "some", "wb") as file:
            file.truncate(1 << 30)
        child = LAB.popen([harness.binary(), "cp", self.here / "some", f"{BOX}:/dev/null/x"], stderr=-1)
        self.assertIn(b"there is no directory", child.communicate(timeout=30)[1])
        child = LAB.popen([harness.binary(), "cp", self.here / "some", f"{BOX}:some"], stderr=-1)
        seen = child.communicate(timeout=120)[1].decode()
        self.assertEqual(child.returncode, 0, seen)
        self.assertRegex(seen, r"copying to cp-box: 1\.0 GiB, [0-9.]+ [MG]iB/s")


class Kernel(Copies):
    """Files of the kernel: their sizes are told as 0 or as a page, whatever is in them."""

    def test_what_they_hold_comes_out(self):
        for source, what in (("/proc/sys/kernel/ostype", "Linux\n"), ("/sys/class/net/lo/mtu", None)):
            with self.subTest(source):
                held = guest(f"cat {source}")
                self.cp(f"{BOX}:{source}", self.here / "st")
                self.assertEqual((self.here / "st").read_text(), held)
                self.assertEqual(held, what or held)
        self.cp(f"{BOX}:/proc/self/status", self.here / "status")
        self.assertIn("VmPeak:", (self.here / "status").read_text())
        guest(": >empty")
        self.cp(f"{BOX}:empty", self.here)
        self.assertEqual((self.here / "empty").read_bytes(), b"")
        self.assertEqual(guest("ls -d /tmp/box-cp-* 2>/dev/null || true"), "")

    def test_what_they_hold_goes_in(self):
        self.cp("/proc/sys/kernel/ostype", f"{BOX}:")
        self.cp("/sys/class/net/lo/mtu", f"{BOX}:mtu")
        self.assertEqual(guest("cat ostype mtu"),
                         "Linux\n" + Path("/sys/class/net/lo/mtu").read_text())

    def test_a_tree_of_them_is_refused(self):
        done = self.cp(f"{BOX}:/proc/sys/kernel", self.here, status=1)
        self.assertIn("files of the kernel (proc)", done.stderr)
        self.assertEqual(list(self.here.iterdir()), [])


class Special(Copies):
    """What is neither a file nor a directory, on this host. Never a device of it: /dev is the machine's own."""

    def setUp(self):
        super().setUp()
        guest("echo new >f; mkdir d; echo new >d/f")

    def test_a_fifo_is_not_replaced(self):
        os.mkfifo(self.here / "fifo")
        (self.here / "link").symlink_to("fifo")
        (self.here / "tree").mkdir()
        os.mkfifo(self.here / "tree" / "f")
        for words, what in (((f"{BOX}:f", self.here / "fifo"), "fifo is a FIFO"),
                            ((f"{BOX}:d", self.here / "fifo"), "fifo is a FIFO"),
                            ((f"{BOX}:f", self.here / "link"), "is a FIFO"),
                            ((f"{BOX}:d/.", f"{BOX}:f", self.here / "tree"), "f is a FIFO")):
            with self.subTest(words):
                done = self.cp(*words, status=1)
                self.assertIn(what, done.stderr)
                self.assertIn(f"box exec {BOX} -- cat", done.stderr)
        for path in (self.here / "fifo", self.here / "tree" / "f"):
            self.assertTrue(path.is_fifo())
        self.assertTrue((self.here / "link").is_symlink())
        self.assertEqual(self.leftovers(), [])

    def test_links_that_are_named(self):
        (self.here / "real").write_text("old")
        (self.here / "to").symlink_to("real")
        (self.here / "dangling").symlink_to("nothing")
        self.cp(f"{BOX}:f", self.here / "to")
        self.assertTrue((self.here / "to").is_symlink())
        self.assertEqual((self.here / "real").read_text(), "new\n")
        self.assertIn("leads to nothing", self.cp(f"{BOX}:f", self.here / "dangling", status=1).stderr)
        self.assertEqual({path.name for path in self.here.iterdir()}, {"real", "to", "dangling"})

    def test_what_is_left_out_is_named(self):
        (self.here / "d").mkdir()
        for name in ("a", "b", "c", "e", "g"):
            os.mkfifo(self.here / "d" / name)
        done = self.cp(self.here / "d", f"{BOX}:")
        self.assertRegex(done.stderr, r"5 left out: .*/d/[abceg], .*/d/[abceg], .*/d/[abceg] and 2 more")
        for name in ("a", "b", "c", "e"):
            os.unlink(self.here / "d" / name)
        done = self.cp(self.here / "d", f"{BOX}:")
        self.assertRegex(done.stderr, r"1 left out: .*/d/g\n")

    def test_the_cause_is_told(self):
        done = self.cp(f"{BOX}:../../etc/shadow", self.here, status=1)
        self.assertIn("../../etc/shadow: Permission denied", done.stderr)
        guest("echo s >d/secret; chmod 0 d/secret")
        done = self.cp(f"{BOX}:d", self.here, status=1)
        self.assertIn("secret: Cannot open: Permission denied", done.stderr)
        self.assertNotIn("Exiting", done.stderr)


class Hostile(Copies):
    """The guest's tar is replaced by one that sends what an attacker would."""

    def send(self, *members):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, kind, extra in members:
                member = tarfile.TarInfo(name)
                member.type, member.mode = kind, 0o6777
                if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                    member.linkname = extra
                    tar.addfile(member)
                else:
                    data = (extra or "").encode()
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        self.raw(archive.getvalue())

    def raw(self, data):
        daily.as_root(LAB, BOX, "cat >/var/evil.tar", input=data.decode("latin-1").encode("latin-1"))
        daily.as_root(LAB, BOX, "mkdir -p /usr/local/bin; printf '#!/bin/sh\\nexec cat /var/evil.tar\\n' >/usr/local/bin/tar; "
                                "chmod 755 /usr/local/bin/tar")
        self.addCleanup(daily.as_root, LAB, BOX, "rm -f /usr/local/bin/tar")

    def setUp(self):
        super().setUp()
        guest("mkdir d; echo f >f")
        self.target = self.here / "in" / "target"
        self.target.parent.mkdir()
        (self.here / "outside").mkdir()

    def assert_nothing_outside(self):
        self.assertEqual(list((self.here / "outside").iterdir()), [])
        self.assertLessEqual({path.name for path in (self.here / "in").iterdir()}, {"target"})
        self.assertEqual({path.name for path in self.here.iterdir()}, {"in", "outside"})

    def test_names_that_lead_out(self):
        for name in ("../escaped", "./../escaped", "a/../../escaped", str(self.here / "escaped"), "..", "a/.."):
            with self.subTest(name):
                self.send(("./", tarfile.DIRTYPE, None), (name, tarfile.REGTYPE, "x"))
                done = self.cp(f"{BOX}:d", self.target, status=1)
                self.assertIn("leads out of the target", done.stderr)
                self.assert_nothing_outside()

    def test_a_name_that_nobody_asked_for(self):
        self.send((".bashrc", tarfile.REGTYPE, "evil"))
        self.cp(f"{BOX}:f", self.target)
        self.assertEqual(self.target.read_text(), "evil")  # its words, under the name that was asked for
        self.assert_nothing_outside()
        self.send(("f", tarfile.REGTYPE, "1"), (".bashrc", tarfile.REGTYPE, "2"))
        self.assertIn("more came than", self.cp(f"{BOX}:f", self.target, status=1).stderr)
        self.assert_nothing_outside()

    def test_links_that_lead_out_and_files_through_them(self):
        for target in (str(self.here / "outside"), "../../outside", "x/../../outside", ".."):
            with self.subTest(target):
                shutil.rmtree(self.target, ignore_errors=True)
                self.send(("./", tarfile.DIRTYPE, None), ("./l", tarfile.SYMTYPE, target), ("./l/x", tarfile.REGTYPE, "x"))
                done = self.cp(f"{BOX}:d", self.target)
                self.assertIn("1 left out", done.stderr)
                self.assertFalse((self.target / "l").is_symlink())
                self.assertEqual((self.target / "l" / "x").read_text(), "x")
                self.assert_nothing_outside()

    def test_links_that_lead_out_by_way_of_each_other(self):
        shutil.rmtree(self.target, ignore_errors=True)
        self.send(("./", tarfile.DIRTYPE, None), ("./a/b/up", tarfile.SYMTYPE, "../.."),
                  ("./out", tarfile.SYMTYPE, "a/b/up/../outside"), ("./a/out", tarfile.SYMTYPE, "../a/b/up/../../outside"))
        self.assertIn("2 left out", self.cp(f"{BOX}:d", self.target).stderr)
        for path in self.target.rglob("*"):
            self.assertTrue(path.resolve().is_relative_to(self.target.resolve()), path)

    def test_links_that_stood_there_are_replaced_and_not_followed(self):
        self.target.mkdir()
        (self.target / "file").symlink_to(self.here / "outside" / "victim")
        (self.target / "dir").symlink_to(self.here / "outside")
        self.send(("./", tarfile.DIRTYPE, None), ("./file", tarfile.REGTYPE, "x"), ("./dir/y", tarfile.REGTYPE, "y"))
        self.cp(f"{BOX}:d/.", self.target)
        self.assertEqual(((self.target / "file").read_text(), (self.target / "dir" / "y").read_text()), ("x", "y"))
        self.assert_nothing_outside()

    def test_devices_and_hard_links_are_left_out(self):
        self.send(("./", tarfile.DIRTYPE, None), ("./dev", tarfile.CHRTYPE, None), ("./fifo", tarfile.FIFOTYPE, None),
                  ("./hard", tarfile.LNKTYPE, "/etc/shadow"), ("./ok", tarfile.REGTYPE, "ok"))
        self.assertIn("3 left out", self.cp(f"{BOX}:d", self.target).stderr)
        self.assertEqual([path.name for path in self.target.iterdir()], ["ok"])

    def test_what_is_no_archive_or_stops_early(self):
        self.send(("./", tarfile.DIRTYPE, None), ("./ok", tarfile.REGTYPE, "x" * 100000))
        whole = bytes(LAB.run(["incus", "exec", BOX, "--", "cat", "/var/evil.tar"], text=False).stdout)
        for data in (b"", b"nonsense" * 1000, whole[:50000], whole[:512], bytes(range(256)) * 10):
            with self.subTest(len(data)):
                shutil.rmtree(self.target, ignore_errors=True)
                self.raw(data)
                self.cp(f"{BOX}:d", self.target, status=1)
                self.assertEqual([path for path in self.here.rglob("*") if path.is_file()], [])

    def test_the_words_of_a_guest_are_not_printed_raw(self):
        daily.as_root(LAB, BOX, "printf '#!/bin/sh\\nprintf \"\\\\033]0;owned\\\\007bad\\\\n\" >&2; exit 2\\n' >/usr/local/bin/tar; "
                                "chmod 755 /usr/local/bin/tar")
        self.addCleanup(daily.as_root, LAB, BOX, "rm -f /usr/local/bin/tar")
        done = self.cp(f"{BOX}:d", self.target, status=1)
        self.assertIn("bad", done.stderr)
        self.assertNotIn("\033", done.stderr)


    def test_a_file_that_became_shorter_is_no_success(self):
        self.send(("f", tarfile.REGTYPE, "new"))
        daily.as_root(LAB, BOX, "printf '#!/bin/sh\\ncat /var/evil.tar\\necho tar: ./f: File shrank by 2 bytes\\\\; padding with "
                                "zeros >&2\\nexit 1\\n' >/usr/local/bin/tar")
        done = self.cp(f"{BOX}:f", self.target, status=1)
        self.assertIn("became shorter", done.stderr)
        self.assertIn("File shrank", done.stderr)


class Refusals(Copies):
    def test_sides(self):
        (self.here / "f").write_text("f")
        for words, what in ((["a:x", "b:y"], "both sides"), ([self.here / "f", "/tmp/x"], "one side must be in a box"),
                            (["a:x", "b:y", "/tmp"], "different boxes"), (["a:x", self.here / "f", "/tmp"], "one side"),
                            (["-bad:x", "/tmp"], "unknown"), (["../a:x", "/tmp"], "one side"),
                            (["", "a:"], "a source is an empty word"), (["a:x", ""], "DST is an empty word")):
            with self.subTest(words):
                done = LAB.box("cp", *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotEqual(done.stderr, "")
                if what != "unknown":
                    self.assertIn(what, done.stderr)

    def test_the_boundary(self):
        (self.here / "f").write_text("f")
        for name in ("cp-foreign", "cp-nothing"):
            for words in ((self.here / "f", f"{name}:/root/f"), (f"{name}:/etc/passwd", self.here)):
                done = self.cp(*words, status=1)
                self.assertIn("no such box", done.stderr)
        self.assertEqual([path.name for path in self.here.iterdir()], ["f"])

    def test_what_is_not_there(self):
        (self.here / "f").write_text("f")
        self.assertIn("there is no nothing", self.cp(f"{BOX}:nothing", self.here, status=1).stderr)
        self.assertIn("there is no directory no/where", self.cp(self.here / "f", f"{BOX}:no/where/", status=1).stderr)
        self.assertIn("there is no directory no", self.cp(self.here / "f", f"{BOX}:no/where", status=1).stderr)
        self.assertIn("No such file", self.cp(self.here / "none", f"{BOX}:", status=1).stderr)
        self.cp(f"{BOX}:.bashrc", self.here / "no" / "where", status=1)
        self.cp(f"{BOX}:.bashrc", f"{self.here}/none/", status=2)
        self.cp(self.here / "f", f"{BOX}:f")
        self.assertIn("irectory", self.cp(f"{BOX}:f", self.here / "f" / "g", status=1).stderr)
        self.assertEqual(self.leftovers(), [])

    def test_a_box_that_does_not_run(self):
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            done = self.cp(f"{BOX}:x", self.here, status=1)
        finally:
            LAB.must([harness.binary(), "start", BOX])
        self.assertIn(f"box start {BOX}", done.stderr)


if __name__ == "__main__":
    unittest.main()
