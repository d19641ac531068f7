"""The first process of a lab's host: it makes the host's view of files, then reaps what dies there. It starts nothing.

Usage: view.py NAME READY_FD, inside fresh mount, UTS, IPC, cgroup and PID namespaces and the host's network namespace.
"""

import os
import signal
import socket
import stat
import sys

import plan
from spaces import BASE, SHARED_CACHE, TREE, Lab, detach, mount

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE, MS_MOVE = 2, 4, 8, 0x1000, 0x4000, 1 << 18, 0x2000
LOOPS = 256  # nodes of loop devices: the kernel makes one in the machine's /dev only, when it makes a new device
OVERLAYS = ["/etc", "/root", "/home", "/var/lib", "/var/log"]


def bind(source, target):
    os.makedirs(target, exist_ok=True)
    mount(source, target, None, MS_BIND | MS_REC)


def hold(path):
    """A name for a directory as it is now, whatever is mounted over its path later."""
    os.makedirs(path, exist_ok=True)
    return "/proc/self/fd/%d" % os.open(path, os.O_PATH | os.O_DIRECTORY)


def tmpfs(target, mode):
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=" + mode)


def overlay(lab, path):
    part = path.strip("/").replace("/", "-")
    upper, work = lab.path("upper", part), lab.path("work", part)
    os.makedirs(upper, exist_ok=True)
    os.makedirs(work, exist_ok=True)
    mount("overlay", path, "overlay", 0, "lowerdir=%s,upperdir=%s,workdir=%s" % (path, upper, work))


def replace(path, content):
    """A file of the overlay: removed first, for it may be a link to somewhere that is not ours."""
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)


def identity_map(path):
    """Root's range of subordinate ids, which unprivileged containers need; the ranges of others stay."""
    others = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            others = [line for line in lines if not line.startswith("root:")]
    replace(path, "root:1000000:1000000000\n" + "".join(others))


def let_go(kept):
    """Detaches the copies of the machine's mounts that the view would cover or keep alive: a loop device that somebody
    detaches out there, another lab's namespace. A mount that holds one of the paths kept stays."""
    covered = tuple(path + "/" for path in OVERLAYS + ["/run", "/var/cache", "/sys", "/dev/shm"])
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        rows = [line.split() for line in mounts]
    for row in reversed(rows):
        point, after = row[4], row.index("-")
        ours = (point + "/").startswith(covered) and point not in OVERLAYS
        foreign = row[after + 1] == "nsfs" or row[after + 2].startswith("/dev/loop")
        if (ours or foreign) and point != "/" and not any((path + "/").startswith(point + "/") for path in kept):
            detach(point)


def disk(lab):
    """Makes this a machine of its own: what is written to its files stays in the lab's directory."""
    let_go([TREE, SHARED_CACHE, BASE])
    tree, cache, state = hold(TREE), hold(SHARED_CACHE), hold(BASE)
    run, incus, incus_cache = hold(lab.run), hold(lab.incus), hold(lab.path("var-cache-incus"))
    for path in OVERLAYS:
        if os.path.isdir(path):
            overlay(lab, path)
    # Not on the overlay: a pool's loop file and the daemon's database want a plain file system beneath them.
    bind(incus, "/var/lib/incus")
    tmpfs("/var/cache", "755")
    bind(cache, SHARED_CACHE)
    bind(incus_cache, "/var/cache/incus")
    bind(state, BASE)
    bind(tree, TREE)  # an overlay would show the tree as it was when the lab came up
    tmpfs("/run", "755")
    os.makedirs("/run/lock")
    os.makedirs("/run/tmux", mode=0o700)
    bind(run, "/run/box-lab")
    os.closerange(3, 64)


def copy_nodes(source, target):
    """Directories, links and device nodes; what is mounted below stays out."""
    for entry in os.scandir(source):
        status, path = entry.stat(follow_symlinks=False), os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)
        elif entry.is_dir():
            os.mkdir(path, status.st_mode & 0o7777)
            if not os.path.ismount(entry.path):
                copy_nodes(entry.path, path)
        elif stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            os.mknod(path, status.st_mode, status.st_rdev)
            os.chown(path, status.st_uid, status.st_gid)
            os.chmod(path, status.st_mode & 0o7777)


def devices():
    """Device nodes of the lab's own: who removes or replaces one here leaves the machine's as it is."""
    own = "/run/box-lab-dev"
    os.mkdir(own)
    mount("tmpfs", own, "tmpfs", MS_NOSUID, "mode=755")
    copy_nodes("/dev", own)
    for number in range(LOOPS):
        path = "%s/loop%d" % (own, number)
        if not os.path.exists(path):
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, number))
    bind("/dev/pts", own + "/pts")
    mount(own, "/dev", None, MS_MOVE)
    os.rmdir(own)
    os.makedirs("/dev/shm", exist_ok=True)


def shield(lab):
    """A parameter that belongs to the whole machine, and that setup-host raises on a host: here it is a file. A kernel
    lets a container mount proc only where a proc without such a cover is in sight, hence a second one."""
    bare = "/run/box-lab-proc"
    os.mkdir(bare, 0o700)
    mount("proc", bare, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    real, played = "/proc/sys/fs/inotify/max_user_instances", lab.path("inotify-instances")
    with open(real, encoding="ascii") as live, open(played, "w", encoding="ascii") as out:
        out.write(live.read())
    mount(played, real, None, MS_BIND)


def kernel(lab):
    """The file systems that show the new namespaces instead of the machine's."""
    devices()
    tmpfs("/dev/shm", "1777")
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    shield(lab)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def identity(lab):
    hostname = "%s-host" % lab.name
    socket.sethostname(hostname)
    replace("/etc/hostname", hostname + "\n")
    replace("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n" % hostname
            + "".join("%s %s\n" % pair for pair in plan.PRIVATE_HOSTS))
    replace("/etc/resolv.conf", "nameserver %s\n" % plan.RESOLVER)
    identity_map("/etc/subuid")
    identity_map("/etc/subgid")


def reap():
    """A first process must collect the orphans; it ends when the lab goes down, by SIGKILL."""
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def main(name, ready_fd):
    ready = os.dup2(ready_fd, 200)
    lab = Lab(name)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    disk(lab)
    kernel(lab)
    identity(lab)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    os.write(ready, b"1")
    os.close(ready)
    reap()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
