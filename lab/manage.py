"""What changes a lab as a whole: up, down, the daemon's restart; and the status that tells how it stands."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import daemon
import net
import plan
import spaces
import start
import uplink
from spaces import BASE, HERE, SHARED_CACHE, LabError, recall, remember

PYTHON = ["/usr/bin/python3", "-ES"]
NEEDED = {"ip": "iproute2", "losetup": "mount", "nft": "nftables", "mkfs.btrfs": "btrfs-progs", "dnsmasq": "dnsmasq-base"}


def say(text):
    sys.stderr.write("lab: %s\n" % text)


@contextlib.contextmanager
def alone():
    """One lab command at a time: two that start at once would lay the same links."""
    while True:
        os.makedirs(BASE, mode=0o755, exist_ok=True)
        fd = os.open(BASE, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.path.isdir(BASE) and os.stat(BASE).st_ino == os.fstat(fd).st_ino:
            break
        os.close(fd)  # the last lab's down removed the directory while this one waited
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(BASE)  # stays while there is a lab
            os.rmdir(SHARED_CACHE)  # made as a mount point; stays where it holds an image
        os.close(fd)


def check_machine():
    lost = sorted({package for tool, package in NEEDED.items()
                   if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")})
    if lost:
        raise LabError("missing on this machine: %s. Install what the lab needs: scripts/deps" % ", ".join(lost))
    daemon.find_incusd()


# Up ------------------------------------------------------------------------------------------------------------------

def ensure_view(lab):
    """The host's first process, with the namespaces that live and die with it."""
    if spaces.view_pid(lab) is not None:
        return
    stray = recall(lab.path("view.pid"))
    if stray is not None:
        spaces.end_process(stray)
    host = spaces.cgroup_path(lab, "host")
    spaces.cgroup_remove(host)
    detach_loops(lab)
    os.makedirs(host)

    def enter():
        spaces.cgroup_join(host)  # the root of the new cgroup namespace
        fd = os.open(lab.netns("host"), os.O_RDONLY)
        spaces.setns(fd, spaces.NEWNET)
        spaces.unshare(spaces.NEWNS | spaces.NEWUTS | spaces.NEWIPC | spaces.NEWCGROUP | spaces.NEWPID)
        # LXC takes a process in "init.scope" for one that makes cgroups beside it, not below it.
        os.mkdir(os.path.join(host, "init.scope"))
        spaces.cgroup_join(os.path.join(host, "init.scope"))
        spaces.cgroup_hand_down(host)

    started = start.spawn(enter, PYTHON + [os.path.join(HERE, "view.py"), lab.name], os.path.join(lab.run, "view.log"),
                           wait_ready=10.0, first=True)
    remember(lab.path("view.pid"), started)


def world_answers(lab):
    def work():
        spaces.enter_world(lab)
        with socket.create_connection((plan.WEB, plan.SERVICES["http"]), 3.0) as sock:
            sock.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return sock.recv(12).decode("latin-1")

    try:
        return start.in_child(work).startswith("HTTP/1.")
    except LabError:
        return False


def ensure_world(lab, wants_uplink):
    changed = uplink.ensure(lab) if wants_uplink else uplink.remove(lab)
    running = recall(lab.path("world.pid"))
    if running is not None:
        if world_answers(lab) and not changed:
            return
        spaces.end_process(running)
    started = start.spawn(lambda: spaces.enter_world(lab), PYTHON + [os.path.join(HERE, "world.py"), lab.name, lab.run,
                                                                json.dumps(uplink.chosen(lab))],
                           os.path.join(lab.run, "world.log"), wait_ready=10.0)
    remember(lab.path("world.pid"), started)


def up(lab, options):
    begun = time.monotonic()
    check_machine()
    with alone():
        os.makedirs(lab.run, exist_ok=True)
        net.ensure(lab)
        os.makedirs(spaces.cgroup_path(lab, "world"), exist_ok=True)
        spaces.cgroup_hand_down(spaces.cgroup_path(lab))
        ensure_world(lab, options["uplink"])
        ensure_view(lab)
        daemon.ensure(lab)
    say("%s is up after %.1f s. Enter it: lab/lab shell --name %s" % (lab.name, time.monotonic() - begun, lab.name))
    return 0


# Down ----------------------------------------------------------------------------------------------------------------

def loops_of(lab):
    """The loop devices on the lab's files, told by device and inode: paths are those that the daemon saw."""
    disks = os.path.join(lab.incus, "disks")
    files = [entry.stat() for entry in os.scandir(disks)] if os.path.isdir(disks) else []
    ours = {("%d:%d" % (os.major(row.st_dev), os.minor(row.st_dev)), str(row.st_ino)) for row in files}
    listed = subprocess.run(["losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-MAJ:MIN,BACK-INO"],
                            capture_output=True, text=True, check=False).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [row[0] for row in rows if tuple(row[1:]) in ours]


def detach_loops(lab):
    for device in loops_of(lab):
        subprocess.run(["losetup", "--detach", device], check=False)


def down(lab, _options):
    with alone():
        view = recall(lab.path("view.pid"))
        try:
            spaces.cgroup_remove(spaces.cgroup_path(lab))
            if view is not None and not spaces.end_process(view):
                raise LabError("the first process of the host (%d) does not end" % view)
        finally:
            detach_loops(lab)
        net.remove(lab)
        if os.path.isdir(lab.state):
            shutil.rmtree(lab.state)
    say("%s is down" % lab.name)
    return 0


# The daemon ----------------------------------------------------------------------------------------------------------

def kill_daemon(lab, _options):
    if daemon.pid(lab) is None:
        raise LabError("lab %s runs no incusd" % lab.name)
    daemon.stop(lab, signal.SIGKILL)
    return 0


def restart_daemon(lab, _options):
    with alone():
        daemon.stop(lab)
        daemon.ensure(lab)
    return 0


# Status --------------------------------------------------------------------------------------------------------------

def facts(lab):
    return [
        ("host namespace", net.namespace_stands(lab, "host"), lab.host_ns),
        ("world namespace", net.namespace_stands(lab, "world"), lab.world_ns),
        ("host", spaces.view_pid(lab) is not None, lab.run + "/view.log"),
        ("world", recall(lab.path("world.pid")) is not None and world_answers(lab), lab.run + "/world.json"),
        ("uplink", not uplink.chosen(lab) or recall(lab.path("uplink.pid")) is not None,
         "to " + ", ".join(row["name"] for row in uplink.chosen(lab)) if uplink.chosen(lab) else "none, as it should be in a test"),
        ("incusd", daemon.pid(lab) is not None and daemon.answers(lab), lab.run + "/incusd.log"),
    ]


def status(lab, options):
    """Exit status 0 when all of the lab stands, 1 when some of it does not."""
    rows = facts(lab)
    well = all(good for _, good, _ in rows)
    if options["json"]:
        json.dump({"name": lab.name, "up": well, "directory": lab.state,
                   "parts": [{"part": part, "ok": good, "where": where} for part, good, where in rows]}, sys.stdout)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("%-16s %-6s %s\n" % ("PART", "STATE", "WHERE"))
        for part, good, where in rows:
            sys.stdout.write("%-16s %-6s %s\n" % (part, "up" if good else "down", where))
    return 0 if well else 1
