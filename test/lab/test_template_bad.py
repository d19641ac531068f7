"""Templates that are wrong, each in one way: refused before anything is made, or kept as incomplete with the reason, and never a
bare machine that is called ready. And `box templates check`, which says so before."""
import concurrent.futures
import json
import os
import re
import tempfile
import textwrap
import unittest
from pathlib import Path

import harness

LAB = harness.Lab()
PREFIX = "bad-"
ENV = b'BOX_USER="dev"\nBOX_MEMORY="512MiB"\n'
DATA = b"#cloud-config\nusers:\n  - name: dev\n    shell: /bin/bash\n"
SCRIPT = b"#!/bin/sh\ntrue\n"
LARGE = b"#" * (20 * 1024 * 1024)
FIFO, GONE, FOLDER, ABSENT, HOSTS = object(), object(), object(), object(), object()

# name, file, what it holds, words: told by `new` and by `check`, before any request.
REFUSED = [
    ("key", "box.env", ENV + b'BOX_NETWORK="lan"\n', "box.env:3: unknown key BOX_NETWORK"),
    ("crlf", "box.env", ENV.replace(b"\n", b"\r\n"), "box.env:1: a carriage return"),
    ("bom", "box.env", b"\xef\xbb\xbf" + ENV, "box.env:1: a byte order mark"),
    ("nul", "box.env", ENV + b'BOX_CPU="1\0"\n', "box.env:3: a NUL byte"),
    ("latin", "box.env", ENV + b'BOX_DESCRIPTION="caf\xe9"\n', "box.env:3: bytes that are not UTF-8"),
    ("escape", "box.env", ENV + b'BOX_DESCRIPTION="\x1b[2J"\n', "box.env:3: a control character (0x1b)"),
    ("twice", "box.env", ENV + ENV, "box.env:3: BOX_USER is there twice"),
    ("line", "box.env", ENV + b'BOX_DESCRIPTION="' + b"x" * (1 << 20) + b'"\n', "box.env:3: a line of"),
    ("value", "box.env", ENV.replace(b"512MiB", b"lots"), "box.env:2: BOX_MEMORY"),
    ("unquoted", "box.env", b"BOX_USER=dev\n", "box.env:1: expected KEY="),
    ("c1-login", "box.env", ENV + 'BOX_LOGIN="run \x9b2J"\n'.encode(), "box.env:3: BOX_LOGIN"),
    ("env-large", "box.env", LARGE, "box.env"),
    ("env-fifo", "box.env", FIFO, "box.env: a FIFO, not a file"),
    ("env-gone", "box.env", ABSENT, "box.env: there is no such file"),
    ("gzip", "user-data.yaml", b"\x1f\x8b\x08\0\0\0\0\0", "user-data.yaml: compressed with gzip"),
    ("large", "user-data.yaml", DATA + LARGE, "user-data.yaml: larger than 1 MiB"),
    ("fifo", "user-data.yaml", FIFO, "user-data.yaml: a FIFO, not a file"),
    ("link", "user-data.yaml", GONE, "user-data.yaml: a symbolic link"),
    ("carries", "user-data.yaml", HOSTS, "user-data.yaml: a symbolic link, which could lead any file of this host into a box"),
    ("env-carries", "box.env", HOSTS, "box.env: a symbolic link"),
    ("script-carries", "converge.sh", HOSTS, "converge.sh: a symbolic link"),
    ("folder", "user-data.yaml", FOLDER, "user-data.yaml: a directory, not a file"),
    ("absent", "user-data.yaml", ABSENT, "user-data.yaml: there is no such file"),
    ("c1", "user-data.yaml", DATA + "x: \x9b\n".encode(), "user-data.yaml:5: a control character (U+009B)"),
    ("data-nul", "user-data.yaml", DATA + b"# \0\n", "user-data.yaml: a NUL byte"),
    ("data-latin", "user-data.yaml", DATA + b"# caf\xe9\n", "user-data.yaml: bytes that are not UTF-8"),
    ("data-crlf", "user-data.yaml", b"#!/bin/sh\r\nuseradd -m dev\r\n", "user-data.yaml:1: a carriage return"),
    ("script-crlf", "converge.sh", SCRIPT.replace(b"\n", b"\r\n"), "converge.sh:1: a carriage return"),
    ("script-none", "converge.sh", b"echo hello\n", "converge.sh:1: a script begins with #!"),
    ("script-fifo", "converge.sh", FIFO, "converge.sh: a FIFO, not a file"),
    ("script-link", "converge.sh", GONE, "converge.sh: a symbolic link"),
    ("script-large", "converge.sh", SCRIPT + LARGE, "converge.sh: larger than 1 MiB"),
]

# name, user-data, converge.sh, more words of `new`, what is told: the guest's to find out.
KEPT = [
    ("nobody", b"", None, (), "the guest has no user dev"),
    ("user", DATA.replace(b"dev", b"other"), None, (), "the guest has no user dev"),
    ("headless", DATA.split(b"\n", 1)[1], None, (), "cloud-init dropped the user-data"),
    ("tag", DATA + b"x: !foo bar\n", None, (), "cloud-init dropped the user-data"),
    ("script", DATA, b"#!/bin/sh\necho the shelf is empty\nexit 3\n", (), "converge.sh failed (exit status 3): the shelf is empty"),
    ("interpreter", DATA, b"#!/bin/nothing\n", (), "; its interpreter, or a command that it calls, is missing in the box"),
    ("endless", DATA + b"runcmd: [[sh, -c, 'while :; do sleep 1; done']]\n", None, ("--wait", "3"), "was not done after 3 s"),
]


def setUpModule():
    LAB.ready()
    LAB.remove_boxes(PREFIX)


def tearDownModule():
    LAB.remove_boxes(PREFIX)


class Templates(unittest.TestCase):
    """Tests that make templates of their own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def template(self, name, **files):
        place = self.root / name
        place.mkdir()
        for file, data in {"box.env": ENV, "user-data.yaml": DATA, **files}.items():
            path = place / file
            if data is FIFO:
                os.mkfifo(path)
            elif data is GONE:
                path.symlink_to("gone")
            elif data is HOSTS:  # sound in itself, and not the template's
                hosts = self.root / f"hosts-{file}"
                hosts.write_bytes({"box.env": ENV, "user-data.yaml": DATA, "converge.sh": SCRIPT}[file])
                path.symlink_to(hosts)
            elif data is FOLDER:
                path.mkdir()
            elif data is not ABSENT and data is not None:
                path.write_bytes(data)
        return place

    def new(self, name, *words, **options):
        return LAB.box("new", PREFIX + name, "--template", name, "--template-dir", str(self.root), *words, **options)

    def check(self, place, *words, **env):
        return LAB.box("templates", "check", str(place), *words, env=env, timeout=120)


class Bad(Templates):
    def test_what_is_refused_before_any_request(self):
        self.assertGreaterEqual(len(REFUSED), 25)
        nowhere = {"INCUS_SOCKET": str(self.root / "none")}
        for name, file, data, words in REFUSED:
            with self.subTest(name):
                place = self.template(name, **{file: data})
                done = self.new(name, env=nowhere)
                self.assertEqual((done.returncode, done.stdout), (2 if name != "env-large" else done.returncode, ""), done.stderr)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertNotIn("socket", done.stderr)
                self.assertNotRegex(done.stderr, "[\r\x1b\x9b]")
                told = self.check(place, "--json", **nowhere)
                self.assertEqual(told.returncode, 1, told.stderr)
                rows = {row["check"]: row for row in json.loads(told.stdout)["checks"]}
                self.assertEqual([row["check"] for row in rows.values() if row["verdict"] == "fault"], [file])
                self.assertIn(words, rows[file]["detail"])
                self.assertEqual(rows["schema"]["verdict"], "not judged")

    def test_a_template_that_is_nowhere(self):
        (self.root / "lost").symlink_to("gone")
        self.assertIn("a link that leads nowhere", self.new("lost").stderr)
        done = self.check(self.root / "lost")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("a link that leads nowhere", done.stderr)

    def kept(self, row):
        name, data, script, words, _ = row
        self.template(name, **{"user-data.yaml": data, "converge.sh": script})
        return self.new(name, *words, timeout=300)

    def test_what_the_guest_finds_out_is_kept_and_is_no_box_that_is_ready(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = dict(zip([row[0] for row in KEPT], pool.map(self.kept, KEPT)))
        boxes = {box["name"]: box for box in json.loads(LAB.box("list", "--json").stdout)}
        for name, _, _, _, words in KEPT:
            with self.subTest(name):
                self.assertEqual((done[name].returncode, done[name].stdout), (1, ""), done[name].stderr)
                self.assertIn(words, done[name].stderr)
                self.assertIn("kept, but incomplete", done[name].stderr)
                self.assertNotIn("is ready", done[name].stderr)
                self.assertIn(boxes[PREFIX + name]["incomplete"], ("failed", "unconverged"))
                self.assertIn(words, boxes[PREFIX + name]["reason"])
                self.assertFalse(LAB.query(f"/1.0/instances/{PREFIX}{name}/snapshots"))
        LAB.remove_boxes(PREFIX)

    def test_an_unquoted_colon_leaves_nothing(self):
        self.template("colon", **{"user-data.yaml": DATA + b"foo: bar: baz\n"})
        done = self.new("colon")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("user-data.yaml is no YAML: mapping values", done.stderr)
        self.assertIn(f"box templates check {self.root}/colon, which tells the line", done.stderr)
        self.assertNotIn(PREFIX + "colon", LAB.box("list").stdout)


class Check(Templates):
    """What only the programs of the image can tell, and what is said without them."""

    def verdicts(self, place, status):
        done = self.check(place, "--json")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertFalse([row["name"] for row in LAB.query("/1.0/instances?recursion=1") if row["name"].startswith("check-")])
        rows = {row["check"]: row for row in json.loads(done.stdout)["checks"]}
        self.assertEqual(list(rows), ["name", "box.env", "user-data.yaml", "converge.sh", "files", "schema", "user", "syntax"])
        return {name: row["verdict"] for name, row in rows.items()}, {name: row["detail"] for name, row in rows.items()}

    def test_what_ships_is_sound(self):
        place = harness.ROOT / "templates" / "claude"
        done = self.check(place)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^CHECK +VERDICT +DETAIL$")
        self.assertEqual(done.stdout.count(" holds "), 8, done.stdout)

    def test_the_one_that_the_docs_make_is_sound(self):
        text = (harness.ROOT / "docs" / "templates.md").read_text()
        blocks = [textwrap.dedent(block).encode() for block in re.findall(r"(?ms)^   ```\n(.*?)^   ```$", text)]
        env, data, script = (next(block for block in blocks if block.startswith(start))
                             for start in (b"BOX_", b"#cloud-config", b"#!/bin/sh"))
        place = self.template("web", **{"box.env": env, "user-data.yaml": data, "converge.sh": script})
        self.assertEqual(set(self.verdicts(place, 0)[0].values()), {"holds"})

    def test_each_fault_is_found_in_one_run(self):
        place = self.template("many", **{"user-data.yaml": DATA.replace(b"dev", b"ops") + b"nonsense: 3\n",
                                         "converge.sh": b"#!/bin/sh\nif true; then\n"})
        verdict, detail = self.verdicts(place, 1)
        self.assertEqual([name for name, word in verdict.items() if word == "fault"], ["schema", "user", "syntax"])
        self.assertEqual(detail["schema"], "user-data.yaml:5: unknown key nonsense")
        self.assertEqual(detail["user"], f"{place}/box.env: BOX_USER is dev, and user-data.yaml makes ops")
        self.assertIn("converge.sh: ", detail["syntax"])

    def test_what_cloud_init_refuses_is_one_sentence_with_its_line(self):
        place = self.template("forms", **{"user-data.yaml": DATA.replace(b"users:", b"user:") + b"runcmd: 5\npakages: [jq]\n"})
        verdict, detail = self.verdicts(place, 1)
        self.assertEqual([name for name, word in verdict.items() if word == "fault"], ["schema", "user"])
        self.assertEqual(sorted(detail["schema"].split("; ")), [
            "user-data.yaml:2: user is not of type 'object' (did you mean users?)",
            "user-data.yaml:5: runcmd is not of type 'array'",
            "user-data.yaml:6: unknown key pakages: did you mean packages?"])

        for data, words in ((DATA.split(b"\n", 1)[1], "user-data.yaml:1: the first line is not #cloud-config"),
                            (DATA.replace(b"shell", b"shel"), "user-data.yaml:4: users.0: unknown key shel")):
            (place / "user-data.yaml").write_bytes(data)
            self.assertEqual(self.verdicts(place, 1)[1]["schema"], words)

    def test_an_interpreter_that_the_image_lacks(self):
        place = self.template("lacks", **{"converge.sh": b"#!/bin/nosuch\n"})
        verdict, detail = self.verdicts(place, 1)
        self.assertEqual([name for name, word in verdict.items() if word == "fault"], ["syntax"])
        self.assertRegex(detail["syntax"], r"^no /bin/nosuch in the image, which has /\S*/sh, /\S*/bash, /\S*/python3")
        place = self.template("brings", **{"converge.sh": b"#!/usr/bin/env nosuch\n", "user-data.yaml": DATA + b"packages: [nosuch]\n"})
        verdict, detail = self.verdicts(place, 0)
        self.assertEqual(verdict["syntax"], "not judged")
        self.assertIn("no nosuch in the image", detail["syntax"])

    def test_a_file_that_is_none_of_a_template(self):
        nowhere = {"INCUS_SOCKET": str(self.root / "none")}
        place = self.template("strays")
        for name in ("README.md", ".gitignore", "notes.txt", "converge.sh~"):
            (place / name).write_text("")
        done = self.check(place, **nowhere)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{place}/notes.txt is not used", done.stderr)
        self.assertNotRegex(done.stderr, "README|gitignore")
        (place / "convege.sh").write_text("")
        done = self.check(place, **nowhere)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^files +fault +convege\.sh: did you mean converge\.sh\?$")

    def test_what_cannot_be_judged_says_so(self):
        place = self.template("colon", **{"user-data.yaml": DATA + b"foo: bar: baz\n", "converge.sh": b"#!/usr/bin/python3\n"})
        verdict, detail = self.verdicts(place, 1)
        self.assertEqual((verdict["schema"], verdict["user"], verdict["syntax"]), ("fault", "not judged", "not judged"))
        self.assertEqual(detail["schema"], "user-data.yaml:5:9: mapping values are not allowed here")
        place = self.template("image", **{"box.env": ENV + b'BOX_IMAGE="debian/99"\n'})
        verdict, detail = self.verdicts(place, 0)
        self.assertEqual(verdict["schema"], "not judged")
        self.assertIn("debian/99", detail["schema"])
        done = self.check(harness.ROOT / "templates" / "blank", INCUS_SOCKET=str(self.root / "none"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no Incus answers", done.stdout)
        self.assertIn("3 of 8 were not judged", done.stderr)

    def test_staging_is_refused_where_no_vm_runs(self):
        if "qemu" in LAB.query("/1.0")["environment"]["driver"]:
            self.fail("this lab's daemon runs VMs: the refusal cannot be seen")
        done = LAB.box("new", "bad-staging", "--template", "staging")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("it is required by the template staging", done.stderr)
        self.assertNotIn("bad-staging", LAB.box("list").stdout)


if __name__ == "__main__":
    unittest.main()
