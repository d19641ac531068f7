"""src/incus against a peer that is broken in ways in which a real daemon is only by accident: silent, cut, garbled, endless.

What Incus does is not played here; only what a socket can do to a client. No lab is needed.
"""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import harness

OK = b'{"type":"sync","status_code":200,"metadata":{"a":1}}'
OPERATION = "/1.0/operations/11111111-2222"
STARTED = json.dumps({"type": "async", "operation": OPERATION, "metadata": {"metadata": {
    "fds": {"0": "s0", "1": "s1", "2": "s2", "control": "sc"}}}}).encode()
ENDED = json.dumps({"type": "sync", "metadata": {"status_code": 200, "metadata": {"return": 5}}}).encode()
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
END = b"\x81\x00"


def tool_path():
    return str(Path(harness.binary()).parent.parent.parent / "test" / "lab" / "incus_tool")


def http(body, status=b"200 OK", more=b""):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), more, body)


def endless(head, connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")


class Peer:
    """Listens at `path` and hands each request's head and connection to `serve`, in a thread a connection."""

    def __init__(self, path, serve, backlog=16):
        self.path, self.serve, self.closed = path, serve, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(backlog)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.serve:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        head = b""
        with connection:
            try:
                while True:
                    while b"\r\n\r\n" not in head:
                        chunk = connection.recv(65536)
                        if not chunk:
                            return
                        head += chunk
                    end = head.index(b"\r\n\r\n") + 4
                    length = re.search(rb"Content-Length: (\d+)", head[:end], re.I)
                    end += int(length.group(1)) if length else 0
                    while len(head) < end:
                        head += connection.recv(65536)
                    if self.serve(head[:end].decode(errors="replace"), connection) is False:
                        return
                    head = head[end:]
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Faults(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.socket = os.path.join(self.directory.name, "s")

    def peer(self, serve, **options):
        peer = Peer(self.socket, serve, **options)
        self.addCleanup(peer.close)
        return peer

    def answers(self, *pieces, pause=0.0, hang_up=False):
        def serve(head, connection):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            return not hang_up
        return self.peer(serve)

    def start(self, *arguments, patience=1500):
        environment = {**os.environ, "INCUS_SOCKET": self.socket, "INCUS_TOOL_PATIENCE": str(patience)}
        return subprocess.Popen([tool_path(), *arguments], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_tool(self, *arguments, budget=20, **options):
        start = time.monotonic()
        process = self.start(*arguments, **options)
        out, errors = process.communicate(timeout=budget)
        self.elapsed = time.monotonic() - start
        return process.returncode, out.decode(errors="replace"), errors.decode(errors="replace")

    def expect_error(self, pattern, *arguments, **options):
        status, out, errors = self.run_tool(*(arguments or ("get", "/1.0/x")), **options)
        self.assertEqual((status, out), (1, ""), errors)
        self.assertRegex(errors, pattern)
        return errors


class Answers(Faults):
    def test_a_good_one(self):
        self.answers(http(OK))
        self.assertEqual(self.run_tool("get", "/1.0/x"), (0, '{"a":1}\n', ""))

    def test_one_byte_at_a_time(self):
        self.answers(*[bytes([byte]) for byte in http(OK)], pause=0.002)
        self.assertEqual(self.run_tool("get", "/1.0/x")[:2], (0, '{"a":1}\n'))

    def test_silence_is_told_as_such(self):
        self.peer(lambda head, connection: time.sleep(30))
        self.expect_error(r"^error no-daemon .*does not answer: nothing came .* within 1 s\nremedy: ")
        self.assertLess(self.elapsed, 5)

    def test_silence_ends_at_a_signal(self):
        self.peer(lambda head, connection: time.sleep(30))
        process = self.start("get", "/1.0/x", patience=30000)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertRegex(process.communicate(timeout=5)[1], rb"^error interrupted ")

    def test_silence_after_a_first_answer_is_a_timeout(self):
        self.answers(http(OK)[:-3])
        self.expect_error(r"^error timeout .*silent for 2 s")

    def test_nobody_accepts(self):
        self.peer(None, backlog=0)
        held = []
        for _ in range(3):  # fills the queue
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            self.addCleanup(one.close)
            try:
                one.connect(self.socket)
            except BlockingIOError:
                break
            held.append(one)
        self.expect_error(r"^error no-daemon .*does not answer: nothing came .* within 5 s")
        self.assertTrue(4.5 < self.elapsed < 8, self.elapsed)

    def test_hanging_up(self):
        self.answers(hang_up=True)
        self.expect_error(r"^error no-daemon .*closed the connection")

    def test_cut_bodies(self):
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n34\r\n" + OK
        for answer in (http(OK)[:-5], chunked, chunked + b"\r\n", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP"):
            peer = self.answers(answer, hang_up=True)
            self.expect_error(r"^error (no-daemon|protocol) ")
            peer.close()
            os.unlink(self.socket)

    def test_garbage(self):
        for answer in (b"SSH-2.0-OpenSSH_9.2\r\n", b"\0" * 100, http(b"<html>"), http(b""), http(b"[]"), http(b"{}"),
                       http(b'{"type":"sync"'), b"HTTP/1.1 xyz\r\n\r\n", http(b"<h1>", b"502 Bad Gateway"),
                       http(b'{"type":"async","operation":"/1.0/operations/a b"}', b"202 Accepted")):
            peer = self.answers(answer, hang_up=True)
            self.expect_error(r"^error (protocol|no-daemon) ")
            peer.close()
            os.unlink(self.socket)

    def test_a_success_of_unknown_length(self):
        self.answers(b"HTTP/1.1 200 OK\r\n\r\n" + OK, hang_up=True)
        self.expect_error(r"^error protocol .*does not say how long it is")

    def test_a_kept_connection_that_died_is_asked_elsewhere_once(self):
        heads, connections = [], []

        def serve(head, connection):
            heads.append(head.split()[1])
            if connection in connections:
                return False  # the second question on it: hung up without a word
            connections.append(connection)
            connection.sendall(http(b'{"type":"sync","metadata":{"target":"f"}}'))
            return True
        self.peer(serve)
        self.assertEqual(self.run_tool("alias", "x")[:2], (0, '{"target":"f"}\n'))
        self.assertEqual(heads, ["/1.0/images/aliases/x", "/1.0/images/f", "/1.0/images/f"])

    def test_an_act_is_never_sent_twice_nor_over_a_used_connection(self):
        seen, connections = [], []

        def serve(head, connection):
            seen.append((head.split()[0], connection in connections))
            connections.append(connection)
            if head.startswith("PUT"):
                return False
            connection.sendall(http(OK))
            return True
        self.peer(serve)
        self.expect_error(r"^error no-daemon .*closed the connection", "tagged", "/1.0/x", "{}")
        self.assertEqual(seen, [("GET", False), ("PUT", False)])

    def test_a_refusal_in_the_middle_of_an_upload(self):
        big = Path(self.directory.name, "big")
        with open(big, "wb") as file:
            file.truncate(64 << 20)
        refusal = http(b'{"type":"error","error_code":403,"error":"not here"}', b"403 Forbidden")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.socket)
        listener.listen()

        def refuse():
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(refusal)
        threading.Thread(target=refuse, daemon=True).start()
        self.expect_error(r"^error denied http=403: .*not here", "push", "any", "/x", str(big), "0", "0", "644")

    def test_an_operation_where_none_was_expected(self):
        self.answers(http(STARTED, b"202 Accepted"))
        self.expect_error(r"^error protocol .*operation where none was expected")

    def test_an_endless_body_has_a_ceiling(self):
        self.peer(endless)
        self.expect_error(r"^error system .*larger than 67108864 bytes")

    def test_the_words_of_a_daemon_are_made_safe(self):
        self.answers(http(json.dumps({"type": "error", "error_code": 500, "error": "a\x1b[2Jb"}).encode(), b"500 X"))
        self.assertNotIn("\x1b", self.expect_error(r"^error refused http=500"))

    def test_no_socket_there(self):
        self.expect_error(r"^error no-daemon .*no socket at")
        Path(self.socket).write_text("a file", encoding="utf-8")
        self.expect_error(r"^error no-daemon .*nobody listens")
        self.socket = "/tmp/" + "x" * 120
        self.expect_error(r"^error usage .*longer than")


class Sessions(Faults):
    """An exec whose streams do what they like; `script` says what each brings, as (pause, bytes) pairs."""

    def session(self, script, wait=((0.1, http(ENDED)),), options=(), command=("true",)):
        self.inputs = {}

        def serve(head, connection):
            if head.startswith("POST"):
                connection.sendall(http(STARTED, b"202 Accepted"))
                return True
            if "/wait?" in head:
                steps = wait
            else:
                secret = re.search(r"secret=(\w+)", head).group(1)
                steps = script.get(secret, ((0, UPGRADED), (0.1, END)))
            for pause, data in steps:
                time.sleep(pause)
                connection.sendall(data)
            if "/wait?" not in head:
                return False
            return True
        self.peer(serve)
        return self.run_tool("exec", "any", "--no-input", *options, "--", *command)

    def test_a_good_one(self):
        script = {"s1": ((0, UPGRADED + b"\x82\x03out"), (0, END)), "s2": ((0, UPGRADED), (0, b"\x82\x03err" + END))}
        self.assertEqual(self.session(script), (5, "out", "err"))

    def test_output_that_comes_after_the_result(self):
        script = {"s1": ((0, UPGRADED), (0.6, b"\x82\x01a"), (0.6, b"\x82\x01b" + END))}
        self.assertEqual(self.session(script), (5, "ab", ""))

    def test_a_stream_that_never_ends(self):
        script = {"s1": ((0, UPGRADED + b"\x82\x03out"), (20, END))}
        self.assertEqual(self.session(script), (5, "out", ""))
        self.assertTrue(1.0 < self.elapsed < 3, self.elapsed)

    def test_streams_that_end_long_before_the_result(self):
        self.assertEqual(self.session({}, wait=((1.5, http(ENDED)),)), (5, "", ""))
        self.assertGreater(self.elapsed, 1.4)

    def test_a_stream_that_is_refused(self):
        refusal = http(b'{"type":"error","error_code":403,"error":"not yours"}', b"403 Forbidden")
        status, _, errors = self.session({"s1": ((0, refusal),)}, wait=((5, http(ENDED)),))
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^error denied http=403: .*not yours")

    def test_a_refused_control_is_no_failure(self):
        refusal = http(b'{"type":"error","error_code":404,"error":"gone"}', b"404 Not Found")
        self.assertEqual(self.session({"sc": ((0, refusal),)}), (5, "", ""))

    def test_a_broken_frame(self):
        status, _, errors = self.session({"s1": ((0, UPGRADED + b"\xf2\x03abc"), (2, b""))}, wait=((5, http(ENDED)),))
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^error protocol .*broken frame")

    def test_a_result_without_a_status(self):
        nothing = http(json.dumps({"type": "sync", "metadata": {"status_code": 200, "metadata": {}}}).encode())
        self.assertRegex(self.session({}, wait=((0, nothing),))[2], r"^error protocol .*without saying its exit status")

    def test_a_result_that_never_comes_meets_the_budget(self):
        headers = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        done = self.session({}, wait=((0.2, headers), (30, b"")), options=("--budget", "1000"))
        self.assertRegex(done[2], r"^error timeout .*true did not end within 1 s and was killed")

    def test_an_answer_without_streams(self):
        self.answers(http(STARTED.replace(b'"s1"', b"null"), b"202 Accepted"))
        self.expect_error(r"^error protocol .*without a stream 1", "exec", "any", "--no-input", "--", "true")


if __name__ == "__main__":
    unittest.main()
