"""converge.sh: run by a mint and by `box converge`, heard live, kept from harm when it fails; the login step. With a template of
its own that needs no network, against a real daemon in the lab."""
import json
import os
import re
import signal
import tempfile
import unittest
from pathlib import Path

import harness

LAB = harness.Lab()
PREFIX = "conv-"
BOX = "conv-a"
WARM = {"BOX_SEED_MAX_AGE": "7d"}
ENV = 'BOX_USER="dev"\nBOX_MEMORY="512MiB"\nBOX_LOGIN="run agent, and follow its link"\n'
DATA = "#cloud-config\nusers:\n  - name: dev\n    shell: /bin/bash\n"
# What the tests need of it: it counts its runs, and what a file says decides how it ends.
SCRIPT = r"""#!/bin/sh
set -eu
echo "as $(id -un), $#, for $BOX_USER in $BOX_HOME of $BOX_TEMPLATE, $(ls -d /run/cloud-init/result.json), $(cat | wc -c)"
echo "knows $(env | sed -n 's/=.*//p' | sort | tr '\n' ' ')"
printf 'bell \a, title \033]0;owned\a, C1 \302\233 end\n'
echo run >>/root/runs
mkdir -p /opt/tool && echo "VERSION" >/opt/tool/version
case $(cat /root/how 2>/dev/null || echo HOW) in
    fail) echo "the shelf is empty" >&2; exit 3 ;;
    hang) echo "hanging"; sleep 1000 & wait ;;
    flood) i=0; while [ $i -lt 6000 ]; do echo "line $i"; i=$((i + 1)); done ;;
esac
sleep 1000 &
echo "all is there"
"""
LOGIN = "to log in, in the box (box shell {0}): run agent, and follow its link"


class Workshop:
    """The directory of the templates."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.place = Path(self.directory.name) / "tool"
        self.place.mkdir()
        (self.place / "box.env").write_text(ENV)
        (self.place / "user-data.yaml").write_text(DATA)
        self.write()

    def write(self, version="1", how="well"):
        (self.place / "converge.sh").write_text(SCRIPT.replace("VERSION", version).replace("HOW", how))
        return ("--template-dir", self.directory.name)


def setUpModule():
    global SHOP
    SHOP = Workshop()
    LAB.ready()
    LAB.remove_boxes(PREFIX)
    LAB.box("seeds", "rm", "tool")


def tearDownModule():
    LAB.box("seeds", "rm", "tool")
    LAB.remove_boxes(PREFIX)
    SHOP.directory.cleanup()


def inside(name, script):
    return LAB.must(["incus", "exec", name, "--", "sh", "-c", script]).stdout


def portrait(name):
    return json.loads(LAB.box("info", name, "--json").stdout)


def labels(name):
    return [row["label"] for row in portrait(name)["snapshots"]]


class Converge(unittest.TestCase):
    """One box after the other's state: the steps are in their order."""

    def converge(self, status=0, how=None, *words, **options):
        if how:
            inside(BOX, f"echo {how} >/root/how")
        done = LAB.box("converge", BOX, "--template-dir", SHOP.directory.name, *words, **options)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr

    def new(self, name, *words, status=0):
        done = LAB.box("new", name, "--template", "tool", "--template-dir", SHOP.directory.name, *words, env=WARM, timeout=180)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_1_a_mint_that_fails_in_it_is_kept_without_a_mark(self):
        SHOP.write(how="fail")
        words = self.new(BOX, status=1).stderr
        self.assertIn("the shelf is empty", words)
        self.assertIn("conv-a is kept, but incomplete: converge.sh failed (exit status 3): the shelf is empty", words)
        self.assertRegex(words, rf"(?m)^ +run it again: box converge conv-a --template-dir {SHOP.directory.name}$")
        self.assertNotIn("is ready", words)
        self.assertNotIn("to log in", words)
        box = portrait(BOX)
        self.assertEqual((box["incomplete"], box["snapshots"]), ("unconverged", []))
        self.assertIn("the shelf is empty", box["reason"])
        self.assertIn("incomplete: unconverged", LAB.box("list").stdout)
        self.assertIn("box converge conv-a", LAB.box("doctor", timeout=120).stdout)
        self.assertEqual(LAB.box("exec", BOX, "--", "id", "-un").stdout, "dev\n")
        self.assertIn("is incomplete", LAB.box("new", "conv-x", "--from", BOX).stderr)
        self.assertIn("converge.sh failed", self.converge(1))
        self.assertEqual(labels(BOX), [])

    def test_2_run_again_it_completes_the_box_and_takes_the_mark(self):
        SHOP.write()
        words = self.converge(env={"SECRET_TOKEN": "tell nobody", "BOX_TOKEN": "nor this"})
        known = set(re.search(r"(?m)^  \| knows (.*)$", words).group(1).split())
        self.assertEqual({name for name in known if name.startswith("BOX_")}, {"BOX_HOME", "BOX_TEMPLATE", "BOX_USER"})
        self.assertLessEqual(known, {"BOX_HOME", "BOX_TEMPLATE", "BOX_USER", "DEBIAN_FRONTEND", "HOME", "LANG", "LC_ALL", "OLDPWD",
                                     "PATH", "PWD", "SHLVL", "TERM", "USER", "_", "container"})
        self.assertIn("  | as root, 0, for dev in /home/dev of tool, /run/cloud-init/result.json, 0\n", words)
        self.assertIn("  | all is there\n", words)
        self.assertNotRegex(words, "[\x1b\x07\x9b]")
        self.assertIn(LOGIN.format(BOX), words)
        self.assertIsNone(portrait(BOX)["incomplete"])
        self.assertEqual(labels(BOX), ["bootstrapped"])
        self.assertEqual(inside(BOX, "cat /root/runs /opt/tool/version").split(), ["run"] * 3 + ["1"])

    def test_3_a_newer_template_and_the_mark_moves_on(self):
        SHOP.write("2")
        inside(BOX, "touch /home/dev/work")
        self.converge()
        self.assertEqual(labels(BOX), ["bootstrapped"])
        SHOP.write("3")
        words = self.converge(1, "fail")
        self.assertIn("conv-a is kept as it is: converge.sh failed (exit status 3)", words)
        self.assertEqual((labels(BOX), portrait(BOX)["incomplete"]), (["bootstrapped"], None))
        self.assertEqual(inside(BOX, "cat /opt/tool/version").strip(), "3")
        self.assertEqual(LAB.box("restore", BOX, "bootstrapped", "--force").returncode, 0)
        self.assertEqual(inside(BOX, "cat /opt/tool/version; ls /home/dev/work").split(), ["2", "/home/dev/work"])

    def hangers(self):
        return inside(BOX, "pgrep -fc '^sleep 1000' || true").strip()

    def test_4_a_budget_and_a_signal_end_all_of_it(self):
        inside(BOX, "pkill -f '^sleep 1000'; true")
        words = self.converge(1, "hang", "--wait", "2")
        self.assertIn("converge.sh was not done after 2 s; its last words: hanging", words)
        self.assertIn("run it again: box converge conv-a", words)
        self.assertEqual(self.hangers(), "0")
        process = LAB.popen([harness.binary(), "converge", BOX, "--template-dir", SHOP.directory.name], stderr=-1, stdout=-1)
        heard = b""
        while b"hanging" not in heard:
            line = process.stderr.readline()
            self.assertTrue(line, heard)
            heard += line
        refused = self.converge(1)
        self.assertIn("converge.sh runs in it already", refused)
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (1, b""), rest)
        self.assertIn(b"interrupted", rest)
        self.assertEqual(self.hangers(), "0")
        self.assertEqual((labels(BOX), portrait(BOX)["incomplete"]), (["bootstrapped"], None))

    def test_5_words_without_end_are_cut(self):
        words = self.converge(0, "flood")
        self.assertIn("  | line 4000\n", words)
        self.assertIn("more than 5000 lines", words)
        self.assertNotIn("line 5500", words)
        self.assertNotIn("|", LAB.box("--quiet", "converge", BOX, "--template-dir", SHOP.directory.name).stderr)

    def test_6_what_cannot_be_run(self):
        script = (SHOP.place / "converge.sh").read_text()
        (SHOP.place / "converge.sh").unlink()
        self.assertIn("has no converge.sh", self.converge(1))
        (SHOP.place / "converge.sh").write_text("echo\n")
        self.assertIn("converge.sh:1: a script begins with #!", self.converge(2))
        (SHOP.place / "converge.sh").write_text(script)
        (SHOP.place / "box.env").write_text(ENV.replace("dev", "other"))
        self.assertIn("makes boxes of the user other", self.converge(1))
        (SHOP.place / "box.env").write_text(ENV)
        done = LAB.box("converge", BOX)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such template: tool", done.stderr)
        self.assertIn("no such box", LAB.box("converge", "conv-nothing").stderr)
        LAB.remove_boxes(BOX)

    def test_7_a_mint_and_the_seed_that_it_leaves(self):
        SHOP.write("4")
        words = self.new(BOX).stderr
        self.assertLess(words.index("waiting for its first boot"), words.index("running converge.sh of tool"))
        self.assertRegex(words, r"(?s)conv-a is ready after .*" + re.escape(LOGIN.format(BOX)))
        self.assertEqual(sorted(labels(BOX)), ["bootstrapped", "pristine"])
        warm = self.new("conv-b").stderr
        self.assertIn("from the seed of tool", warm)
        self.assertNotIn("converge", warm)
        self.assertIn(LOGIN.format("conv-b"), warm)
        self.assertEqual(inside("conv-b", "cat /root/runs /opt/tool/version").split(), ["run", "4"])
        self.assertEqual(sorted(labels("conv-b")), ["bootstrapped", "pristine"])
        SHOP.write("5")
        again = self.new("conv-c", status=0).stderr
        self.assertNotIn("from the seed", again)
        self.assertEqual(inside("conv-c", "cat /opt/tool/version").strip(), "5")

    def test_8_a_clone_is_told_the_login_step_and_an_imported_box_says_none(self):
        done = LAB.box("new", "conv-d", "--from", "conv-b/pristine", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(LOGIN.format("conv-d"), done.stderr)
        self.assertNotIn("converge", done.stderr)
        LAB.must([harness.binary(), "down", "conv-d"], timeout=60)
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            LAB.must([harness.binary(), "export", "conv-d", f"{directory}/conv-d.box"], timeout=120)
            LAB.remove_boxes("conv-d")
            LAB.must([harness.binary(), "import", f"{directory}/conv-d.box", "--name", "conv-d"], timeout=120)
        self.assertNotIn("user.box.login", LAB.query("/1.0/instances/conv-d")["config"])
        LAB.must([harness.binary(), "start", "conv-d"])
        done = LAB.box("new", "conv-f", "--from", "conv-d/pristine", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("to log in", done.stderr)

    def test_9_ctrl_c_in_a_mint_leaves_nothing(self):
        SHOP.write(how="hang")
        process = LAB.popen([harness.binary(), "new", "conv-e", "--template", "tool", "--template-dir", SHOP.directory.name],
                            stderr=-1, stdout=-1)
        heard = b""
        while b"hanging" not in heard:
            line = process.stderr.readline()
            self.assertTrue(line, heard)
            heard += line
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1, rest)
        self.assertNotIn("conv-e", [row["name"] for row in LAB.query("/1.0/instances?recursion=1")])


if __name__ == "__main__":
    unittest.main()
