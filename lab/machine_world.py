"""The lab's world around a whole machine: the same addresses, links and services, in one namespace beside the machine's own.

Runs inside the machine, as a unit; tells systemd when the world serves. It changes no rule and no sysctl of the machine.
"""

import os
import select
import socket
import subprocess
import sys

import net
import plan

WORLD = "box-machine-world"
RUN = "/run/box-lab"


def lay():
    """Namespace, links, addresses and routes, as a lab has them; laid anew at every boot."""
    if not os.path.exists("/run/netns/" + WORLD):
        net.ip("netns", "add", WORLD)
    quiet = {"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0",
             "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.all.arp_announce": "2", "net.ipv4.icmp_ratelimit": "0",
             "net.ipv6.conf.all.accept_ra": "0", "net.ipv6.conf.default.accept_dad": "0"}
    for key, value in quiet.items():
        subprocess.run(["ip", "netns", "exec", WORLD, "sysctl", "-q", "-w", "%s=%s" % (key, value)], check=True)
    present = net.links_of(WORLD)
    for row in plan.LINKS.values():
        if row["peer"] not in present:
            net.ip("link", "add", row["link"], "type", "veth", "peer", "name", row["peer"], "netns", WORLD)
    net.batch(WORLD, net.world_lines())
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(net.host_lines()) + "\n", text=True, check=False,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit("ip on the machine: " + done.stderr.strip())


def tell_systemd(text):
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(text, "\0" + address[1:] if address[0] == "@" else address)


def main():
    os.makedirs(RUN, exist_ok=True)
    lay()
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    world = subprocess.Popen(["ip", "netns", "exec", WORLD, sys.executable, "-ES",
                              os.path.join(os.path.dirname(os.path.abspath(__file__)), "world.py"), "machine", RUN, "[]", str(writer)],
                             pass_fds=[writer])
    os.close(writer)
    if not (select.select([reader], [], [], 240.0)[0] and os.read(reader, 1)):
        world.terminate()
        sys.exit("the world did not open its ports within 240 s; its own words, if any, are above")
    tell_systemd(b"READY=1")
    sys.exit(world.wait())


if __name__ == "__main__":
    main()
