#!/usr/bin/python3
"""A relay between a client and the Incus daemon that spoils the k-th request.

    relay.py --listen SOCKET --upstream SOCKET --at K --action ACTION [--log FILE]

Requests are counted over all connections, from 1. At request K (and only there) the ACTION happens:

    pass      nothing: a run to count the requests of a command
    cut       the connection is closed before the daemon sees the request
    lose      the daemon gets the request, its answer is lost and the connection closed
    error     the daemon does not see it; the client gets a 500 in the daemon's own shape
    delay     the daemon gets it after a second
    signal    the client gets a SIGINT, the daemon the request half a second later
    stop      as lose, and every later connection is refused: the daemon is gone for good
    kill      the client (the process at the other end of the socket) is killed before the daemon sees the request
    killed    the daemon gets the request, then the client is killed

It says 'ready' on stdout once it listens, and writes one line a request into FILE: number, method, path.
"""
import argparse
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

ANSWER = json.dumps({"type": "error", "error": "spoiled by the relay", "error_code": 500, "metadata": None}).encode()
ERROR = (b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
         % len(ANSWER)) + ANSWER
ACTIONS = ("pass", "cut", "lose", "error", "delay", "signal", "stop", "kill", "killed")


class Reader:
    """Reads heads and bodies off a socket."""

    def __init__(self, connection):
        self.connection = connection
        self.data = b""

    def more(self):
        chunk = self.connection.recv(65536)
        self.data += chunk
        return bool(chunk)

    def head(self):
        while b"\r\n\r\n" not in self.data:
            if not self.more():
                return None
        end = self.data.index(b"\r\n\r\n") + 4
        head, self.data = self.data[:end], self.data[end:]
        return head

    def exactly(self, count):
        """Yields `count` bytes in pieces, or less where the peer went away."""
        while count:
            if not self.data and not self.more():
                return
            piece, self.data = self.data[:count], self.data[count:]
            count -= len(piece)
            yield piece

    def body(self, head):
        """Yields the body of the request in pieces, framing included."""
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        if length:
            yield from self.exactly(int(length.group(1)))
        elif re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
            while True:
                while b"\r\n" not in self.data:
                    if not self.more():
                        return
                line, self.data = self.data.split(b"\r\n", 1)
                yield line + b"\r\n"
                size = int(line.split(b";")[0], 16)
                yield from self.exactly(size + 2)
                if size == 0:
                    return


class Relay:
    def __init__(self, upstream, at, action, log):
        self.upstream, self.at, self.action, self.log = upstream, at, action, log
        self.count = 0
        self.stopped = False
        self.lock = threading.Lock()

    def number(self, head):
        """Counts a request and tells what shall happen to it."""
        method, path = head.split(b" ", 2)[:2]
        with self.lock:
            self.count += 1
            if self.log:
                self.log.write(f"{self.count} {method.decode()} {path.decode()}\n")
                self.log.flush()
            return self.action if self.count == self.at else "pass"

    def serve(self, client):
        daemon = socket.socket(socket.AF_UNIX)
        try:
            if self.stopped:
                return
            daemon.connect(self.upstream)
            muted = threading.Event()
            answers = threading.Thread(target=pump, args=(daemon, client, muted), daemon=True)
            answers.start()
            self.requests(client, daemon, muted)
        except OSError:
            pass
        finally:
            for end in (client, daemon):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def requests(self, client, daemon, muted):
        reader = Reader(client)
        while True:
            head = reader.head()
            if head is None:
                return
            action = self.number(head)
            if action == "cut":
                return
            if action == "kill":
                signal_peer(client, signal.SIGKILL)
                return
            if action == "error":
                for _ in reader.body(head):
                    pass
                client.sendall(ERROR)
                continue
            if action == "delay":
                time.sleep(1)
            if action == "signal":
                signal_peer(client, signal.SIGINT)
                time.sleep(0.5)
            if action in ("lose", "stop", "killed"):
                muted.set()
            daemon.sendall(head)
            for piece in reader.body(head):
                daemon.sendall(piece)
            if action in ("lose", "stop", "killed"):
                # The daemon closes nothing by itself; give it the time to act on what it got.
                time.sleep(0.3)
                self.stopped = action == "stop"
                if action == "killed":
                    signal_peer(client, signal.SIGKILL)
                return
            if re.search(rb"\r\nupgrade: *websocket", head, re.I):
                if reader.data:
                    daemon.sendall(reader.data)
                pump(client, daemon, threading.Event())
                return


def signal_peer(client, number):
    pid, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(pid, number)


def pump(source, target, muted):
    """Copies one direction until its end; once muted, what comes is dropped."""
    try:
        while True:
            chunk = source.recv(65536)
            if not chunk:
                break
            if not muted.is_set():
                target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--action", choices=ACTIONS, default="pass")
    parser.add_argument("--log")
    options = parser.parse_args()
    log = open(options.log, "w", encoding="utf-8") if options.log else None
    relay = Relay(options.upstream, options.at, options.action, log)
    if os.path.exists(options.listen):
        os.unlink(options.listen)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options.listen)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=relay.serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main()
