"""box behind a relay that counts its requests to the daemon, or spoils one of them.

    with relayed.Relay(LAB) as relay:                      # counts
        relay.box("list"); relay.requests()                # ["GET /1.0/instances?...", ...]
    with relayed.Relay(LAB, at=2, action="cut") as relay:  # see relay.py for the actions
        relay.box("rm", "--force", "a")
"""
import os
import tempfile
from pathlib import Path

import harness

DAEMON = "/var/lib/incus/unix.socket"


class Relay:
    def __init__(self, lab, at=0, action="pass"):
        self.lab, self.at, self.action = lab, at, action

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.socket, self.log = (str(Path(self.directory.name) / name) for name in ("socket", "log"))
        relay = str(Path(__file__).with_name("relay.py"))
        self.process = self.lab.popen(["/usr/bin/python3", relay, "--listen", self.socket, "--upstream", DAEMON, "--at",
                                       self.at, "--action", self.action, "--log", self.log], stdout=-1)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the relay does not listen")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=10)
        self.process.stdout.close()
        self.directory.cleanup()

    def box(self, *arguments, env=None, **options):
        return self.lab.box(*arguments, env={"INCUS_SOCKET": self.socket, **(env or {})}, **options)

    def requests(self):
        """Method and path of each request so far."""
        return [line.split(" ", 1)[1] for line in Path(self.log).read_text(encoding="utf-8").splitlines()]


def count(lab, *arguments):
    """How many requests a command makes."""
    with Relay(lab) as relay:
        done = relay.box(*arguments)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return len(relay.requests())


def every():
    """Whether each request is to be spoiled in each way: the longer check asks for that."""
    return bool(os.environ.get("BOX_ALL"))


def rounds(count, *actions):
    """(action, k) for each spoiled run: each request once with the actions in turn; with $BOX_ALL each request with each."""
    if every():
        return [(action, k) for action in actions for k in range(1, count + 1)]
    return [(actions[k % len(actions)], k) for k in range(1, count + 1)]


def set_up(lab):
    """A host that is ready for boxes, without the image of a whole Debian."""
    lab.up()
    lab.must([harness.binary(), "setup-host"], timeout=120)
