"""The private incusd of a lab: start, stop, and whether it answers. What it serves is box's business."""

import os
import shutil
import signal
import socket
import subprocess

from spaces import LabError, end_process, enter_host, recall, remember
from start import in_child, spawn

READY_SECONDS = 14


def find_incusd():
    found = shutil.which("incusd", path="/usr/libexec/incus:/usr/lib/incus:/opt/incus/bin:/usr/sbin:/usr/bin")
    if not found:
        raise LabError("no incusd on this machine. Install what the lab needs: scripts/deps")
    return found


def environment():
    """What Incus's own unit gives its daemon; nothing of the caller's."""
    return {"PATH": "/usr/libexec/incus:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}


def answers(lab, seconds=5.0):
    """True when the daemon's socket gives a reply to GET /1.0."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(seconds)
        try:
            # Through a short path: a socket's address holds 107 bytes, and the lab's directory may lie deep.
            fd = os.open(lab.incus, os.O_PATH | os.O_DIRECTORY)
            try:
                sock.connect("/proc/self/fd/%d/unix.socket" % fd)
            finally:
                os.close(fd)
            sock.sendall(b"GET /1.0 HTTP/1.0\r\nHost: incus\r\n\r\n")
            return sock.recv(12).startswith(b"HTTP/1.")
        except OSError:
            return False


def pid(lab):
    return recall(lab.path("incusd.pid"))


def stop(lab, signum=signal.SIGTERM):
    """Ends the daemon; its boxes run on. A daemon that ignores the request for 20 s is killed."""
    running = pid(lab)
    if running is not None and not end_process(running, signum, 20.0):
        end_process(running, signal.SIGKILL)


def ensure(lab):
    """A daemon that answers: the one that runs, or a new one."""
    running = pid(lab)
    if running is not None:
        if answers(lab):
            return
        stop(lab, signal.SIGKILL)
    incusd = find_incusd()
    log = os.path.join(lab.run, "incusd.log")

    def before():
        with open("/run/box-lab/incusd.pid", "w", encoding="ascii") as out:
            out.write("%d\n" % os.getpid())
        os.environ.clear()
        os.environ.update(environment())

    started = spawn(lambda: enter_host(lab), [incusd, "--group", "incus-admin", "--verbose"], log, before=before)
    remember(lab.path("incusd.pid"), started)
    wait_ready(lab, incusd, log)


def wait_ready(lab, incusd, log):
    def work():
        enter_host(lab)
        done = subprocess.run([incusd, "waitready", "--timeout=%d" % READY_SECONDS], env=environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return "" if done.returncode == 0 else "late"

    if in_child(work):
        if pid(lab) is None:
            raise LabError("incusd ended while it started; its last words are in %s" % log)
        raise LabError("incusd was not ready within %d s; its log is %s" % (READY_SECONDS, log))
