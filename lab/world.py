"""The outside world of one lab: HTTP, a TLS-port banner, DNS and echo on every address that its namespace holds.

One process, started by the lab inside the world's network namespace. It decides nothing about links or routes.
Usage: world.py NAME DIRECTORY [UPLINK] READY_FD: opens all ports, writes DIRECTORY/world.json, then one byte to READY_FD.
UPLINK is a JSON list (default: empty) of {name, address, real}: registries whose TCP 80 and 443 are passed on.
"""

import asyncio
import collections
import ipaddress
import json
import os
import resource
import socket
import struct
import sys
import time

import plan
import uplink

IP_PKTINFO = 8
DNS_TYPES = {"A": 1, "TXT": 16, "AAAA": 28}
DATAGRAM_MAX = 512
TTL = 300
RELAYED_PORTS = (80, 443)


class World:
    def __init__(self, registries):
        self.names = plan.NAMES + [(row["name"], "A", row["address"], "a package registry") for row in registries]
        self.relayed = {row["address"]: row["real"] for row in registries}
        self.arrivals = collections.deque(maxlen=4096)
        self.count = 0

    def arrived(self, service, source, target, **more):
        self.count += 1
        row = {"n": self.count, "at": round(time.time(), 3), "service": service,
               "from": source[0], "from_port": source[1], "to": target}
        row.update(more)
        self.arrivals.append(row)


def plain(address):
    """An address without the scope or the IPv4-mapped prefix that the socket layer adds."""
    address = address.split("%")[0]
    return address[7:] if address.startswith("::ffff:") else address


# DNS ---------------------------------------------------------------------------------------------------------------

def dns_question(packet):
    """(name in lower case, type, class, end of the question), or None for what is no single question."""
    if len(packet) < 12 or struct.unpack("!H", packet[4:6])[0] != 1 or packet[2] & 0x80:
        return None
    labels, at = [], 12
    while at < len(packet) and packet[at]:
        length = packet[at]
        if length > 63 or at + 1 + length > len(packet):
            return None
        labels.append(packet[at + 1:at + 1 + length].decode("latin-1"))
        at += 1 + length
    if at + 5 > len(packet):
        return None
    kind, klass = struct.unpack("!HH", packet[at + 1:at + 5])
    return ".".join(labels).lower(), kind, klass, at + 5


def dns_data(kind, value):
    if kind == "TXT":
        raw = value.encode()
        return b"".join(bytes([len(raw[i:i + 255])]) + raw[i:i + 255] for i in range(0, len(raw), 255))
    return ipaddress.ip_address(value).packed


def dns_answer(packet, names, limit):
    """The reply to a query: the names' records, NXDOMAIN for an unknown name; None for what deserves no reply."""
    question = dns_question(packet)
    if question is None:
        return None, None
    name, kind, klass, end = question
    known = [row for row in names if row[0] == name]
    records = [row for row in known if klass == 1 and kind in (DNS_TYPES[row[1]], 255)]
    body = b""
    for _, rtype, value, _ in records:
        data = dns_data(rtype, value)
        body += struct.pack("!HHHIH", 0xC00C, DNS_TYPES[rtype], 1, TTL, len(data)) + data
    flags = 0x8580 | (packet[2] & 0x01) << 8  # an authoritative answer; recursion is offered
    if not known:
        flags |= 3
    count = len(records)
    if end + len(body) > limit:
        flags, body, count = flags | 0x0200, b"", 0
    return packet[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + packet[12:end] + body, name


# Datagrams: one wildcard socket a port and family; a reply leaves from the address that was asked ---------------------

def datagram_socket(family, port):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    sock.bind(("", port))
    sock.setblocking(False)
    return sock


def receive(sock):
    """(payload, source, own address, control data that makes a reply leave from it)."""
    payload, control, _, source = sock.recvmsg(65535, 256)
    for level, kind, data in control:
        if level == socket.IPPROTO_IP and kind == IP_PKTINFO:
            own = data[8:12]
            return payload, source, socket.inet_ntop(socket.AF_INET, own), [(level, kind, struct.pack("=I", 0) + own + own)]
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            return payload, source, socket.inet_ntop(socket.AF_INET6, data[:16]), [(level, kind, data[:16] + struct.pack("=I", 0))]
    return payload, source, "", []


def serve_datagrams(loop, world, service, port, answer):
    for family in (socket.AF_INET, socket.AF_INET6):
        sock = datagram_socket(family, port)

        def ready(sock=sock):
            try:
                payload, source, own, control = receive(sock)
                reply, note = answer(payload)
                world.arrived(service, (plain(source[0]), source[1]), own, **note)
                if reply is not None:
                    sock.sendmsg([reply], control, 0, source)
            except OSError as problem:  # a peer that cannot be answered is the peer's affair
                print("world: %s: %s" % (service, problem), file=sys.stderr, flush=True)

        loop.add_reader(sock, ready)


# Streams -------------------------------------------------------------------------------------------------------------

async def echo(reader, writer, _world, _ends):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def banner(_reader, writer, _world, ends):
    writer.write(b"lab %s\n" % ends[1].encode())


async def dns_stream(reader, writer, world, _ends):
    while True:
        length = struct.unpack("!H", await reader.readexactly(2))[0]
        reply, _ = dns_answer(await reader.readexactly(length), world.names, 65535)
        if reply is None:
            return
        writer.write(struct.pack("!H", len(reply)) + reply)
        await writer.drain()


async def http(reader, writer, world, ends):
    """HTTP/1.1, one request a connection: GET and HEAD; whatever a request carries besides is read and left alone."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    words = head.split(b"\r\n")[0].split()
    path = words[1].decode("latin-1") if len(words) > 1 else "/"
    status, kind, body, zeros = "200 OK", "text/plain", b"", 0
    if path == "/":
        body = ("lab world\nserver %s\nclient %s\n" % (ends[1], ends[0])).encode()
    elif path == "/arrivals":
        kind, body = "application/json", json.dumps(list(world.arrivals)).encode()
    elif path.startswith("/bytes/") and path[7:].isdigit():
        kind, zeros = "application/octet-stream", min(int(path[7:]), 1 << 32)
    else:
        status, body = "404 Not Found", b"not here\n"
    writer.write(("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                  % (status, kind, len(body) + zeros)).encode())
    if words[:1] != [b"HEAD"]:
        writer.write(body)
        while zeros:
            step = min(zeros, 1 << 18)
            writer.write(bytes(step))
            await writer.drain()
            zeros -= step


async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def relay(reader, writer, real, port):
    """Passes a connection on to where a registry really is, over the uplink's own device: no route leads there."""
    loop = asyncio.get_running_loop()
    for address in real:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, uplink.LINK.encode())
            await asyncio.wait_for(loop.sock_connect(sock, (address, port)), 10)
            break
        except (OSError, asyncio.TimeoutError) as problem:
            sock.close()
            print("world: registry at %s: %s" % (address, problem), file=sys.stderr, flush=True)
    else:
        return
    far_reader, far_writer = await asyncio.open_connection(sock=sock)
    try:
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
    finally:
        far_writer.close()


async def serve_stream(world, service, port, handler):
    async def connected(reader, writer):
        source, own = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        try:
            ends = (plain(source[0]), plain(own[0]))
            world.arrived(service, (ends[0], source[1]), ends[1])
            if ends[1] in world.relayed:
                if port in RELAYED_PORTS:
                    await relay(reader, writer, world.relayed[ends[1]], port)
                return
            await handler(reader, writer, world, ends)
            await writer.drain()
        except (OSError, TypeError, ValueError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            pass  # the peer went away, stayed silent or spoke another protocol; there is nobody to tell
        finally:
            writer.close()

    await asyncio.start_server(connected, ["0.0.0.0", "::"], port, backlog=512, reuse_address=True)


def held_addresses():
    """Those of the plan's addresses that this kernel took: a bind to each says so."""
    held = []
    for _, address, _ in plan.ADDRESSES:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind((address, 0))
                held.append(address)
            except OSError:
                print("world: this kernel does not take %s" % address, file=sys.stderr, flush=True)
    return held


async def main(name, directory, registries, ready_fd):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    world, loop = World(registries), asyncio.get_running_loop()

    def answer_dns(payload):
        reply, asked = dns_answer(payload, world.names, DATAGRAM_MAX)
        return reply, {"asked": asked}

    serve_datagrams(loop, world, "dns", plan.SERVICES["dns"], answer_dns)
    serve_datagrams(loop, world, "udp_echo", plan.SERVICES["udp_echo"], lambda data: (data, {"bytes": len(data)}))
    for service, handler in (("http", http), ("tls_banner", banner), ("dns", dns_stream), ("tcp_echo", echo)):
        await serve_stream(world, service, plan.SERVICES[service], handler)

    path = os.path.join(directory, "world.json")
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(plan.describe(name, held_addresses(), registries), out, indent=1)
    os.rename(path + ".new", path)
    os.write(ready_fd, b"1")
    os.close(ready_fd)
    await asyncio.Event().wait()


if __name__ == "__main__":
    lab_name, run_directory, *linked, ready = sys.argv[1:]
    asyncio.run(main(lab_name, run_directory, json.loads(linked[0]) if linked else [], int(ready)))
