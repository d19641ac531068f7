"""Starting processes that outlive the command that starts them, and short steps inside a namespace, each in a child."""

import os
import select
import socket
import struct

from spaces import LabError, end_process, restore_signals


def in_child(function):
    """Runs function in a child of its own, so that the namespaces it enters stay there; returns what it returns (a str)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            answer = function() or ""
            os.write(writer, b"+" + answer.encode())
            status = 0
        except (LabError, OSError) as problem:
            os.write(writer, b"-" + str(problem).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    if not answer.startswith("+"):
        raise LabError(answer[1:] or "a step ended without a word")
    return answer[1:]


def _start(argv, log, keep, before):
    """The last steps of a process that is to outlive this one: a session of its own, its output in a log, then exec."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    for fd in keep:
        os.set_inheritable(fd, True)
    if before:
        before()
    restore_signals()
    os.chdir("/")
    os.execv(argv[0], argv)


def sender_of(sock):
    """The pid of who sent the next datagram, as the receiver's PID namespace numbers it."""
    control = sock.recvmsg(1, socket.CMSG_SPACE(12))[1]
    return struct.unpack("3i", control[0][2])[0]


def spawn(enter, argv, log, wait_ready=None, before=None, first=False):
    """Starts a process that stays, in the namespaces that enter() goes into; returns its pid as the machine numbers it.

    With wait_ready (seconds) the last argument becomes a descriptor to which it writes one byte when it is ready. It is an
    orphan at once, so that the first process there reaps it; with first=True it is that first process itself.
    """
    reader, writer = os.pipe()

    def work():
        os.close(reader)
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        enter()
        child = os.fork()
        if child == 0:
            try:
                if not first and os.fork():
                    os._exit(0)
                its.send(b"1")
                keep = [writer] if wait_ready else []
                _start(argv + [str(writer)] * bool(wait_ready), log, keep, before)
            finally:
                os._exit(127)
        if not first:
            os.waitpid(child, 0)
        return str(sender_of(ours))

    try:
        pid = int(in_child(work))
        os.close(writer)
        if wait_ready:
            said = select.select([reader], [], [], wait_ready)[0] and os.read(reader, 1)
            if not said:
                end_process(pid)
                raise LabError("%s did not get ready; its own words are in %s" % (" ".join(argv[:4]), log))
    finally:
        os.close(reader)
    return pid
