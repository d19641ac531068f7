"""A host as the older generation left it: its stack, and boxes on it that are one static busybox.

    older.stack(LAB)                         # network, ACL, profile, tables, unit, script
    boxes = older.Boxes(LAB).prepare()       # an image whose guest has the user claude, and asks for a lease by itself
    boxes.make("a", run=True)                # with the older tag only
    older.remove(LAB)
"""

import tempfile

import tinybox
import tinyimage

SCRIPT = "/root/claudebox-firewall"
UNIT = "/etc/systemd/system/claudebox-firewall.service"
ALIAS = "olderbox"
LIMIT = "96MiB"
FILES = {
    "etc/passwd": tinyimage.PASSWD + "claude:x:1001:1001:claude:/home/claude:/bin/sh\n",
    "etc/group": tinyimage.GROUP + "claude:x:1001:\n",
    "home/claude/.profile": "",
    "etc/inittab": "::sysinit:/bin/ip link set eth0 up\n::respawn:/bin/udhcpc -f -i eth0 -s /etc/lease -t 3 -T 1 -A 1\n",
    "etc/lease": tinybox.LEASE,
    # What a Debian has and busybox lacks, or has otherwise: enough of each for what is asked of a guest. busybox's shell
    # takes its own programs before those on PATH, but functions before either.
    "bin/getent": "#!/bin/busybox ash\n[ $1 = passwd ] && exec grep \"^$2:\" /etc/passwd\nexec nslookup -type=a $2 >/dev/null\n",
    "bin/sh": """#!/bin/busybox ash
[ "$1" = -c ] || exec /bin/busybox ash "$@"
setpriv() { su -s /bin/ash claude -c 'cd && id -un'; }
script=$2
shift 3
eval "$script"
""",
}


def stack(lab):
    lab.must(["incus", "network", "create", "claudenet", "ipv4.address=10.87.0.1/24", "ipv4.nat=true", "ipv6.address=none"])
    lab.must(["incus", "network", "acl", "create", "claude-isolate"])
    lab.must(["incus", "network", "set", "claudenet", "security.acls=claude-isolate"])
    lab.must(["incus", "profile", "create", "claude-dev"])
    lab.must(["incus", "profile", "device", "add", "claude-dev", "eth0", "nic", "network=claudenet"])
    for family in ("inet", "bridge"):
        lab.must(["nft", "-f", "-"], input="table %s claudebox {\n chain forward {\n type filter hook forward priority 0;\n"
                                           "iifname \"claudenet\" drop\n}\n}\n" % family)
    lab.must(["bash", "-c", "mkdir -p /etc/systemd/system/multi-user.target.wants; cat > %s; ln -s %s "
              "/etc/systemd/system/multi-user.target.wants/" % (UNIT, UNIT)],
             input="[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=%s apply\nExecStart=/bin/true\n" % SCRIPT)
    lab.must(["bash", "-c", "cat > %s; chmod 755 %s" % (SCRIPT, SCRIPT)], input="#!/bin/sh\n")


def remove(lab):
    """Whatever is there of it, by the tools of others."""
    lab.run(["bash", "-c", "incus profile delete claude-dev; incus network delete claudenet; incus network acl delete claude-isolate; "
             "nft delete table inet claudebox; nft delete table bridge claudebox; rm -f %s %s "
             "/etc/systemd/system/multi-user.target.wants/claudebox-firewall.service" % (UNIT, SCRIPT)])


class Boxes:
    def __init__(self, lab):
        self.lab = lab

    def prepare(self):
        """The image, and a profile that gives boxes a disk and a limit, as that generation's did."""
        if not any(alias["name"] == ALIAS for alias in self.lab.query("/1.0/images/aliases?recursion=1") or []):
            with tempfile.TemporaryDirectory() as directory:
                metadata, rootfs = tinyimage.build(directory, FILES)
                self.lab.must(["incus", "image", "import", metadata, rootfs, "--alias", ALIAS])
        self.lab.must(["incus", "profile", "device", "add", "claude-dev", "root", "disk", "path=/", "pool=default", "size=64MiB"])
        self.lab.must(["incus", "profile", "set", "claude-dev", "limits.memory=" + LIMIT])
        return self

    def make(self, name, run=False, snapshot=None, network=()):
        self.lab.must(["incus", "init", ALIAS, name, "--profile", "claude-dev", "--config", "user.claudebox=1", *network])
        if snapshot:
            self.lab.must(["incus", "snapshot", "create", name, snapshot])
        if run:
            self.lab.must(["incus", "start", name])
