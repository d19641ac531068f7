"""`box templates`: what it lists from where, and that a bad template is one error with file and line. Needs no daemon."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

SOUND = 'BOX_DESCRIPTION="mine"\nBOX_IMAGE="debian/13"\nBOX_USER="dev"\nBOX_CPU="1"\nBOX_MEMORY="512MiB"\nBOX_DISK="5GiB"\n'
TEXT = (str, type(None))
KEYS = {"name": str, "directory": str, "hidden": bool, "fault": TEXT, "description": TEXT, "image": TEXT, "user": TEXT,
        "cpu": TEXT, "memory": TEXT, "disk": TEXT, "require_vm": bool, "autostart": bool, "digest": TEXT,
        "warm": bool, "login": TEXT, "converge": bool}


class Templates(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.user = self.root / "config" / "box" / "templates"

    def box(self, *arguments, **env):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("BOX_") or key == "BOX_BINARY"}
        return subprocess.run([harness.binary(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=30, check=False,
                              env={**clean, "XDG_CONFIG_HOME": str(self.root / "config"), "COLUMNS": "500", **env})

    def write(self, place, env=SOUND, data="#cloud-config\n"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "box.env").write_bytes(os.fsencode(env))
        (place / "user-data.yaml").write_bytes(os.fsencode(data))

    def rows(self, *arguments, **env):
        done = self.box("templates", "--json", *arguments, **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_lists_those_that_came_with_box(self):
        blank = next(row for row in self.rows() if row["name"] == "blank")
        self.assertEqual((blank["image"], blank["user"], blank["fault"], blank["require_vm"]), ("debian/13", "dev", None, False))
        self.assertRegex(blank["digest"], "^[0-9a-f]{64}$")
        done = self.box("templates")
        self.assertRegex(done.stdout, r"(?m)^TEMPLATE +IMAGE +USER +NEEDS +MINT +DESCRIPTION +DIRECTORY$")
        self.assertRegex(done.stdout, r"(?m)^blank +debian/13 +dev +\d+ CPU, ")

    def test_the_agents_differ_in_three_lines_and_hold_no_secret(self):
        shipped = harness.ROOT / "templates"
        scripts = {name: (shipped / name / "converge.sh").read_text().splitlines() for name in ("claude", "codex", "gemini")}
        for name, lines in scripts.items():
            self.assertEqual([line for line in lines if line not in scripts["claude"]],
                             [] if name == "claude" else [line for line in lines
                                                          if line.startswith(("PACKAGE=", "COMMAND=", "CONTEXT="))], name)
        for path in shipped.rglob("*"):
            if path.is_file():
                self.assertNotRegex(path.read_text(), r"(?i)api.?key|token|\b(hashed_|plain_text_)?passwd\s*[=:]|secret|BEGIN [A-Z ]*PRIVATE|ssh-(rsa|ed25519) AAAA")
        rows = {row["name"]: row for row in self.rows()}
        self.assertTrue(all(rows[name]["converge"] and name in rows[name]["login"] for name in scripts))
        self.assertEqual((rows["staging"]["require_vm"], rows["staging"]["autostart"]), (True, True))

    def test_no_option_and_no_key_carries_a_secret(self):
        commands = [line.split("  ")[0] for line in self.box("help").stdout.replace("\n  ", "\n").splitlines()]
        words = " ".join(self.box("help", *name.split()).stdout for name in commands if name and name[0].islower())
        self.assertIn("--template-dir", words)
        # --key is ssh-config's, and takes the public half alone.
        options = set(re.findall(r"--[a-z-]+|BOX_[A-Z_]+", words)) - {"--key"}
        self.assertFalse([option for option in options if re.search(r"(?i)key|token|secret|pass|auth|cred|env", option)], options)

    def test_the_shape_stays(self):
        self.write(self.user / "sound")
        self.write(self.user / "broken", "nonsense\n")
        for row in self.rows():
            self.assertEqual(set(row), set(KEYS))
            for key, kind in KEYS.items():
                self.assertIsInstance(row[key], kind, key)

    def test_the_users_own_and_a_directory_come_beside_and_before(self):
        self.write(self.user / "blank")
        self.write(self.root / "given" / "blank", SOUND.replace("mine", "given"))
        self.write(self.root / "given" / "other")
        found = self.rows("--template-dir", str(self.root / "given"))
        self.assertEqual([row["description"] for row in found if row["name"] == "blank" and not row["hidden"]], ["given"])
        self.assertEqual(sum(row["name"] == "blank" for row in found), 3)
        self.assertIn("other", [row["name"] for row in found])
        found = self.rows()
        self.assertEqual([row["description"] for row in found if row["name"] == "blank" and not row["hidden"]], ["mine"])

    def test_falls_back_to_the_home_directory(self):
        self.write(self.root / ".config" / "box" / "templates" / "homely")
        self.assertIn("homely", [row["name"] for row in self.rows(XDG_CONFIG_HOME="", HOME=str(self.root))])

    def test_a_directory_that_is_none_is_refused(self):
        for path in ("nowhere", "file"):
            (self.root / "file").write_text("x")
            done = self.box("templates", "--template-dir", str(self.root / path))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("is not a directory", done.stderr)

    def test_each_fault_is_one_line_with_its_place(self):
        long_line = 'BOX_DESCRIPTION="' + "x" * (1 << 20) + '"\n'
        for number, (env, says) in enumerate((
                ('BOX_NETWORK="lan"\n', ":1: unknown key BOX_NETWORK"), ("\nBOX_CPU=2\n", ":2: "), ("BOX_CPU='2'\n", ":1: "),
                ('BOX_CPU="2"\r\n', ":1: a carriage return"), ('\ufeffBOX_CPU="2"\n', ":1: a byte order mark"),
                ('BOX_CPU="2\0"\n', ":1: a NUL"), ('BOX_CPU="2"\nBOX_CPU="2"\n', ":2: BOX_CPU is there twice"),
                (SOUND + long_line, ":7: "), ('BOX_CPU="$(nproc)"\n', ":1: BOX_CPU"), ("BOX_USER=\"\udcff\"\n", ":1: bytes"))):
            name = f"bad{number}"
            self.write(self.user / name, env)
            row = next(row for row in self.rows() if row["name"] == name)
            self.assertIn(f"{self.user / name}/box.env{says}", row["fault"])
            done = self.box("templates")
            self.assertEqual(done.returncode, 0)
            lines = [line for line in done.stderr.splitlines() if f"/{name}/" in line]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertLess(len(lines[0]), 400)
            self.assertNotIn("\r", done.stderr)
            self.assertRegex(done.stdout, rf"(?m)^{name} .*cannot be used")

    def test_odd_user_data_is_told_apart(self):
        place = self.user / "odd"
        data = place / "user-data.yaml"

        def fault():
            return next(row for row in self.rows() if row["name"] == "odd")["fault"]

        self.write(place, data="x" * (1 << 20))
        self.assertIsNone(fault())
        self.write(place, data="x" * ((1 << 20) + 1))
        self.assertIn("larger than 1 MiB", fault())
        data.write_bytes(b"\x1f\x8b\x08\0")
        self.assertIn("gzip", fault())
        for make, says in ((data.mkdir, "a directory"), (lambda: os.mkfifo(data), "a FIFO"),
                           (lambda: data.symlink_to("gone"), "a symbolic link"), (lambda: None, "no such file")):
            data.rmdir() if data.is_dir() else data.unlink(missing_ok=True)
            make()
            self.assertIn(says, fault())

    def test_new_refuses_a_bad_one_before_any_request(self):
        self.write(self.user / "bad", 'BOX_NETWORK="lan"\n')
        done = self.box("new", "--name", "template-box", "--template", "bad", INCUS_SOCKET=str(self.root / "none"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("box.env:1: unknown key BOX_NETWORK", done.stderr)

    def test_new_names_the_templates_that_there_are(self):
        done = self.box("new", "--name", "template-box", "--template", "bleak", INCUS_SOCKET=str(self.root / "none"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such template: bleak: did you mean blank?; there is: ", done.stderr)

    def test_a_warning_does_not_land_within_a_row(self):
        for number in range(60):
            self.write(self.user / f"bad{number}", 'BOX_NETWORK="lan"\n')
        done = subprocess.run([harness.binary(), "templates"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30, check=False,
                              env={**os.environ, "XDG_CONFIG_HOME": str(self.root / "config")})
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        rows = [number for number, line in enumerate(lines) if " cannot be used " in line and "unknown key" not in line]
        warnings = [number for number, line in enumerate(lines) if "unknown key BOX_NETWORK" in line]
        self.assertEqual((len(rows), len(warnings)), (60, 60), done.stdout)
        self.assertGreater(min(warnings), max(rows))


if __name__ == "__main__":
    unittest.main()
