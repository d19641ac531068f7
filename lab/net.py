"""The two network namespaces of a lab and the links between them. No link ever touches the machine's own namespace."""

import os
import subprocess

import plan
from spaces import NEWNET, LabError, detach, setns
from start import in_child


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError("ip %s: %s" % (" ".join(arguments), done.stderr.strip()))
    return done.stdout


def batch(namespace, lines):
    done = subprocess.run(["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise LabError("ip in %s: %s" % (namespace, done.stderr.strip()))


def namespace_stands(lab, which):
    """A file under /run/netns without a namespace on it is what a crash between the two steps leaves."""
    try:
        return os.stat(lab.netns(which)).st_dev != os.stat("/run/netns").st_dev
    except FileNotFoundError:
        return False


def sysctls(lab, which, settings):
    def work():
        fd = os.open(lab.netns(which), os.O_RDONLY)
        setns(fd, NEWNET)
        for key, value in settings.items():
            path = "/proc/sys/net/" + key
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as out:
                    out.write(value)

    in_child(work)


def links_of(namespace):
    return {line.split(": ")[1].split("@")[0] for line in ip("-n", namespace, "-o", "link", "show").splitlines()}


def host_lines():
    lines = ["link set lo up"]
    for row in plan.LINKS.values():
        link = row["link"]
        lines += ["link set %s up" % link, "addr replace %s/%d dev %s" % (row["address"], row["prefix"], link)]
        if "address6" in row:
            lines += ["addr replace %s/%d dev %s nodad" % (row["address6"], row["prefix6"], link),
                      "route replace ::/0 via %s dev %s" % (row["gateway6"], link)]
        lines += ["route replace %s via %s dev %s" % (route, row["gateway"], link) for route in row.get("routes", [])]
    lines.append("route replace default via %s dev %s" % (plan.UPLINK["gateway"], plan.UPLINK["link"]))
    return lines


def world_lines():
    lines = ["link set lo up"]
    lines += ["addr replace %s dev lo%s" % (a, " nodad" if ":" in a else "") for a in plan.routed_addresses()]
    for name, row in plan.LINKS.items():
        lines.append("link set %s up" % row["peer"])
        lines += ["addr replace %s dev %s%s" % (a, row["peer"], " nodad" if ":" in a else "")
                  for a in plan.link_addresses(name)]
    lines += ["route replace default via %s dev %s" % (plan.UPLINK["address"], plan.UPLINK["peer"]),
              "route replace ::/0 via %s dev %s" % (plan.UPLINK["address6"], plan.UPLINK["peer"])]
    return lines


def ensure(lab):
    """Makes namespaces, links, addresses and routes; what stands already is left as it is."""
    for which, name in (("host", lab.host_ns), ("world", lab.world_ns)):
        if not namespace_stands(lab, which):
            if os.path.exists(lab.netns(which)):
                os.unlink(lab.netns(which))
            ip("netns", "add", name)
    # The world answers for what it holds on a link and for nothing else there, and never forwards.
    quiet6 = {"ipv6/conf/all/accept_ra": "0", "ipv6/conf/default/accept_ra": "0", "ipv6/conf/default/accept_dad": "0"}
    sysctls(lab, "world", dict(quiet6, **{
        "ipv4/ip_forward": "0", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
        "ipv4/conf/all/arp_ignore": "1", "ipv4/conf/all/arp_announce": "2", "ipv4/icmp_ratelimit": "0"}))
    sysctls(lab, "host", quiet6)
    in_host, in_world = links_of(lab.host_ns), links_of(lab.world_ns)
    for row in plan.LINKS.values():
        link, peer = row["link"], row["peer"]
        if link in in_host and peer in in_world:
            continue
        if link in in_host:
            ip("-n", lab.host_ns, "link", "del", link)
        elif peer in in_world:
            ip("-n", lab.world_ns, "link", "del", peer)
        ip("link", "add", link, "netns", lab.host_ns, "type", "veth", "peer", "name", peer, "netns", lab.world_ns)
    batch(lab.world_ns, world_lines())
    batch(lab.host_ns, host_lines())


def remove(lab):
    """Removes both namespaces, and with them all links. Their processes must have ended."""
    for which in ("host", "world"):
        path = lab.netns(which)
        if namespace_stands(lab, which):
            ip("netns", "del", os.path.basename(path))
        elif os.path.exists(path):
            os.unlink(path)
    tidy()


def tidy():
    """With the first namespace ip mounts their directory on itself, and leaves it so: undone with the last one."""
    if not os.path.isdir("/run/netns") or os.listdir("/run/netns"):
        return
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        stacked = sum(line.split()[4] == "/run/netns" for line in mounts)
    for _ in range(stacked):
        detach("/run/netns")
    os.rmdir("/run/netns")
