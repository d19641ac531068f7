"""Installing from the tree: what belongs there is put in place, an older `claudebox` symlink goes, and uninstalling leaves
nothing of it, directories neither. Needs no lab: a build of its own is installed below a directory of the test's.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

PARTS = ("bin/box", "libexec/box/box-probe", "share/box/templates/blank/box.env", "share/man/man1/box.1",
         "share/man/man5/box.env.5", "lib/systemd/system/box-firewall.service", "share/bash-completion/completions/box.bash",
         "share/zsh/site-functions/_box", "share/fish/vendor_completions.d/box.fish")


def tree(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


class Install(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.root = Path(directory.name)
        cls.build, cls.prefix = cls.root / "build", cls.root / "prefix"
        cls.must("meson", "setup", "-Dtests=false", "-Doptimization=0", "--prefix", cls.prefix, cls.build, harness.ROOT)
        cls.must("meson", "compile", "-C", cls.build)

    @classmethod
    def must(cls, *argv, **environment):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=600, env={**os.environ, **environment})
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        return done.stdout

    def install_and_uninstall(self, where, **environment):
        """`where` holds the prefix; what is in it before stays, and nothing else does."""
        programs = where / "bin"
        programs.mkdir(parents=True)
        (programs / "other").write_text("somebody's own")
        before = tree(where)
        (programs / "claudebox").symlink_to("/opt/older/claudebox")
        self.must("meson", "install", "--no-rebuild", "-C", self.build, **environment)
        self.assertFalse((programs / "claudebox").is_symlink(), "the older generation's name")
        installed = tree(where)
        self.assertEqual([part for part in PARTS if part not in installed], [])
        self.must("ninja", "-C", self.build, "uninstall", **environment)
        self.assertEqual(tree(where), before)

    def test_below_a_directory(self):
        destination = self.root / "destination"
        self.install_and_uninstall(destination / self.prefix.relative_to("/"), DESTDIR=str(destination))
        self.assertFalse(self.prefix.exists() and tree(self.prefix), "nothing went where it will be in the end")

    def test_in_its_place_and_again(self):
        self.install_and_uninstall(self.prefix)
        program = self.prefix / "bin" / "claudebox"
        program.write_text("somebody's own, and no symlink")
        self.must("meson", "install", "--no-rebuild", "-C", self.build)
        self.assertIn("box 0", self.must(self.prefix / "bin" / "box", "version"))
        self.assertTrue(program.exists())
        self.must("ninja", "-C", self.build, "uninstall")
        self.assertEqual(tree(self.prefix), ["bin", "bin/claudebox", "bin/other"])


if __name__ == "__main__":
    unittest.main()
