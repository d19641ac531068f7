"""`box export` and `import`: a file is whole or not there, and what somebody else made of one is stripped or refused before
anything of it starts. A real daemon in the lab."""
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

import harness
import relayed
import tinybox

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "art-"
DIRECTORY = None


def setUpModule():
    global DIRECTORY
    relayed.set_up(LAB)
    sweep()
    BOXES.prepare()
    DIRECTORY = Path(tempfile.mkdtemp(prefix="box-artifact-", dir="/tmp"))
    BOXES.make("art-s", "user.box.template=tiny", "user.box.origin=mint", "limits.memory=1GiB")
    LAB.must(["incus", "file", "push", "-", "art-s/root/kept"], input="kept")


def tearDownModule():
    sweep()
    shutil.rmtree(DIRECTORY)


def sweep():
    LAB.remove_boxes(PREFIX)
    LAB.remove_boxes("box-import-")


def instances():
    return {row["name"]: row for row in LAB.query("/1.0/instances?recursion=1") or []
            if row["name"].startswith((PREFIX, "box-import-"))}


def backups(name="art-s"):
    return LAB.query(f"/1.0/instances/{name}/backups") or []


def export(path, *words):
    done = LAB.box("export", "art-s", path, "--force", *words)
    assert done.returncode == 0, done.stderr
    return path


class Exporting(unittest.TestCase):
    def setUp(self):
        self.path = DIRECTORY / "out.tar.zst"
        self.path.unlink(missing_ok=True)

    def test_the_file_is_the_owners_alone_and_says_what_it_holds(self):
        done = LAB.box("export", "art-s", self.path)
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.path}\n"), done.stderr)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertIn("credentials included", done.stderr)
        self.assertEqual(backups(), [])
        self.assertEqual([entry.name for entry in DIRECTORY.iterdir() if entry.name.startswith(".")], [])

    def test_a_directory_gets_a_name_of_its_own(self):
        where = DIRECTORY / "into"
        where.mkdir(exist_ok=True)
        done = LAB.box("export", "art-s", where)
        self.assertRegex(done.stdout, r"/into/art-s-\d{8}-\d{6}\.tar\.zst\n$")
        self.assertTrue(Path(done.stdout.strip()).is_file())

    def test_what_is_there_is_not_overwritten_unasked(self):
        self.path.write_text("mine")
        done = LAB.box("export", "art-s", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.path.read_text(), "mine")
        self.assertEqual(LAB.box("export", "art-s", self.path, "--force").returncode, 0)
        self.assertGreater(self.path.stat().st_size, 1000)

    def test_stdout_is_no_file(self):
        done = LAB.box("export", "art-s", "-")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("./-", done.stderr)
        self.assertFalse(Path("-").exists())

    def test_a_running_box_is_refused_with_why(self):
        BOXES.launch("art-r")
        self.addCleanup(LAB.remove_boxes, "art-r")
        done = LAB.box("export", "art-r", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("would not be whole", done.stderr)
        self.assertIn("box down art-r", done.stderr)
        self.assertFalse(self.path.exists())

    def test_a_full_target_is_named_and_nothing_stays(self):
        script = ("mkdir -p /mnt/small && mount -t tmpfs -o size=64k none /mnt/small && "
                  f"{harness.binary()} export art-s /mnt/small/x.tar.zst; echo status $?; ls -A /mnt/small")
        done = LAB.run(["unshare", "-m", "sh", "-c", script])
        self.assertEqual(done.stdout, "status 1\n", done.stderr)
        self.assertIn("the disk of /mnt/small has no room", done.stderr)
        self.assertEqual(backups(), [])

    def test_a_full_disk_of_the_daemon_is_named_and_nothing_stays(self):
        LAB.must(["mount", "-t", "tmpfs", "-o", "size=64k", "none", "/var/lib/incus/backups"])
        try:
            done = LAB.box("export", "art-s", self.path)
        finally:
            LAB.must(["umount", "/var/lib/incus/backups"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("the disk of the daemon has no room", done.stderr)
        self.assertIn("--instance-only", done.stderr)
        self.assertFalse(self.path.exists())
        self.assertEqual(backups(), [])
        self.assertEqual(LAB.box("export", "art-s", self.path).returncode, 0)

    def test_instance_only_leaves_the_snapshots_out(self):
        LAB.box("snapshot", "art-s", "one")
        self.addCleanup(LAB.box, "snapshot", "rm", "art-s", "one", "-f")
        for words, labels in (((), ["one"]), (("--instance-only",), [])):
            export(self.path, *words)
            self.assertEqual(LAB.box("import", self.path, "--name", "art-i").returncode, 0)
            told = json.loads(LAB.box("info", "art-i", "--json").stdout)
            self.assertEqual([row["label"] for row in told["snapshots"]], labels)
            LAB.remove_boxes("art-i")

    def wait_for_no_backup(self, what):
        """Where box was killed its child drops it, a moment later."""
        deadline = time.monotonic() + 15
        while backups() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(backups(), [], what)

    def test_whatever_ends_it_leaves_neither_half_a_file_nor_a_backup(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            self.path.unlink(missing_ok=True)
            process = LAB.popen([harness.binary(), "export", "art-s", self.path], stderr=subprocess.PIPE)
            while b"packing" not in process.stderr.readline():
                pass
            process.send_signal(number)
            process.stderr.read()
            process.stderr.close()
            self.assertNotEqual(process.wait(timeout=30), 0 if number == signal.SIGKILL else None)
            self.wait_for_no_backup(number)
            if process.returncode != 0:
                self.assertFalse(self.path.exists(), number)
            self.assertEqual([entry.name for entry in DIRECTORY.iterdir() if entry.name.startswith(".")], [], number)
            export(self.path)

    def test_ctrl_c_between_a_request_and_its_answer(self):
        count = relayed.count(LAB, "export", "art-s", self.path)
        for k in range(1, count + 1):
            self.path.unlink(missing_ok=True)
            with relayed.Relay(LAB, k, "signal") as relay:
                done = relay.box("export", "art-s", self.path)
                self.assertEqual(backups(), [], (k, relay.requests()))
            self.assertEqual(done.returncode == 0, self.path.exists(), (k, done.stderr))

    def test_every_request_spoiled(self):
        count = relayed.count(LAB, "export", "art-s", self.path)
        for action, k in relayed.rounds(count, "cut", "killed"):
            self.path.unlink(missing_ok=True)
            with relayed.Relay(LAB, k, action) as relay:
                relay.box("export", "art-s", self.path)
                self.wait_for_no_backup((action, k))
            if self.path.exists():
                self.assertGreater(self.path.stat().st_size, 100000, (action, k))
            export(self.path)
            self.assertEqual(backups(), [], (action, k))


class Importing(unittest.TestCase):
    def setUp(self):
        self.path = DIRECTORY / "in.tar.zst"
        if not self.path.exists():
            export(self.path)
        self.addCleanup(LAB.remove_boxes, "art-i")

    def test_beside_its_source_and_twice(self):
        for name in ("art-i", "art-i2"):
            done = LAB.box("import", self.path, "--name", name)
            self.assertEqual((done.returncode, done.stdout), (0, name + "\n"), done.stderr)
        rows = instances()
        self.assertEqual(len({row["config"].get("volatile.eth0.hwaddr") for row in rows.values()}), 3)
        for name in ("art-i", "art-i2"):
            config = rows[name]["config"]
            self.assertEqual((config["user.box"], config["user.box.template"], config["limits.memory"]), ("1", "tiny", "1GiB"))
            self.assertEqual(config["user.box.imported.count"], "1")
            self.assertNotIn("user.box.state", config)
            self.assertEqual(rows[name]["status"], "Stopped")
        self.assertEqual(LAB.box("start", "art-i").returncode, 0)
        self.assertEqual(BOXES.shell("art-i", "cat /root/kept").stdout, "kept")

    def test_a_door_stays_with_its_box(self):
        path = DIRECTORY / "door.tar.zst"
        LAB.must(["incus", "config", "device", "add", "art-s", "door-8095", "proxy", "listen=tcp:127.0.0.1:8095",
                  "connect=tcp:127.0.0.1:8095"])
        self.addCleanup(LAB.must, ["incus", "config", "device", "remove", "art-s", "door-8095"])
        self.assertEqual(LAB.box("export", "art-s", path, "--force").returncode, 0)
        done = LAB.box("import", path, "--name", "art-i")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: the door door-8095", done.stderr)
        self.assertEqual(LAB.box("start", "art-i").returncode, 0)
        doors = json.loads(LAB.box("expose", "--list", "--json").stdout)
        self.assertEqual([(door["box"], door["port"]) for door in doors], [("art-s", 8095)])
        self.assertEqual(LAB.run(["ss", "-Hltn", "sport", "=", "8095"]).stdout, "")
        self.assertEqual(LAB.box("rm", "--force", "art-i").returncode, 0)
        self.assertIn("door-8095", instances()["art-s"]["devices"])

    def test_provenance_counts_each_import(self):
        LAB.box("import", self.path, "--name", "art-i")
        again = DIRECTORY / "again.tar.zst"
        self.assertEqual(LAB.box("export", "art-i", again, "--force").returncode, 0)
        first = json.loads(LAB.box("info", "art-i", "--json").stdout)["imported"]
        self.assertEqual(LAB.box("import", again, "--name", "art-i3").returncode, 0)
        told = json.loads(LAB.box("info", "art-i3", "--json").stdout)
        self.assertEqual((told["imported"]["count"], told["imported"]["first"]), (2, first["first"]))
        self.assertEqual(told["origin"], "mint")

    def test_names(self):
        taken = LAB.box("import", self.path)
        self.assertEqual(taken.returncode, 1)
        self.assertIn("--name NAME", taken.stderr)
        for name in ("../x", "a_b", "x" * 64, "-x"):
            self.assertEqual(LAB.box("import", self.path, f"--name={name}").returncode, 2, name)
        self.assertEqual(LAB.box("import", "/nowhere").returncode, 1)
        self.assertEqual(set(instances()), {"art-s"})

    def test_what_is_no_export_leaves_nothing(self):
        data = self.path.read_bytes()
        files = {"empty": b"", "text": b"hello\n" * 1000, "truncated": data[:len(data) // 2], "cut": data[:-1000],
                 "flipped": data[:5000] + bytes([data[5000] ^ 255]) + data[5001:], "zeros": bytes(100000)}
        for name, content in files.items():
            path = DIRECTORY / name
            path.write_bytes(content)
            done = LAB.box("import", path, "--name", "art-i")
            self.assertIn(done.returncode, (1, 2), (name, done.stderr))
            self.assertRegex(done.stderr, "(?m)^box: ")
        os.mkfifo(DIRECTORY / "fifo")
        for name in ("fifo", "."):
            self.assertIn(LAB.box("import", DIRECTORY / name, "--name", "art-i").returncode, (1, 2))
        self.assertEqual(set(instances()), {"art-s"})

    def test_every_request_spoiled(self):
        count = relayed.count(LAB, "import", self.path, "--name", "art-i")
        LAB.remove_boxes("art-i")
        for action, k in relayed.rounds(count, "cut", "lose", "killed"):
            with relayed.Relay(LAB, k, action) as relay:
                done = relay.box("import", self.path, "--name", "art-i")
            for name, row in instances().items():
                self.assertEqual(row["config"].get("user.box"), "1", (action, k, name))
                self.assertEqual(row["status"], "Stopped", (action, k, name))
                if name.startswith("box-import-"):
                    self.assertEqual(action, "killed", (k, done.stderr))
                    self.assertRegex(LAB.box("list").stdout, name + " .*incomplete")
                    self.assertEqual(LAB.box("rm", "-f", name).returncode, 0)
                elif name == "art-i" and done.returncode == 0:
                    self.assertNotIn("user.box.state", row["config"])
            LAB.remove_boxes("art-i")
            again = LAB.box("import", self.path, "--name", "art-i")
            self.assertEqual(again.returncode, 0, (action, k, again.stderr))
            LAB.remove_boxes("art-i")


class Hostile(unittest.TestCase):
    """Files that ask for more than a box may have."""

    @classmethod
    def setUpClass(cls):
        export(DIRECTORY / "good.tar.zst")
        subprocess.run(["zstd", "-q", "-d", "-f", DIRECTORY / "good.tar.zst", "-o", DIRECTORY / "good.tar"], check=True)

    def setUp(self):
        self.addCleanup(LAB.remove_boxes, "art-i")

    def forge(self, edit=None, add=(), name="hostile.tar", index=None):
        """A copy of a good file: `edit` changes the text of each backup.yaml and of the index, `add` puts members behind."""
        path = DIRECTORY / name
        with tarfile.open(DIRECTORY / "good.tar") as source, tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as target:
            for member in source:
                data = source.extractfile(member).read() if member.isreg() else None
                if data is not None and member.name.endswith(("backup.yaml", "index.yaml")):
                    text = data.decode()
                    data = (edit(text) if edit else text).encode()
                    if index is not None and member.name == "backup/index.yaml":
                        data = index
                    member.size = len(data)
                target.addfile(member, io.BytesIO(data) if data is not None else None)
            for member, data in add:
                target.addfile(member, io.BytesIO(data) if data is not None else None)
        return path

    @staticmethod
    def member(name, kind=tarfile.REGTYPE, data=None, link="", numbers=(0, 0)):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, link, len(data or b"")
        info.devmajor, info.devminor = numbers
        return info, data

    @staticmethod
    def add_config(*lines):
        return lambda text: text.replace('user.box: "1"\n', 'user.box: "1"\n' + "".join(
            "@@" + line + "\n" for line in lines)).replace("@@", "      ") if "config:\n  container:" in text else \
            text.replace('    user.box: "1"\n', '    user.box: "1"\n' + "".join("    " + line + "\n" for line in lines))

    def imported(self, path, *told, running=True):
        done = LAB.box("import", path, "--name", "art-i")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in told:
            self.assertIn(word, done.stderr)
        row = instances()["art-i"]
        self.assertEqual(row["status"], "Stopped")
        self.assertEqual(json.loads(LAB.box("info", "art-i", "--json").stdout)["deviations"], [])
        self.assertEqual(row["profiles"], ["box-net"])
        if running:
            started = LAB.box("start", "art-i")
            self.assertEqual(started.returncode, 0, started.stderr)
            mapped = BOXES.shell("art-i", "cat /proc/self/uid_map").stdout.split()
            self.assertEqual(mapped[0], "0")
            self.assertNotEqual(mapped[1], "0")
        return row

    def refused(self, path, word):
        done = LAB.box("import", path, "--name", "art-i")
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertIn(word, done.stderr)
        self.assertEqual(set(instances()), {"art-s"})

    def test_keys(self):
        keys = ("security.privileged: \"true\"", "raw.lxc: lxc.mount.entry = /etc mnt none bind 0 0", "raw.idmap: both 0 0",
                "security.syscalls.intercept.mount: \"true\"", "linux.kernel_modules: overlay", "nvidia.runtime: \"false\"")
        row = self.imported(self.forge(self.add_config(*keys)), *(key.split(":")[0] for key in keys))
        for key in keys:
            self.assertNotIn(key.split(":")[0], row["config"])

    def test_devices(self):
        text = ("@@disk:\n@@  path: /mnt\n@@  source: /\n@@  type: disk\n"
                "@@mem:\n@@  path: /dev/mem\n@@  source: /dev/mem\n@@  type: unix-char\n@@  required: \"false\"\n"
                "@@door-8091:\n@@  connect: tcp:127.0.0.1:80\n@@  listen: tcp:0.0.0.0:8091\n@@  type: proxy\n"
                "@@eth1:\n@@  nictype: bridged\n@@  parent: boxnet\n@@  type: nic\n")

        def edit(whole):
            indent = "      " if "config:\n  container:" in whole else "    "
            return whole.replace("devices: {}\n", "devices:\n" + text.replace("@@", indent), 1)
        row = self.imported(self.forge(edit), "device disk", "device mem", "device door-8091", "device eth1")
        self.assertEqual(set(row["devices"]) - {"root"}, set())

    def test_a_profile_of_another_kind(self):
        LAB.run(["incus", "profile", "create", "art-open"])
        LAB.must(["incus", "profile", "set", "art-open", "security.privileged=true"])
        self.addCleanup(LAB.run, ["incus", "profile", "delete", "art-open"])
        path = self.forge(lambda text: text.replace("- box-net\n", "- box-net\n  - art-open\n"))
        if LAB.box("import", path, "--name", "art-i").returncode == 0:
            LAB.remove_boxes("art-i")
            self.imported(path, "profile art-open")
        else:
            self.assertEqual(set(instances()), {"art-s"})

    def test_notes_of_the_daemon_are_not_taken_over(self):
        path = self.forge(lambda text: text.replace("volatile.idmap.base: \"0\"", "volatile.idmap.base: \"1\"").replace(
            "Hostid\":1000000", "Hostid\":0"))
        row = self.imported(path)
        self.assertNotIn('"Hostid":0', row["config"].get("volatile.idmap.next", ""))

    def test_what_carries_no_tag(self):
        self.refused(self.forge(lambda text: text.replace('user.box: "1"', 'user.other: "1"')), "no box")

    def test_names_in_the_index(self):
        for name in ("../x", "x" * 64, "a b", "1"):
            self.refused(self.forge(lambda text: text.replace("name: art-s\n", f"name: '{name}'\n")), "name")

    def test_members_out_of_their_place(self):
        root = "backup/container/rootfs/"
        for member, word in (
                (self.member("backup/../../etc/passwd", data=b"x"), "out of the archive"),
                (self.member("/etc/passwd", data=b"x"), "out of the archive"),
                (self.member("backup/container/rootfs/../../../x", data=b"x"), "out of the archive"),
                (self.member("elsewhere", data=b"x"), "out of the archive"),
                (self.member("backup/container", tarfile.SYMTYPE, link="/etc"), "symbolic link"),
                (self.member("backup/container/rootfs", tarfile.SYMTYPE, link="/etc"), "symbolic link"),
                (self.member("backup/container/metadata.yaml", tarfile.SYMTYPE, link="/etc/shadow"), "symbolic link"),
                (self.member("backup/container/templates/x", tarfile.SYMTYPE, link="/etc/shadow"), "symbolic link"),
                (self.member(root + "x", tarfile.LNKTYPE, link="/etc/shadow"), "hard link"),
                (self.member(root + "x", tarfile.LNKTYPE, link=root + "../../../../etc/shadow"), "hard link"),
                (self.member("backup/container/backup.yaml", tarfile.LNKTYPE, link=root + "x"), "hard link"),
                (self.member(root + "sda", tarfile.BLKTYPE, numbers=(8, 0)), "device of the host"),
                (self.member(root + "mem", tarfile.CHRTYPE, numbers=(1, 1)), "device of the host"),
                (self.member("backup/container.bin", data=b"x"), "storage stream"),
                (self.member("backup/index.yaml", data=b"name: x\n"), "twice")):
            self.refused(self.forge(add=[member]), word)

    def test_a_file_behind_a_symbolic_link_stays_in_the_box(self):
        target = DIRECTORY / "outside"
        target.mkdir(exist_ok=True)
        root = "backup/container/rootfs/"
        path = self.forge(add=[self.member(root + "leads", tarfile.SYMTYPE, link=str(target)),
                               self.member(root + "leads/planted", data=b"x")])
        LAB.box("import", path, "--name", "art-i")
        self.assertEqual(list(target.iterdir()), [])

    def test_a_gigabyte_of_index(self):
        path = DIRECTORY / "huge.tar.zst"
        with subprocess.Popen(["zstd", "-q", "-f", "-o", path], stdin=subprocess.PIPE) as pack:
            info = tarfile.TarInfo("backup/index.yaml")
            info.size = 1 << 30
            pack.stdin.write(info.tobuf())
            for _ in range(1024):
                pack.stdin.write(bytes(1 << 20))
        self.refused(path, "its index")

    def test_an_index_that_is_none(self):
        for index in (b"", b"\0" * 100, b"name: x\n", b"- a\n", b"name: x\ntype: folder\n",
                      b"name: x\ntype: container\noptimized: true\n"):
            self.refused(self.forge(index=index), "box: ")

    def test_a_snapshot_that_carries_it(self):
        LAB.must(["incus", "config", "set", "art-s", "security.privileged=true"])
        LAB.must(["incus", "snapshot", "create", "art-s", "bad"])
        LAB.must(["incus", "config", "unset", "art-s", "security.privileged"])
        LAB.must(["incus", "snapshot", "create", "art-s", "good"])
        self.addCleanup(LAB.run, ["incus", "snapshot", "delete", "art-s", "bad"])
        self.addCleanup(LAB.run, ["incus", "snapshot", "delete", "art-s", "good"])
        path = export(DIRECTORY / "snapshots.tar.zst")
        self.imported(path, "the snapshot bad: security.privileged", running=False)
        told = json.loads(LAB.box("info", "art-i", "--json").stdout)
        self.assertEqual([row["label"] for row in told["snapshots"]], ["good"])
        mac = LAB.query("/1.0/instances/art-i")["config"].get("volatile.eth0.hwaddr")
        self.assertEqual(LAB.box("restore", "art-i", "good", "--force").returncode, 0)
        self.assertEqual(LAB.query("/1.0/instances/art-i")["config"].get("volatile.eth0.hwaddr"), mac)


if __name__ == "__main__":
    unittest.main()
