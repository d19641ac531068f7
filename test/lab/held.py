"""Creates that the daemon is at for as long as a test wants: the unpacking of their image waits.

    with held.Image(LAB) as image:
        image.create("a", "user.box=1")    # asked for by a client that is dead since; "a" is there, and busy
        ...
        image.release()                    # the creates go on, and end
"""

import json
import subprocess
import tempfile
import time

import tinyimage

ALIAS = "held"
PROGRAM = "/usr/bin/unsquashfs"
GATE = "/var/lib/held-gate"
SCRIPT = """#!/bin/sh
while [ -e %s ]; do sleep 0.05; done
exec %s "$@"
"""
COVER = """set -e
mkdir -p /var/lib/held
touch %(gate)s
# Another inode than the program's: a bind mount covers the name alone.
cp %(program)s /var/lib/held/unsquashfs
cat > /var/lib/held/script
chmod 755 /var/lib/held/script
mount --bind /var/lib/held/script %(program)s
"""


class Image:
    def __init__(self, lab):
        self.lab = lab

    def __enter__(self):
        # An image that no box was made from yet: the daemon unpacks it once, and copies that afterwards.
        with tempfile.TemporaryDirectory() as directory:
            metadata, rootfs = tinyimage.build(directory)
            self.lab.must(["incus", "image", "import", metadata, rootfs, "--alias", ALIAS])
        self.lab.must(["sh", "-c", COVER % {"gate": GATE, "program": PROGRAM}],
                      input=SCRIPT % (GATE, "/var/lib/held/unsquashfs"))
        return self

    def __exit__(self, *_):
        self.release()
        self.wait_until_idle()
        self.lab.must(["umount", PROGRAM])
        self.lab.run(["incus", "image", "delete", ALIAS])

    def release(self):
        self.lab.must(["rm", "-f", GATE])

    def operations(self):
        """Of the daemon, that create an instance and have not ended."""
        groups = self.lab.query("/1.0/operations?recursion=1") or {}
        return [row for rows in groups.values() for row in rows if row["description"] == "Creating instance" and row["status_code"] < 200]

    def create(self, name, *config):
        body = {"name": name, "profiles": ["box-net"], "config": dict(pair.split("=", 1) for pair in config),
                "source": {"type": "image", "alias": ALIAS}}
        self.lab.must(["incus", "query", "-X", "POST", "/1.0/instances", "-d", json.dumps(body)])
        self.wait(lambda: any(row["name"] == name for row in self.lab.query("/1.0/instances?recursion=1") or []),
                  "%s is not being created" % name)
        if not self.operations():
            raise AssertionError("the create of %s did not wait" % name)

    def wait_until_idle(self):
        self.wait(lambda: not self.operations(), "a create does not end")

    @staticmethod
    def wait(condition, complaint, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(complaint)
            time.sleep(0.05)


def assert_waits(test, process, seconds=1.0):
    """The process is at it still after a while: what it wants is held."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return
    test.fail("it did not wait: exit status %d" % process.returncode)
