"""One running machine: its directory, its QEMU, the way in by ssh, and its end.

The machine reaches nothing: its only link to the outside is QEMU's user network with every way out closed, and one port of the
loopback that leads to its sshd. It builds no image: machine_image.py does.
"""

import base64
import contextlib
import fcntl
import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time

import machine_image
import machine_virt
import spaces
from machine_image import CONTROL_MAC, HERE, MachineError, say

BASE = os.environ.get("BOX_MACHINE_DIR", "/var/cache/box-machine")
BOOT_BUDGET = 900  # seconds to multi-user: 25 of them on two idle cores without KVM, far more on busy ones
MEMORY = os.environ.get("BOX_MACHINE_MEMORY", "8G")
IN_MACHINE = "/usr/local/lib/machine"


class Machine:
    """The names and paths of one machine; all derive from its own name."""

    def __init__(self, name):
        self.name = name
        self.state = os.path.join(BASE, name)

    def path(self, *parts):
        return os.path.join(self.state, *parts)

    def pid(self):
        return spaces.recall(self.path("qemu.pid"))

    def port(self):
        with open(self.path("port"), encoding="ascii") as stored:
            return int(stored.read())


@contextlib.contextmanager
def alone():
    """One command at a time that starts or ends a machine."""
    os.makedirs(BASE, mode=0o700, exist_ok=True)
    fd = os.open(BASE, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(BASE)
        os.close(fd)


def call(argv, doing, **more):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise MachineError("%s: %s" % (doing, (done.stderr or done.stdout).strip()))
    return done.stdout


# The processor -------------------------------------------------------------------------------------------------------

def acceleration():
    """(QEMU's flags, what to tell). KVM needs more than its device: a processor that runs an unchanged kernel in a guest."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpu:
        flags = set(re.search(r"^flags\s*:(.*)$", cpu.read(), re.M).group(1).split())
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and flags & {"vmx", "svm"}:
        return ["-accel", "kvm", "-cpu", "host"], "KVM"
    why = "no /dev/kvm"
    if os.path.exists("/dev/kvm"):
        why = "/dev/kvm is there, but the processor offers neither vmx nor svm: it runs no unchanged kernel"
    return ["-accel", "tcg,thread=multi", "-cpu", "max"], "emulation (TCG; %s)" % why


# Starting ------------------------------------------------------------------------------------------------------------

def make_keys(machine):
    for name in ("key", "hostkey"):
        if not os.path.exists(machine.path(name)):
            call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "machine " + machine.name, "-f", machine.path(name)],
                 "ssh-keygen")
    with open(machine.path("hostkey.pub"), encoding="ascii") as public:
        kind, value = public.read().split()[:2]
    with open(machine.path("known_hosts"), "w", encoding="ascii") as out:
        out.write("machine %s %s\n" % (kind, value))


def credential(machine):
    """What the guest's systemd lays at each boot: our public key, and the host key that we know it by."""
    def coded(name):
        with open(machine.path(name), "rb") as source:
            return base64.b64encode(source.read()).decode()

    lines = ["d /root/.ssh 0700 root root -",
             "f~ /root/.ssh/authorized_keys 0600 root root - " + coded("key.pub"),
             "f~ /etc/ssh/ssh_host_ed25519_key 0600 root root - " + coded("hostkey"),
             "f~ /etc/ssh/ssh_host_ed25519_key.pub 0644 root root - " + coded("hostkey.pub")]
    return base64.b64encode(("\n".join(lines) + "\n").encode()).decode()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def qemu_arguments(machine, image, port):
    flags, _ = acceleration()
    with open(machine.path("smbios"), "w", encoding="ascii") as out:
        os.fchmod(out.fileno(), 0o600)
        out.write("io.systemd.credential.binary:tmpfiles.extra=" + credential(machine))
    given = []
    if os.path.exists(machine.path("given.squashfs")):
        given = ["-drive", "if=none,id=given,format=raw,readonly=on,file=" + machine.path("given.squashfs"),
                 "-device", "virtio-blk-pci,drive=given,serial=given"]
    return ["nice", "-n", "19", "ionice", "-c", "3", "qemu-system-x86_64", "-name", "box-machine-" + machine.name,
            "-nodefaults", "-no-user-config", "-display", "none", "-M", "q35", *flags, "-smp", "2", "-m", MEMORY,
            "-kernel", os.path.join(image, "vmlinuz"), "-initrd", os.path.join(image, "initrd.img"),
            "-append", "console=ttyS0 root=LABEL=machine rw panic=10 systemd.show_status=true",
            "-smbios", "type=11,path=" + machine.path("smbios"),
            "-drive", "if=none,id=root,format=qcow2,cache=unsafe,discard=unmap,file=" + machine.path("disk.qcow2"),
            "-device", "virtio-blk-pci,drive=root",
            "-netdev", "user,id=control,restrict=on,ipv6=off,net=10.0.2.0/24,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:22" % port,
            "-device", "virtio-net-pci,netdev=control,romfile=,mac=" + CONTROL_MAC,
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
            "-chardev", "socket,id=ready,path=%s,server=on,wait=off" % machine.path("ready.sock"),
            "-device", "virtserialport,chardev=ready,name=box.ready",
            "-qmp", "unix:%s,server=on,wait=off" % machine.path("qmp.sock"),
            "-serial", "file:" + machine.path("console.log"), "-pidfile", machine.path("qemu.number"), *given]


def pack_given(machine, directory):
    """A directory as a disk of its own, read-only at /media/given: ssh under emulation carries 2 MB a second."""
    machine_image.quiet_run(["mksquashfs", directory, machine.path("given.squashfs"), "-noappend", "-no-progress", "-quiet", "-noI",
                             "-noD", "-noF", "-noX"], machine.path("given.log"), 300, "packing %s" % directory)


def start(machine, image):
    overlay = machine.path("disk.qcow2")
    if not os.path.exists(overlay):
        call(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", os.path.join(image, "root.raw"), overlay],
             "qemu-img")
    make_keys(machine)
    port = free_port()
    with open(machine.path("port"), "w", encoding="ascii") as out:
        out.write(str(port))
    for left in ("qemu.number", "ready.sock", "qmp.sock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(machine.path(left))
    open(machine.path("console.log"), "w", encoding="utf-8").close()
    environment = dict(os.environ)
    if "tcg,thread=multi" in acceleration()[0]:
        if machine_virt.lay_module(machine.path("modules")):
            environment["QEMU_MODULE_DIR"] = machine.path("modules")
        else:
            say("this QEMU's TCG module is not as expected: a VM inside %s will end it with QEMU's own assertion" % machine.name)
    call(qemu_arguments(machine, image, port) + ["-daemonize"], "QEMU did not start", env=environment)
    with open(machine.path("qemu.number"), encoding="ascii") as stored:
        spaces.remember(machine.path("qemu.pid"), int(stored.read()))


# Waiting -------------------------------------------------------------------------------------------------------------

def last_line(machine):
    """The console's last line with anything in it, cleaned of what a guest may have put there to fool a terminal."""
    with open(machine.path("console.log"), "rb") as log:
        log.seek(max(0, os.path.getsize(machine.path("console.log")) - 4096))
        text = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()].|\].*?\x07|.)", b"", log.read())
    lines = [re.sub(rb"[^\x20-\x7e]", b"", line).strip() for line in re.split(rb"[\r\n]+", text)]
    return next((line.decode()[:110] for line in reversed(lines) if line), "nothing yet")


def ready_channel(machine):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(machine.path("ready.sock"))
    return sock


def wait_ready(machine, channel, budget=BOOT_BUDGET):
    """Until the guest says that multi-user is reached; returns the boot id it names. Events: its word, and QEMU's end."""
    begun, heard = time.monotonic(), b""
    ended = os.pidfd_open(machine.pid()) if machine.pid() else None
    try:
        while True:
            spent = time.monotonic() - begun
            if ended is None or spent > budget:
                what = "QEMU ended" if ended is None else "it was not up after %d s" % spent
                raise MachineError("machine %s: %s. Last on its console: \"%s\". All of it: %s"
                                   % (machine.name, what, last_line(machine), machine.path("console.log")))
            ready = select.select([channel, ended], [], [], 10.0)[0]
            if ended in ready:
                os.close(ended)
                ended = None
            if channel in ready:
                heard += channel.recv(4096)
                found = re.search(rb"ready ([0-9a-f-]{36})", heard)
                if found:
                    return found.group(1).decode()
            if not ready:
                say("%s boots: %d s so far of at most %d (console: %s)"
                    % (machine.name, time.monotonic() - begun, budget, last_line(machine)))
    finally:
        if ended is not None:
            os.close(ended)


# The way in ----------------------------------------------------------------------------------------------------------

def ssh_options(machine):
    return ["-F", "none", "-i", machine.path("key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
            "-o", "UserKnownHostsFile=" + machine.path("known_hosts"), "-o", "GlobalKnownHostsFile=none",
            "-o", "HostKeyAlias=machine", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=60",
            "-o", "ControlMaster=auto", "-o", "ControlPersist=yes", "-o", "ControlPath=" + machine.path("ssh.sock"),
            "-o", "ServerAliveInterval=30", "-o", "ServerAliveCountMax=10", "-o", "LogLevel=ERROR"]


def need(machine):
    if machine.pid() is None:
        raise MachineError("machine %s is not up. Bring it up: lab/machine up --name %s" % (machine.name, machine.name))


def run(machine, argv):
    """Becomes the ssh that runs the command there, as root; its exit status is the command's, 255 when the way in broke."""
    need(machine)
    terminal = ["-t"] if os.isatty(0) and os.isatty(1) else []
    command = shlex.join(argv) if argv else ""
    os.execvp("ssh", ["ssh", *ssh_options(machine), "-p", str(machine.port()), *terminal, "root@127.0.0.1", *([command] if command else [])])


def inside(machine, command, budget=120, given=None):
    """Runs a shell line there and returns its output."""
    done = subprocess.run(["ssh", *ssh_options(machine), "-p", str(machine.port()), "root@127.0.0.1", command], timeout=budget,
                          input=given, stdin=None if given else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise MachineError("in machine %s, %s: status %d, %s"
                           % (machine.name, command, done.returncode, done.stderr.decode(errors="replace").strip()))
    return done.stdout.decode(errors="replace")


def copy(machine, words):
    """scp with the machine's side written as machine:PATH."""
    need(machine)
    if len(words) < 2 or not any(word.startswith("machine:") for word in words):
        raise MachineError("copy what where? lab/machine copy FILE... machine:DIRECTORY, or lab/machine copy machine:FILE DIRECTORY")
    named = ["root@127.0.0.1:" + word[8:] if word.startswith("machine:") else word for word in words]
    return subprocess.run(["scp", "-q", "-r", "-p", *ssh_options(machine), "-P", str(machine.port()), "--", *named],
                          check=False).returncode


# Whole machine -------------------------------------------------------------------------------------------------------

def give_world(machine):
    """The lab's world moves in beside the machine: at each later boot it is there before the network."""
    modules = sorted(name for name in os.listdir(HERE) if name.endswith(".py"))
    packed = subprocess.run(["tar", "-C", HERE, "-c", *modules], stdout=subprocess.PIPE, check=True).stdout
    inside(machine, "mkdir -p {0} && tar -C {0} -x && systemctl restart machine-world.service".format(IN_MACHINE), 400, packed)


def up(machine, given=None):
    begun = time.monotonic()
    with alone():
        if machine.pid() is not None:
            say("%s is up already" % machine.name)
            return 0
        image = machine_image.ensure()
        os.makedirs(machine.state, mode=0o700, exist_ok=True)
        if given is not None:
            pack_given(machine, given)
        say("%s starts under %s; its console: %s" % (machine.name, acceleration()[1], machine.path("console.log")))
        start(machine, image)
    with contextlib.closing(ready_channel(machine)) as channel:
        wait_ready(machine, channel)
    say("%s reached multi-user %.0f s after the command; laying the world beside it" % (machine.name, time.monotonic() - begun))
    give_world(machine)
    say("%s is up after %.0f s. Enter it: lab/machine run --name %s" % (machine.name, time.monotonic() - begun, machine.name))
    return 0


def leave(machine):
    """Ends the shared ssh connection: what it leads to is about to go."""
    if os.path.exists(machine.path("ssh.sock")):
        subprocess.run(["ssh", *ssh_options(machine), "-p", str(machine.port()), "-O", "exit", "root@127.0.0.1"],
                       stdin=subprocess.DEVNULL, capture_output=True, check=False)


def reboot(machine):
    need(machine)
    begun, old = time.monotonic(), inside(machine, "cat /proc/sys/kernel/random/boot_id").strip()
    with contextlib.closing(ready_channel(machine)) as channel:
        inside(machine, "systemctl reboot --no-block")
        leave(machine)
        while True:
            fresh = wait_ready(machine, channel)
            if fresh != old:
                break
    say("%s is up again after %.0f s, boot %s" % (machine.name, time.monotonic() - begun, fresh))
    return 0


def down(machine):
    """Ends QEMU and removes all that the machine had; the image stays in the cache. What it was asked to keep is on the caller."""
    with alone():
        pid = machine.pid()
        if pid is not None:
            leave(machine)
            if not spaces.end_process(pid):
                raise MachineError("QEMU (process %d) does not end" % pid)
        if os.path.isdir(machine.state):
            shutil.rmtree(machine.state)
    say("%s is down" % machine.name)
    return 0


def status(machine, as_json):
    pid = machine.pid()
    row = {"name": machine.name, "up": pid is not None, "pid": pid, "directory": machine.state,
           "console": machine.path("console.log"), "acceleration": acceleration()[1]}
    if as_json:
        json.dump(row, sys.stdout)
        sys.stdout.write("\n")
    else:
        for key, value in row.items():
            sys.stdout.write("%-14s %s\n" % (key, value))
    return 0 if pid is not None else 1
