"""Other people's firewalls in a lab: the distribution's own packages, unpacked for that lab alone and never installed, for
on a host with systemd firewalld's package would start it.

    strangers.unpack(LAB)                    # ufw, firewalld, iptables and what they need, over the lab's /usr and /etc
    strangers.firewalld(LAB); strangers.stop_firewalld(LAB)
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

PACKAGES = ("firewalld", "ufw", "iptables", "dbus-daemon")
CACHE = Path("/var/cache/box/strangers")  # a lab sees it as the machine does
IPTABLES = [family + tool for family in ("iptables", "ip6tables") for tool in ("", "-restore", "-save")]
POLKIT = "usr/share/polkit-1/actions/org.fedoraproject.FirewallD1"
# What the packages' own scripts do when they are installed.
LAY = """
mountpoint -q /usr || mount -t overlay overlay -o lowerdir=%(root)s/usr:/usr /usr
cp -an %(root)s/etc/. /etc/
mkdir -p /etc/ufw /run/dbus
cp -n /usr/share/ufw/iptables/*.rules /usr/share/ufw/ufw.conf /etc/ufw/ || true
getent passwd messagebus > /dev/null || useradd -r messagebus
pgrep -x dbus-daemon > /dev/null || dbus-daemon --system --fork
"""


def apt(*words):
    return subprocess.run(["apt-get", "-o", "Dir::Cache::archives=%s" % (CACHE / "archives"), "-o", "Debug::NoLocking=1",
                           *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def fetch():
    """The packages that this machine lacks, into the cache; apt chooses the versions of this distribution."""
    (CACHE / "archives/partial").mkdir(parents=True, exist_ok=True)
    words = ("--download-only", "-y", "--no-install-recommends", "install", *PACKAGES)
    done = apt(*words)
    if done.returncode != 0:
        apt("update")
        done = apt(*words)
    if done.returncode != 0:
        raise RuntimeError("the packages %s cannot be downloaded: %s" % (" ".join(PACKAGES), done.stderr))


def root():
    """A directory with the packages' files as they would lie on a host, made once."""
    whole, half = CACHE / "root", CACHE / ("half-%d" % os.getpid())
    if whole.exists():
        return whole
    fetch()
    for name in ("usr/lib", "usr/sbin", "etc"):
        (half / name).mkdir(parents=True)
    for archive in sorted((CACHE / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", archive, half], check=True)
    for name in ("lib", "sbin", "bin"):  # where a package still says /lib and the host has it in /usr
        if (half / name).is_dir() and not (half / name).is_symlink():
            shutil.copytree(half / name, half / "usr" / name, symlinks=True, dirs_exist_ok=True)
    if (half / "usr/sbin/xtables-nft-multi").exists():
        for name in IPTABLES:
            (half / "usr/sbin" / name).symlink_to("xtables-nft-multi")
    choice = half / (POLKIT + ".server.policy.choice")
    if choice.exists():
        (half / (POLKIT + ".policy")).symlink_to(choice.name)
    try:
        half.rename(whole)
    except OSError:  # another run was first
        shutil.rmtree(half)
    return whole


def unpack(lab):
    lab.must(["bash", "-ec", LAY % {"root": root()}])


def firewalld(lab):
    lab.must(["firewalld"])
    deadline = time.monotonic() + 60
    while lab.run(["firewall-cmd", "--state"]).returncode != 0:
        if time.monotonic() > deadline:
            raise RuntimeError("firewalld does not come up: %s" % lab.run(["tail", "/var/log/firewalld"]).stdout)
        time.sleep(0.1)


def stop_firewalld(lab):
    """Its process by its name in the lab's own list, for it writes its number late; its table goes with it, or is taken."""
    lab.must(["bash", "-c", "for pid in $(pgrep -f '[s]bin/firewalld'); do kill $pid; timeout 60 tail --pid=$pid -f /dev/null; done; "
              "! nft list table inet firewalld > /dev/null 2>&1 || nft delete table inet firewalld"], timeout=120)
