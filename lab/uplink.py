"""The optional way out of a lab: to the machine's package registries and to nothing else, for a box that installs packages.

slirp4netns gives the world's namespace a user-mode link; no route leads to it, only world.py's relay binds to it, and that
passes TCP 80 and 443 of the registries' names alone. Which names: those in the machine's apt sources and npm's setting.
"""

import json
import os
import shutil
import socket
import subprocess
import urllib.parse

import net
import plan
from spaces import LabError, cgroup_join, cgroup_path, end_process, recall, remember
from start import spawn

LINK = "tap0"
OWN, GATEWAY = "10.0.2.100/24", "10.0.2.2"  # slirp4netns's own, fixed addresses


def registry_urls():
    """What apt and npm of this machine fetch from."""
    ask = [["apt-get", "indextargets", "--format", "$(SITE)"], ["npm", "config", "get", "registry"]]
    urls = set()
    for argv in ask:
        if shutil.which(argv[0]):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            urls.update(done.stdout.split())
    return urls


def registries():
    """[{name, address, real}]: each registry's name, the world's address for it, and where it really is."""
    names = sorted({parsed.hostname for parsed in map(urllib.parse.urlsplit, registry_urls())
                    if parsed.scheme in ("http", "https") and parsed.hostname})
    found = []
    for name in names[:len(plan.REGISTRIES)]:
        try:
            real = sorted({row[4][0] for row in socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)})
        except OSError:
            continue
        found.append({"name": name, "address": plan.REGISTRIES[len(found)], "real": real})
    if not found:
        raise LabError("this machine resolves no registry of its apt sources or of npm, so there is nothing to be linked to")
    return found


def chosen(lab):
    """What registries() found when the uplink was last asked for; [] without one."""
    try:
        with open(lab.path("uplink.json"), encoding="utf-8") as stored:
            return json.load(stored)
    except FileNotFoundError:
        return []


def ensure(lab):
    """Attaches the world. True when what world.py must know has changed."""
    if not shutil.which("slirp4netns"):
        raise LabError("no slirp4netns on this machine. Install what the lab needs: scripts/deps")
    rows = registries()
    changed = rows != chosen(lab)
    if changed:
        with open(lab.path("uplink.json"), "w", encoding="utf-8") as out:
            json.dump(rows, out)
    if recall(lab.path("uplink.pid")) is None:
        started = spawn(lambda: cgroup_join(cgroup_path(lab, "world")),
                        [shutil.which("slirp4netns"), "--disable-host-loopback", "--netns-type=path", lab.netns("world"), LINK,
                         "--ready-fd"], os.path.join(lab.run, "uplink.log"), wait_ready=10.0)
        remember(lab.path("uplink.pid"), started)
    net.batch(lab.world_ns, ["link set %s up" % LINK, "addr replace %s dev %s" % (OWN, LINK),
                             "route replace default via %s dev %s metric 4000" % (GATEWAY, LINK)]
              + ["addr replace %s/32 dev lo" % row["address"] for row in rows])
    return changed


def remove(lab):
    """Detaches the world. True when what world.py must know has changed."""
    running, rows = recall(lab.path("uplink.pid")), chosen(lab)
    if running is not None:
        end_process(running)
    if not rows:
        return False
    net.batch(lab.world_ns, ["addr del %s/32 dev lo" % row["address"] for row in rows])
    os.unlink(lab.path("uplink.json"))
    return True
