"""Boxes of one static busybox on boxnet, for tests of the walls: no cloud-init, up in half a second.

    tinybox.Boxes(LAB).prepare()             # imports the image once
    boxes.launch("a"); boxes.dhcp("a")       # the address, or "" where no lease came
    boxes.connect("a", "93.184.215.14")      # "answered", "refused", "silent" or "unreachable"
"""

import tempfile

import tinyimage

ALIAS = "tinybox"
LEASE = """#!/bin/sh
export PATH=/bin
case "$1" in bound|renew)
    ip address flush dev eth0
    ip address add $ip/24 dev eth0
    ip route replace default via $router
    echo "nameserver ${dns%% *}" > /etc/resolv.conf ;;
esac
"""


class Boxes:
    def __init__(self, lab):
        self.lab = lab

    def prepare(self):
        if not any(alias["name"] == ALIAS for alias in self.lab.query("/1.0/images/aliases?recursion=1") or []):
            with tempfile.TemporaryDirectory() as directory:
                metadata, rootfs = tinyimage.build(directory)
                self.lab.must(["incus", "image", "import", metadata, rootfs, "--alias", ALIAS])
        return self

    def launch(self, name):
        self.lab.must(["incus", "launch", ALIAS, name, "--profile", "box-net", "--config", "user.box=1"])
        self.lab.must(["incus", "exec", name, "--", "/bin/sh", "-c",
                       "cat > /etc/lease; chmod 755 /etc/lease; ip link set eth0 up"], input=LEASE)

    def make(self, name, *config):
        """One that is not started: for tests of what is said of it. `config` as "user.box.template=x"."""
        pairs = [word for pair in ("user.box=1", *config) for word in ("--config", pair)]
        self.lab.must(["incus", "init", ALIAS, name, "--profile", "box-net", *pairs])

    def shell(self, name, script, timeout=60):
        return self.lab.run(["incus", "exec", name, "--", "/bin/sh", "-c", "PATH=/bin; " + script], timeout=timeout)

    def dhcp(self, name, tries=3):
        self.shell(name, "udhcpc -i eth0 -s /etc/lease -n -q -t %d -T 1 -A 0" % tries)
        return self.shell(name, "ip -4 -o address show dev eth0 scope global | sed 's/.*inet //; s,/.*,,'").stdout.strip()

    def connect(self, name, address, port=80, seconds=2):
        done = self.shell(name, "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w %d %s %d" % (seconds, address, port))
        if done.returncode == 0 and done.stdout:
            return "answered"
        for word, verdict in (("refused", "refused"), ("timed out", "silent"), ("nreachable", "unreachable")):
            if word in done.stderr:
                return verdict
        return "silent" if done.returncode != 0 else "empty"

    def resolve(self, name, what):
        return self.shell(name, "nslookup -type=a %s | grep -A1 '^Name' | sed -n 's/^Address: *//p'" % what).stdout.split()

    def port(self, name):
        return self.lab.query("/1.0/instances/" + name)["config"]["volatile.eth0.host_name"]

    def remove(self, *names):
        for name in names:
            self.lab.run(["incus", "delete", "--force", name])
