"""What the lab's tests share: a lab, commands in it, a host that is set up, an image that is imported.

    import harness
    LAB = harness.Lab()                    # named by $BOX_LAB, default "test"; all modules share it

    def setUpModule():
        LAB.ready()                        # up, `box setup-host`, the image imported; quick when it is so already

    LAB.box("list", "--json")              # CompletedProcess; stdin is empty unless input= is given
    LAB.run(["incus", "list"])             # any command on the lab's host
    LAB.world()                            # what the world serves: world.json

The lab goes down when the test run ends, unless it stood before or $BOX_LAB_KEEP is set.
"""

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = str(ROOT / "lab" / "lab")
IMAGE = "debian/13"


def binary():
    """The box to test: $BOX_BINARY, else the newest build in the tree."""
    chosen = os.environ.get("BOX_BINARY")
    if chosen:
        return chosen
    built = [path for path in ROOT.glob("build*/src/cli/box") if path.is_file()]
    if not built:
        raise RuntimeError("no box is built. Build it: meson setup build && meson compile -C build")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def decoded(done):
    """The streams as text, byte for byte recoverable: os.fsencode() gives back what came."""
    done.stdout, done.stderr = (os.fsdecode(stream or b"") for stream in (done.stdout, done.stderr))
    return done


class Lab:
    def __init__(self, name=None):
        self.name = name or os.environ.get("BOX_LAB") or "test"
        self.directory = Path(os.environ.get("BOX_LAB_DIR", "/var/cache/box-lab")) / self.name

    # The lab itself

    def command(self, action, *arguments, timeout=60):
        """Runs `lab/lab ACTION`; a failure is an error that carries the lab's own words."""
        done = decoded(subprocess.run([PROGRAM, action, "--name", self.name, *arguments], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=timeout, check=False))
        if done.returncode != 0:
            raise RuntimeError("lab %s: %s%s" % (action, done.stdout, done.stderr))
        return done

    def stands(self):
        return subprocess.run([PROGRAM, "status", "--name", self.name], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False).returncode == 0

    def up(self):
        if not self.directory.exists() and not os.environ.get("BOX_LAB_KEEP"):
            atexit.register(self.down)
        self.command("up")
        return self

    def down(self):
        self.command("down")

    def world(self):
        return json.loads((self.directory / "run" / "world.json").read_text(encoding="utf-8"))

    # Commands on its host

    @staticmethod
    def _environment(extra):
        # Seeds would make the second mint of a module another one than its first; who tests them says so.
        return {"BOX_SEED_MAX_AGE": "0", **os.environ, **{key: str(value) for key, value in (extra or {}).items()}}

    def argv(self, argv, world=False):
        return [PROGRAM, "run", "--name", self.name, *(["--world"] if world else []), "--", *map(str, argv)]

    def popen(self, argv, env=None, world=False, **options):
        """A command that the test talks to while it runs; bytes in and out."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.argv(argv, world), env=self._environment(env), **options)

    def run(self, argv, input=None, timeout=60, env=None, world=False, text=True):
        """Runs argv on the lab's host (world=True: in the world's network); never raises for its exit status."""
        data = os.fsencode(input) if isinstance(input, str) else input
        where = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        done = subprocess.run(self.argv(argv, world), capture_output=True, timeout=timeout, check=False,
                              env=self._environment(env), **where)
        return decoded(done) if text else done

    def must(self, argv, **options):
        """As run(), for a step that a test rests on: a failure is an error with the command's own words."""
        done = self.run(argv, **options)
        if done.returncode != 0:
            raise RuntimeError("%s: exit status %d\n%s%s" % (" ".join(map(str, argv)), done.returncode,
                                                             done.stdout, done.stderr))
        return done

    def box(self, *arguments, **options):
        return self.run([binary(), *arguments], **options)

    def query(self, path, method="GET", data=None):
        """What the daemon's API answers, decoded (an empty list comes as None): the fact beside box's claim."""
        argv = ["incus", "query", "--wait", "-X", method, path]
        if data is not None:
            argv += ["-d", json.dumps(data)]
        out = self.must(argv).stdout
        return json.loads(out) if out.strip() else None

    # A host that is ready for boxes

    def ready(self):
        """The lab up, its host set up by box, the image there. Each step is skipped where it is done already."""
        self.up()
        self.must([binary(), "setup-host"], timeout=120)
        if not any(alias["name"] == IMAGE for alias in self.query("/1.0/images/aliases?recursion=1") or []):
            build_image()
            self.must([binary(), "image", "build", IMAGE], timeout=300)
        return self

    def remove_boxes(self, prefix=""):
        """Removes every instance whose name starts with the prefix; the daemon's own client does it, not box."""
        names = [row["name"] for row in self.query("/1.0/instances?recursion=1") or [] if row["name"].startswith(prefix)]
        for name in names:
            self.run(["incus", "delete", "--force", name])


def build_image():
    """Builds the image into the cache with the machine's own network: a lab has none. Quick when it is there."""
    done = decoded(subprocess.run([binary(), "image", "build", IMAGE, "--no-import"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False))
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise RuntimeError("the image could not be built")
