"""Namespaces and cgroups of one lab: where its things live, how a process gets into its host or its world.

Everything here is about the kernel's containers of processes; links are net.py's, mounts are view.py's.
"""

import ctypes
import os
import select
import signal

BASE = os.environ.get("BOX_LAB_DIR", "/var/cache/box-lab")
SHARED_CACHE = "/var/cache/box"  # images, built once for the machine and all its labs
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET = (
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)
NAMESPACES = [("mnt", NEWNS), ("uts", NEWUTS), ("ipc", NEWIPC), ("net", NEWNET), ("cgroup", NEWCGROUP), ("pid", NEWPID)]
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """What a person should read: what happened, why, and what helps."""


def _check(result, doing):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (doing, os.strerror(number)))


def setns(fd, kind):
    _check(_libc.setns(fd, kind), "setns")


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def mount(source, target, fstype=None, flags=0, data=None):
    encode = lambda text: None if text is None else os.fsencode(text)  # noqa: E731
    _check(_libc.mount(encode(source), encode(target), encode(fstype), ctypes.c_ulong(flags), encode(data)),
           "mount %s on %s" % (source, target))


def detach(target):
    """Unmounts lazily: what still uses it keeps it."""
    _check(_libc.umount2(os.fsencode(target), 2), "umount " + target)


def die_with_parent(signum=signal.SIGKILL):
    _libc.prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)


class Lab:
    """The names and paths of one lab; all derive from its own name."""

    def __init__(self, name):
        self.name = name
        self.state = os.path.join(BASE, name)
        self.run = os.path.join(self.state, "run")
        self.incus = os.path.join(self.state, "var-lib-incus")
        self.host_ns = "box-%s-host" % name
        self.world_ns = "box-%s-world" % name
        self.cgroup_name = "box-lab-%s" % name

    def path(self, *parts):
        return os.path.join(self.state, *parts)

    def netns(self, which):
        return "/run/netns/" + (self.host_ns if which == "host" else self.world_ns)


# Processes -----------------------------------------------------------------------------------------------------------

def start_time(pid):
    """The kernel's start tick of a process: with the pid it names one process for ever. None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            fields = stat.read().rsplit(b")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def remember(path, pid):
    with open(path + ".new", "w", encoding="ascii") as out:
        out.write("%d %s\n" % (pid, start_time(pid)))
    os.rename(path + ".new", path)


def recall(path):
    """The pid that remember() stored, while that very process lives; else None."""
    try:
        with open(path, encoding="ascii") as stored:
            pid, started = stored.read().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if start_time(int(pid)) == started else None


def end_process(pid, signum=signal.SIGKILL, seconds=10.0):
    """Sends the signal and waits for the end. False when the process outlived the wait."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        os.kill(pid, signum)
        return bool(select.select([fd], [], [], seconds)[0])
    except ProcessLookupError:
        return True
    finally:
        os.close(fd)


# Cgroups -------------------------------------------------------------------------------------------------------------

def cgroup_root():
    """Where the machine has its cgroup2 hierarchy mounted whole."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2" and fields[3] == "/":
                return fields[4]
    raise LabError("this machine has no cgroup2 hierarchy mounted. Mount one: mount -t cgroup2 none /sys/fs/cgroup/unified")


def cgroup_path(lab, part=""):
    return os.path.join(cgroup_root(), lab.cgroup_name, part)


def cgroup_hand_down(path):
    """Gives a cgroup's children all controllers that it has itself; it must hold no process."""
    with open(os.path.join(path, "cgroup.controllers"), encoding="ascii") as offered:
        controllers = offered.read().split()
    for controller in controllers:
        try:
            with open(os.path.join(path, "cgroup.subtree_control"), "w", encoding="ascii") as control:
                control.write("+" + controller)
        except OSError:
            pass  # a controller that the kernel does not hand down is one that the lab goes without


def cgroup_join(path):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as procs:
        procs.write("0")


def cgroup_remove(path, seconds=10.0):
    """Ends every process in a cgroup and below, and removes it; where there is none, nothing."""
    if not os.path.isdir(path):
        return
    poller = select.poll()
    events = os.open(os.path.join(path, "cgroup.events"), os.O_RDONLY)
    try:
        poller.register(events, select.POLLPRI)
        with open(os.path.join(path, "cgroup.kill"), "w", encoding="ascii") as kill:
            kill.write("1")
        while b"populated 1" in os.pread(events, 256, 0):
            if not poller.poll(seconds * 1000):
                raise LabError("processes of the lab do not end; they are in %s" % os.path.join(path, "cgroup.procs"))
    finally:
        os.close(events)
    for directory, _, _ in os.walk(path, topdown=False):
        os.rmdir(directory)


# Getting in ----------------------------------------------------------------------------------------------------------

def view_pid(lab):
    """The first process of the lab's host, as the machine numbers it; None when there is none."""
    pid = recall(lab.path("view.pid"))
    if pid is None:
        return None
    try:
        same = os.stat("/proc/%d/ns/net" % pid).st_ino == os.stat(lab.netns("host")).st_ino
    except FileNotFoundError:
        return None
    return pid if same else None


def enter_host(lab):
    """Moves this process into the lab's host. Its next child is the first that is there in every respect."""
    pid = view_pid(lab)
    if pid is None:
        raise LabError("lab %s is not up. Bring it up: lab/lab up --name %s" % (lab.name, lab.name))
    cgroup_join(cgroup_path(lab, "host/init.scope"))
    fds = [(os.open("/proc/%d/ns/%s" % (pid, name), os.O_RDONLY), kind) for name, kind in NAMESPACES]
    for fd, kind in fds:
        setns(fd, kind)
        os.close(fd)


def enter_world(lab):
    """Moves this process into the world's network; the machine's files stay in sight."""
    if not os.path.exists(lab.netns("world")):
        raise LabError("lab %s is not up. Bring it up: lab/lab up --name %s" % (lab.name, lab.name))
    cgroup_join(cgroup_path(lab, "world"))
    fd = os.open(lab.netns("world"), os.O_RDONLY)
    setns(fd, NEWNET)
    os.close(fd)


def restore_signals():
    """Python ignores SIGPIPE and SIGXFSZ; a command must not inherit that."""
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
