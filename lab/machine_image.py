"""Builds the disk of the whole machine: Debian 13 with systemd, Debian's cloud kernel and the distribution's own Incus.

From the machine's own apt mirror by mmdebstrap and mke2fs -d, without a mount. It starts no guest: machine_guest.py does.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time

CACHE = "/var/cache/box/machine"
SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
BUDGET = 1800  # seconds for one build
DISK = "24G"   # sparse: it costs what is in it
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)

PACKAGES = {
    "the system": "systemd-sysv systemd-resolved udev dbus libpam-systemd sudo procps kmod less ca-certificates login passwd",
    "the kernel": "linux-image-cloud-amd64 initramfs-tools zstd apparmor",
    "the way in": "openssh-server",
    "Incus and what its drivers need": "incus incus-client btrfs-progs dnsmasq-base nftables e2fsprogs gdisk genisoimage uidmap xz-utils",
    "virtual machines": "qemu-system-x86 qemu-system-modules-spice qemu-utils ovmf virtiofsd",
    "what box speaks through": "libjansson4 libwslay1 libnftables1 libmnl0 libarchive13t64",
    "the test's own hands": "python3 iproute2 iputils-ping tcpdump tmux rsync",
}

MODULES = ["virtio_pci", "virtio_blk", "ext4"]

# What a machine that lives for an hour, without a network, does not need to do.
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer", "man-db.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
          "fstrim.timer", "e2scrub_reap.service", "systemd-networkd-wait-online.service", "systemd-timesyncd.service"]

CONTROL_MAC = "52:54:00:b0:c5:01"

# Every file that is laid over the packages: path, mode, content.
FILES = {
    "etc/hostname": (0o644, "machine\n"),
    "etc/hosts": (0o644, "127.0.0.1 localhost\n127.0.1.1 machine\n::1 localhost\n"),
    "etc/fstab": (0o644, "LABEL=machine / ext4 defaults,noatime 0 1\n"),
    "etc/modules-load.d/machine.conf": (0o644, "vhost_vsock\nkvm_amd\nqemu_fw_cfg\n"),
    "etc/ssh/sshd_config.d/machine.conf": (0o644, "PasswordAuthentication no\nUseDNS no\nMaxSessions 100\nMaxStartups 100\nHostKey /etc/ssh/ssh_host_ed25519_key\n"),
    # The link to whoever steers the machine: no gateway, so that nothing of it is an uplink.
    "etc/systemd/network/10-control.link": (0o644, "[Match]\nMACAddress=%s\n\n[Link]\nName=control\n" % CONTROL_MAC),
    "etc/systemd/network/10-control.network": (0o644, "[Match]\nName=control\n\n[Network]\nAddress=10.0.2.15/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"),
    "etc/systemd/system/machine-ready.service": (0o644, """\
[Unit]
Description=Tell whoever started this machine that it is up
After=multi-user.target ssh.service

[Service]
Type=oneshot
# By hand, not by fstab: whether there is such a disk is known only now.
ExecStart=/bin/sh -c 'disk=/dev/disk/by-id/virtio-given; [ ! -e $disk ] || { mkdir -p /media/given && mount -o ro $disk /media/given; }'
ExecStart=/bin/sh -c 'echo "ready $(cat /proc/sys/kernel/random/boot_id)" >/dev/virtio-ports/box.ready'

[Install]
WantedBy=multi-user.target
"""),
    "etc/systemd/system/machine-world.service": (0o644, """\
[Unit]
Description=The world around this machine, in a network namespace
ConditionPathExists=/usr/local/lib/machine/machine_world.py
Wants=network-pre.target
After=systemd-sysctl.service
Before=network-pre.target

[Service]
Type=notify
ExecStart=/usr/bin/python3 -ES /usr/local/lib/machine/machine_world.py
TimeoutStartSec=300

[Install]
WantedBy=multi-user.target
"""),
    "etc/systemd/resolved.conf.d/machine.conf": (0o644, "[Resolve]\nDNS=1.1.1.1\nFallbackDNS=\nLLMNR=no\n"),
    "etc/systemd/journald.conf.d/machine.conf": (0o644, "[Journal]\nStorage=persistent\n"),
    # Emulated, everything takes longer than the defaults allow.
    "etc/systemd/system.conf.d/machine.conf": (0o644, "[Manager]\nDefaultTimeoutStartSec=600s\nDefaultTimeoutStopSec=120s\nDefaultDeviceTimeoutSec=600s\n"),
}
ENABLED = ["ssh.service", "systemd-networkd.service", "machine-ready.service", "machine-world.service"]


class MachineError(Exception):
    """What a person should read: what happened, why, and what helps."""


def say(text):
    sys.stderr.write("machine: %s\n" % text)
    sys.stderr.flush()


def packages():
    return sorted(set(" ".join(PACKAGES.values()).split()))


def key():
    """What the image is made of: all that this file says."""
    with open(os.path.abspath(__file__), "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:16]


def stanzas():
    """The binary sources of this machine: (URI, suites, components)."""
    found = []
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        with open(path, encoding="utf-8") as text:
            for block in text.read().split("\n\n"):
                fields = {}
                for line in block.splitlines():
                    if ":" in line and not line.startswith(("#", " ")):
                        name, value = line.split(":", 1)
                        fields[name.strip().lower()] = value.split()
                if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"])[0] not in ("no", "false"):
                    found += [(uri, fields.get("suites", []), fields.get("components", [])) for uri in fields.get("uris", [])]
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*.list")):
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as text:
            for line in text:
                words = [word for word in line.split("#")[0].split() if not word.startswith("[") and not word.endswith("]")]
                if words[:1] == ["deb"] and len(words) > 3:
                    found.append((words[1], [words[2]], words[3:]))
    return found


def mirror():
    """The Debian mirror that this machine itself installs from; BOX_MIRROR names another."""
    if os.environ.get("BOX_MIRROR"):
        return os.environ["BOX_MIRROR"]
    for uri, suites, components in stanzas():
        if "main" in components and any(s in ("bookworm", "trixie", "stable", "testing") for s in suites):
            return uri
    raise MachineError("no apt source of this machine is a Debian mirror. Name one: BOX_MIRROR=http://... lab/machine up")


def sources():
    """The apt sources of the machine: the mirrors of the one that it runs on, for its own suite."""
    rows = ["deb %s %s main" % (mirror(), SUITE)]
    security = [uri for uri, suites, _ in stanzas() if any(suite.endswith("-security") for suite in suites)]
    if security and not os.environ.get("BOX_MIRROR"):
        rows.append("deb %s %s-security main" % (security[0], SUITE))
    return "".join(row + "\n" for row in rows)


def quiet_run(argv, log, budget, doing):
    """Runs one step of the build at the lowest priority, its words in the log, a sign of life every 10 s."""
    begun = time.monotonic()
    argv = ["nice", "-n", "19", "ionice", "-c", "3"] + argv
    with open(log, "ab") as out:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            while True:
                try:
                    status = child.wait(10)
                    break
                except subprocess.TimeoutExpired:
                    spent = time.monotonic() - begun
                    if spent > budget:
                        raise MachineError("%s was not done after %d s; its words are in %s" % (doing, spent, log)) from None
                    say("%s: %d s so far of at most %d (words in %s)" % (doing, spent, budget, log))
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
    if status != 0:
        raise MachineError("%s failed with status %d; its words are in %s" % (doing, status, log))
    say("%s: done after %.0f s" % (doing, time.monotonic() - begun))


def lay(root):
    """The files over the packages. Called by mmdebstrap's customize hook, with the new system's root."""
    for path, (mode, content) in dict(FILES, **{"etc/apt/sources.list": (0o644, sources())}).items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as out:
            out.write(content)
        os.chmod(target, mode)
    for unit in MASKED:
        link = os.path.join(root, "etc/systemd/system", unit)
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink("/dev/null", link)
    subprocess.run(["chroot", root, "systemctl", "enable", "--quiet", *ENABLED], check=True)
    for path in glob.glob(os.path.join(root, "etc/ssh/ssh_host_*")) + glob.glob(os.path.join(root, "etc/dpkg/dpkg.cfg.d/99mmdebstrap")):
        os.unlink(path)
    # Some ninety profiles of programs that are not here take a minute to compile under emulation, at every first boot.
    for entry in list(os.scandir(os.path.join(root, "etc/apparmor.d"))):
        if entry.is_file() and "lxc" not in entry.name and "incus" not in entry.name:
            os.unlink(entry.path)
    # Empty, not absent: a fresh identity at the first boot, without the work that a first boot of an unknown system does.
    for path in ("etc/machine-id", "etc/.updated", "var/.updated"):
        with open(os.path.join(root, path), "w", encoding="ascii"):
            pass


def recipe(root, url):
    """The mmdebstrap call that makes the system in the directory root."""
    initrd = ("mkdir -p \"$1/etc/initramfs-tools/conf.d\" && printf 'MODULES=list\\nCOMPRESS=zstd\\nCOMPRESSLEVEL=1\\n' "
              ">\"$1/etc/initramfs-tools/conf.d/machine\" && printf '%s\\n' >\"$1/etc/initramfs-tools/modules\""
              % "\\n".join(MODULES))
    return ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", "--keyring=" + KEYRING,
            "--components=main", "--include=" + ",".join(packages()), "--aptopt=Acquire::Retries 3",
            "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=force-unsafe-io",
            "--essential-hook=" + initrd,
            "--customize-hook=/usr/bin/python3 -ES %s --lay \"$1\"" % os.path.join(HERE, "machine_image.py"),
            SUITE, root, url]


def check_tools():
    needed = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "mksquashfs": "squashfs-tools", "qemu-system-x86_64": "qemu-system-x86",
              "qemu-img": "qemu-utils", "ssh": "openssh-client", "scp": "openssh-client", "ssh-keygen": "openssh-client"}
    lost = sorted({package for tool, package in needed.items() if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")})
    if lost:
        raise MachineError("missing on this machine: %s. Install: apt-get install --no-install-recommends %s"
                           % (", ".join(lost), " ".join(lost)))


def drop_older(keep):
    """Images of older recipes, unless a running machine writes over one: 700 MB each."""
    used = set()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as words:
                used.update(word.decode(errors="replace") for word in words.read().split(b"\0") if word.startswith(CACHE.encode()))
        except OSError:
            continue
    for entry in glob.glob(os.path.join(CACHE, "*/")):
        if os.path.basename(entry.rstrip("/")) != keep and not any(word.startswith(entry) for word in used):
            shutil.rmtree(entry)


def ensure():
    """The directory of the image (root.raw, vmlinuz, initrd.img), built if the cache has none of this content."""
    check_tools()
    where = os.path.join(CACHE, key())
    if os.path.exists(os.path.join(where, "root.raw")):
        return where
    os.makedirs(CACHE, mode=0o755, exist_ok=True)
    building = where + ".new"
    shutil.rmtree(building, ignore_errors=True)
    os.makedirs(building)
    root, log, url = os.path.join(building, "root"), os.path.join(CACHE, "build.log"), mirror()
    say("building a Debian 13 with Incus, QEMU and the cloud kernel into %s (%d packages named; log: %s)"
        % (where, len(packages()), log))
    with open(log, "w", encoding="utf-8"):
        pass
    try:
        quiet_run(recipe(root, url), log, BUDGET, "mmdebstrap")
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(os.path.realpath(os.path.join(root, name)) if not os.path.islink(os.path.join(root, name))
                        else os.path.join(root, os.readlink(os.path.join(root, name)).lstrip("/")), os.path.join(building, name))
        quiet_run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", "machine", "-m", "0", "-O", "^metadata_csum_seed,^orphan_file",
                   "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, os.path.join(building, "root.raw"), DISK],
                  log, BUDGET, "the file system")
        shutil.rmtree(root)
        os.rename(building, where)
        drop_older(os.path.basename(where))
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return where


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lay"] and len(sys.argv) == 3:
        lay(sys.argv[2])
    else:
        sys.exit("usage: machine_image.py --lay ROOT (called by the build itself; the machine is lab/machine's)")
