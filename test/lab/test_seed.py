"""Warm mints: the second box of a template comes from a seed, never a stale one, and the mark `pristine` means one thing. A real
daemon in the lab."""
import json
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import harness

LAB = harness.Lab()
PREFIX = "seed-"
WARM = {"BOX_SEED_MAX_AGE": "7d"}
SEEDED = "creating {} from the seed of {}"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes(PREFIX)
    LAB.box("seeds", "rm")


def tearDownModule():
    LAB.box("seeds", "rm")
    LAB.remove_boxes(PREFIX)


def box(*words, status=0, env=None):
    done = LAB.box(*words, env=env or WARM, timeout=180)
    assert done.returncode == status, (words, done.stderr)
    return done


def seeds():
    return json.loads(box("seeds", "--json").stdout)


def config(name):
    return LAB.query("/1.0/instances/" + name)["config"]


def inside(name, script):
    return LAB.must(["incus", "exec", name, "--", "sh", "-c", script]).stdout


class Seeds(unittest.TestCase):
    def test_from_the_first_box_to_a_changed_template(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            shutil.copytree(harness.ROOT / "templates" / "blank", Path(directory) / "warmer")
            words = ("--template", "warmer", "--template-dir", directory)
            self.cold_then_warm(words)
            self.lists(directory)
            self.is_hidden()
            self.pristine()
            self.stale(words, directory)

    def cold_then_warm(self, words):
        first = box("new", "seed-a", *words)
        self.assertNotIn("from the seed", first.stderr)
        self.assertIn("the next box of warmer comes from a seed", first.stderr)
        LAB.must(["incus", "exec", "seed-a", "--", "touch", "/home/dev/secret"])
        second = box("new", "seed-b", *words, "--memory", "512MiB")
        self.assertIn(SEEDED.format("seed-b", "warmer"), second.stderr)
        self.assertEqual(inside("seed-b", "ls -A /home/dev | grep secret; hostname; id -un dev").split(), ["seed-b", "dev"])
        self.assertEqual(inside("seed-b", "journalctl --list-boots -q | wc -l").strip(), "1")
        self.assertNotEqual(*(inside(name, "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub")
                              for name in ("seed-a", "seed-b")))
        stamp = config("seed-b")
        self.assertEqual((stamp["user.box.origin"], stamp["user.box.template"], stamp["limits.memory"]),
                         ("warm mint", "warmer", "512MiB"))
        self.assertNotIn("user.box.seed", stamp)
        self.assertIn("warm mint", box("info", "seed-b").stdout)

    def lists(self, directory):
        (seed,) = seeds()
        self.assertEqual(set(seed), {"instance", "template", "type", "fingerprint", "version", "created", "state"})
        self.assertEqual((seed["template"], seed["state"]), ("warmer", "good"))
        rows = json.loads(box("templates", "--json", "--template-dir", directory).stdout)
        self.assertEqual({row["name"]: row["warm"] for row in rows if not row["hidden"]}["warmer"], True)
        self.assertRegex(box("templates", "--template-dir", directory).stdout, r"(?m)^warmer .* warm ")
        self.assertRegex(box("seeds").stdout, r"(?m)^warmer .*good")

    def is_hidden(self):
        (seed,) = seeds()
        name = seed["instance"]
        self.assertEqual(config(name)["user.box"], "1")
        self.assertNotIn(name, box("list").stdout)
        self.assertNotIn(name, box("complete", "box").stdout)
        for words in (("info", name), ("start", name), ("rm", "-f", name), ("new", "seed-x", "--from", name)):
            self.assertIn("no such box", box(*words, status=1).stderr)
        self.assertEqual(LAB.query("/1.0/instances/" + name)["status"], "Stopped")

    def pristine(self):
        for name in ("seed-a", "seed-b"):
            told = json.loads(box("info", name, "--json").stdout)
            self.assertEqual([row["label"] for row in told["snapshots"]], ["pristine"])
        box("restore", "seed-a", "pristine", "--force")
        told = json.loads(box("info", "seed-a", "--json").stdout)
        self.assertEqual((told["state"], told["incomplete"]), ("running", None))
        self.assertEqual(inside("seed-a", "ls -A /home/dev | grep -c secret; true").strip(), "0")
        box("new", "seed-c", "--from", "seed-a")
        self.assertIn("no snapshot pristine", box("restore", "seed-c", "pristine", "-f", status=1).stderr)
        LAB.remove_boxes("seed-c")

    def stale(self, words, directory):
        self.assertNotIn("from the seed", box("new", "seed-d", *words, "--cold").stderr)
        LAB.remove_boxes("seed-d")
        (seed,) = seeds()
        LAB.query("/1.0/instances/" + seed["instance"], "PATCH", {"config": {"user.box.created": "2020-01-01T00:00:00Z"}})
        self.assertEqual(seeds()[0]["state"], "too old")
        with (Path(directory) / "warmer" / "user-data.yaml").open("a", encoding="utf-8") as data:
            data.write("# changed\n")
        rows = json.loads(box("templates", "--json", "--template-dir", directory).stdout)
        self.assertEqual({row["name"]: row["warm"] for row in rows if not row["hidden"]}["warmer"], False)
        self.assertNotIn("from the seed", box("new", "seed-d", *words).stderr)
        (fresh,) = seeds()
        self.assertNotEqual(fresh["instance"], seed["instance"])
        box("seeds", "rm", "other")
        self.assertEqual(len(seeds()), 1)
        box("seeds", "rm", "warmer")
        self.assertEqual(seeds(), [])


class Age(unittest.TestCase):
    def test_what_it_may_say(self):
        for value in ("7d", "12h", "30m", "90s", "0", ""):
            self.assertEqual(LAB.box("seeds", env={"BOX_SEED_MAX_AGE": value}).returncode, 0, value)
        for value in ("7", "d", "-1d", "1w", "7 d", "99999999999999d", "0x1d"):
            done = LAB.box("seeds", env={"BOX_SEED_MAX_AGE": value})
            self.assertEqual(done.returncode, 2, value)
            self.assertRegex(done.stderr, re.escape("BOX_SEED_MAX_AGE"))


if __name__ == "__main__":
    unittest.main()
