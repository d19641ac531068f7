"""The address plan of a lab: what the world holds, how the host is attached to it, which names exist.

Data and the few functions that derive from it. It starts nothing: net.py lays the links, world.py serves.
"""

# The host's own side. Real public ranges on purpose: what a box may not reach must not be recognisable by its range alone.
UPLINK = {
    "link": "eth0", "peer": "uplink",
    "address": "45.33.10.2", "prefix": 24, "gateway": "45.33.10.1",
    "address6": "2600:3c00:10::2", "prefix6": 64, "gateway6": "2600:3c00:10::1",
}
LAN = {
    "link": "eth1", "peer": "lan",
    "address": "192.168.50.10", "prefix": 24, "gateway": "192.168.50.1",
    "routes": ["10.20.0.0/16", "172.16.5.0/24"],
}
VPN = {
    "link": "vpn0", "peer": "vpn",
    "address": "10.99.0.2", "prefix": 24, "gateway": "10.99.0.1",
    "routes": ["52.94.76.0/24"],
}
LINKS = {"uplink": UPLINK, "lan": LAN, "vpn": VPN}

WEB = "93.184.215.14"
WEB6 = "2606:2800:21f:cb07::14"
RESOLVER = "1.1.1.1"

# kind, address, why it is there. Addresses on a link are laid with it; all others are host routes inside the world.
ADDRESSES = [
    ("public", WEB, "a web server on the internet"),
    ("public", WEB6, "the same over IPv6"),
    ("resolver", "1.1.1.1", "a public resolver"),
    ("resolver", "8.8.8.8", "a public resolver"),
    ("resolver", "2606:4700:4700::1111", "a public resolver over IPv6"),
    ("gateway", UPLINK["gateway"], "the uplink's gateway: a public address that is no box's business"),
    ("gateway", UPLINK["gateway6"], "the same over IPv6"),
    ("neighbour", "45.33.10.77", "another machine on the host's own public subnet"),
    ("neighbour", "2600:3c00:10::77", "the same over IPv6"),
    ("lan", LAN["gateway"], "the router of the host's LAN"),
    ("lan", "192.168.50.20", "a file server on the host's LAN"),
    ("lan", "10.20.0.5", "an office network behind the LAN's router"),
    ("lan", "172.16.5.5", "another one"),
    ("lan", "fd00:20::5", "a unique local address"),
    ("vpn", VPN["gateway"], "the far end of the host's VPN"),
    ("vpn", "52.94.76.10", "a public address that the host reaches through its VPN"),
    ("cgnat", "100.64.7.7", "a neighbour behind the provider's NAT"),
    ("metadata", "169.254.169.254", "the metadata service of a cloud"),
    ("special", "192.0.0.8", "IETF protocol assignments"),
    ("special", "192.0.2.1", "documentation"),
    ("special", "192.88.99.1", "6to4 relay, deprecated"),
    ("special", "198.18.0.1", "benchmarking"),
    ("special", "198.51.100.1", "documentation"),
    ("special", "203.0.113.1", "documentation"),
    ("special", "240.0.0.1", "reserved for future use"),
]
ON_LINK = {"45.33.10.77": "uplink", "2600:3c00:10::77": "uplink", "192.168.50.20": "lan"}

# With --uplink: the world's addresses for package registries, whose real ones may lie where no box may go.
REGISTRIES = ["146.75.30.%d" % last for last in range(11, 27)]

# Ports that every address of the world serves.
SERVICES = {"http": 80, "tls_banner": 443, "dns": 53, "tcp_echo": 7, "udp_echo": 7}

# name, type, value, why
NAMES = [
    ("example.com", "A", WEB, "a public name that everybody knows"),
    ("web.example.com", "A", WEB, "the public web server"),
    ("web.example.com", "AAAA", WEB6, "the public web server"),
    ("web.example.com", "TXT", "served by the lab", "a text record"),
    ("big.example.com", "TXT", "b" * 1200, "too large for a datagram: must be asked again over TCP"),
    ("rebind.example.com", "A", "192.168.50.20", "a public name with a LAN address"),
    ("rebind-office.example.com", "A", "10.20.0.5", "a public name with an office address"),
    ("rebind-metadata.example.com", "A", "169.254.169.254", "a public name with the metadata address"),
    ("rebind-loopback.example.com", "A", "127.0.0.1", "a public name with the asker's own address"),
    ("rebind-cgnat.example.com", "A", "100.64.7.7", "a public name with a CGNAT address"),
    ("rebind-benchmark.example.com", "A", "198.18.0.1", "a public name with a benchmarking address"),
    ("nas.lan", "A", "192.168.50.20", "a host of the LAN"),
]

# What the host's own /etc/hosts names besides itself; nobody else may learn it.
PRIVATE_HOSTS = [("192.168.50.20", "nas.internal.example.com")]


def family(address):
    return 6 if ":" in address else 4


def link_addresses(link):
    """The addresses that the world's end of a link carries, as "address/prefix"."""
    row = LINKS[link]
    found = [(row["gateway"], row["prefix"])]
    if "gateway6" in row:
        found.append((row["gateway6"], row["prefix6"]))
    for address, where in ON_LINK.items():
        if where == link:
            found.append((address, row["prefix6"] if family(address) == 6 else row["prefix"]))
    return ["%s/%d" % pair for pair in found]


def routed_addresses():
    """The addresses of the world that lie on no link, as "address/32" or "/128"."""
    on_links = set(ON_LINK)
    for row in LINKS.values():
        on_links.update(row[key] for key in ("gateway", "gateway6") if key in row)
    return [a + ("/128" if family(a) == 6 else "/32") for _, a, _ in ADDRESSES if a not in on_links]


def describe(lab, held, registries):
    """The content of world.json: what the lab named serves. `held` are the addresses that the world's kernel took,
    `registries` the names that lead out of the lab: while there are any, no attack may be tried in it."""
    return {
        "version": 1,
        "lab": lab,
        "resolver": RESOLVER,
        "web": {"name": "web.example.com", "address": WEB, "address6": WEB6},
        "addresses": [
            dict({"kind": kind, "address": address, "family": family(address), "why": why}, **SERVICES)
            for kind, address, why in ADDRESSES if address in held
        ],
        "names": [{"name": n, "type": t, "value": v, "why": w} for n, t, v, w in NAMES],
        "uplink": [{"name": row["name"], "address": row["address"]} for row in registries],
        "private_hosts": [{"address": a, "name": n} for a, n in PRIVATE_HOSTS],
        "host": {
            name: {key: value for key, value in row.items() if key != "peer"} for name, row in LINKS.items()
        },
        "http": {
            "/": "who answered and whom, one line each",
            "/arrivals": "the last connections and datagrams that reached the world, JSON, newest last",
            "/bytes/N": "N zero bytes",
        },
    }
