/* Phase C: attacks from a box, and into one, each with the control that makes silence mean something.
 * Not for: how an attack is made (the instrument) or judged (verdict.c). What no single probe tells is in siege.c. */
#include "drill/nested.h"
#include "drill/phases.h"
#include "drill/siege.h"
#include "drill/walls.h"

#define PROVE CLAIM_PROVE
#define PEER  CLAIM_PEER
#define ALONE CLAIM_ALONE
#define LAYER CLAIM_LAYER

/* Listeners: on this host, in the other box, in the world. */
#define HOST_TCP  "host: listen tcp --echo"
#define HOST_UDP  "host: listen udp --echo"
#define PEER_TCP  "peer: listen tcp --echo"
#define PEER_UDP  "peer: listen udp --echo"
#define PEER_WIRE "peer: listen ether"
#define WORLD_UDP "world: listen udp --echo"

#define SHORT " --count 2 --timeout 700"
#define TRY   " --timeout 1200"

/* What the box reaches and this host does too. */
#define INTERNET(number, what, probe)                                                                                  \
    {                                                                                                                  \
        number, what, .expect = EXPECT_REACHABLE, .attack = "box: " probe, .control = "host: " probe, .budget = 45000, \
                      .flags = PROVE                                                                                   \
    }

/* An address that the host reaches over TCP and a box must not. */
#define UNREACHED(number, fact, row_, what, wall_)                                                                     \
    {                                                                                                                  \
        number, "A box does not reach " what, row_, wall_, EXPECT_SILENCE, "box: connect {" fact "} 80" TRY,           \
            "host: connect {" fact "} 80" TRY, .flags = PROVE                                                          \
    }

/* An address of this host, on which it listens. */
#define HOST_ADDRESS(number, fact, other, what)                                                                        \
    {number "T",                                                                                                       \
     "A box does not reach " what " over TCP",                                                                         \
     "3",                                                                                                              \
     "the input rules of the walls",                                                                                   \
     EXPECT_SILENCE,                                                                                                   \
     "box: connect {" fact "} {port}" TRY,                                                                             \
     "host: connect {" fact "} {port} --echo" TRY,                                                                     \
     HOST_TCP,                                                                                                         \
     .flags = PROVE},                                                                                                  \
        {number "U",                                                                                                   \
         "A box does not reach " what " over UDP",                                                                     \
         "3",                                                                                                          \
         "the input rules of the walls",                                                                               \
         EXPECT_SILENCE,                                                                                               \
         "box: udp {" fact "} {port}" SHORT,                                                                           \
         "host: udp {" fact "} {port}" SHORT,                                                                          \
         HOST_UDP,                                                                                                     \
         .flags = PROVE},                                                                                              \
    {                                                                                                                  \
        number "P", "A box gets no ping answered by " what, "3", "the input rules of the walls", EXPECT_SILENCE,       \
            "box: icmp {" fact "}" SHORT, "host: icmp {" fact "} --source " other SHORT, .flags = PROVE                \
    }

/* A one-way packet to this host: only the listener tells. */
#define TO_HOST(number, row_, what, wall_, probe)                                                                      \
    {                                                                                                                  \
        number, what, row_, wall_, EXPECT_SILENCE, "box: " probe, "host: udp {gateway} {port}" SHORT, HOST_UDP,        \
            .flags = PROVE                                                                                             \
    }

/* A frame to the other box: its listener on the wire tells. */
#define FRAME(number, what, probe)                                                                                     \
    {                                                                                                                  \
        number, "No " what " reaches a sibling", "14", "port isolation and the bridge's forward drop", EXPECT_SILENCE, \
            "box: " probe, "host: raw {peer.mac} --interface boxnet", PEER_WIRE, .flags = PEER                         \
    }

/* A name that must not resolve in a box, where another one does. */
#define NAMELESS(number, row_, what, wall_, name, flags_)                                                              \
    {                                                                                                                  \
        number, what, row_, wall_, EXPECT_NAMELESS, "box: resolve " name " --timeout 2500",                            \
            "box: resolve {public.name} --timeout 2500", .flags = flags_                                               \
    }

/* A packet with a source address that is not the box's: a listener in the world tells. */
#define SPOOFED(number, row_, what, wall_, source)                                                                     \
    {                                                                                                                  \
        number, what, row_, wall_, EXPECT_SILENCE, "box: spoof udp {web} {port} --source " source " --count 3",        \
            "box: udp {web} {port}" SHORT, WORLD_UDP, .flags = PROVE                                                   \
    }

#define WALL(number, what, name)                                                                                       \
    {                                                                                                                  \
        number, what, .run = walls_claim, .argument = name, .flags = PROVE | LAYER                                     \
    }

static const struct claim claims[] = {
    /* The baseline: without it, silence means nothing. */
    {"C01", "The box has an address of its own on the boxes' network", .run = siege_claim, .argument = "address",
     .flags = CLAIM_FIRST | PROVE},
    {"C02", "The public internet answers by address", .expect = EXPECT_REACHABLE,
     .attack = "box: connect {web} {web.port}" TRY, .control = "host: connect {web} {web.port}" TRY, .budget = 45000,
     .flags = CLAIM_FIRST | PROVE},
    {"C03", "The public internet answers by name", .expect = EXPECT_REACHABLE,
     .attack = "box: resolve {public.name} --timeout 2500", .budget = 45000, .flags = CLAIM_FIRST | PROVE},
    {"C04", "The instrument in the box tells a refusal from silence", .run = siege_claim, .argument = "instrument",
     .flags = CLAIM_FIRST | PROVE},

    INTERNET("C05", "A second public address answers", "connect {resolver} 53" TRY),
    INTERNET("C06", "A public resolver answers over UDP", "dns {public.name} --server {resolver}" TRY),
    {"C07", "The gateway's resolver answers over TCP", .expect = EXPECT_REACHABLE,
     .attack = "box: dns {public.name} --server {gateway} --tcp" TRY, .budget = 45000, .flags = PROVE},
    {"C08", "Full-size packets reach the internet unfragmented", .expect = EXPECT_REACHABLE,
     .attack = "box: icmp {web} --size 1472 --df --timeout 1500",
     .control = "host: icmp {web} --size 1472 --df --timeout 1500", .budget = 45000, .flags = PROVE},
    {"C09", "This host reaches the box when it begins the talk", .expect = EXPECT_REACHABLE,
     .attack = "host: icmp {box.ip} --timeout 1500", .budget = 45000, .flags = PROVE},

    /* This host. */
    HOST_ADDRESS("C10", "gateway", "{uplink}", "its gateway"),
    HOST_ADDRESS("C11", "uplink", "{gateway}", "this host's uplink address"),
    HOST_ADDRESS("C12", "host.1", "{gateway}", "this host's second address"),
    HOST_ADDRESS("C13", "host.2", "{gateway}", "this host's third address"),
    {"C14", "A box does not reach a DNS port on this host's uplink address", "2", "the destination in the input rules",
     EXPECT_SILENCE, "box: udp {uplink} 53" SHORT, "host: udp {uplink} 53" SHORT,
     "host: listen udp --echo --address {uplink} --port 53", .flags = PROVE},
    {"C15", "A box does not reach a DHCP port on this host's uplink address", "2", "the destination in the input rules",
     EXPECT_SILENCE, "box: udp {uplink} 67" SHORT, "host: udp {uplink} 67" SHORT,
     "host: listen udp --echo --address {uplink} --port 67", .flags = PROVE},
    {"C16", "None of the other IP protocols reaches this host", "3", "the input rules of the walls", EXPECT_SILENCE,
     "box: protocols {gateway} --timeout 1800", "host: protocols {gateway} --timeout 1800", .flags = PROVE},
    {"C17", "No broadcast of the subnet reaches this host", "3", "the input rules of the walls", EXPECT_SILENCE,
     "box: multicast {broadcast} {port} --timeout 700", "host: udp {gateway} {port}" SHORT, HOST_UDP, .flags = PROVE},
    {"C18", "No limited broadcast reaches this host", "3", "the input rules of the walls", EXPECT_SILENCE,
     "box: multicast 255.255.255.255 {port} --interface {box.nic} --timeout 700", "host: udp {gateway} {port}" SHORT,
     HOST_UDP, .flags = PROVE},
    {"C19", "No multicast reaches this host", "3", "the input rules of the walls", EXPECT_SILENCE,
     "box: multicast 224.0.0.251 {port} --interface {box.nic} --timeout 700", "host: udp {gateway} {port}" SHORT,
     "host: listen udp --echo --group 224.0.0.251 --interface boxnet --port 0", .flags = PROVE},
    {"C20", "No IP in a frame to 01:80:c2:00:00:0e reaches the gateway's address", "1", "P1: reserved MACs are dropped",
     EXPECT_SILENCE,
     "box: raw 01:80:c2:00:00:0e --ip {gateway} --proto udp --port {port} --count 3 --wait --timeout 700",
     "host: udp {gateway} {port}" SHORT, HOST_UDP, .flags = PROVE},
    {"C21", "No IP in a frame to 01:80:c2:00:00:02 reaches the uplink address", "1", "P1: reserved MACs are dropped",
     EXPECT_SILENCE,
     "box: raw 01:80:c2:00:00:02 --ip {uplink} --proto udp --port {port} --count 3 --wait --timeout 700",
     "host: udp {uplink} {port}" SHORT, HOST_UDP, .flags = PROVE},
    {"C22", "No ping in a frame to 01:80:c2:00:00:0f is answered", "1", "P1: reserved MACs are dropped", EXPECT_SILENCE,
     "box: raw 01:80:c2:00:00:0f --ip {gateway} --proto icmp --count 3 --wait --timeout 700",
     "host: icmp {gateway} --source {uplink}" SHORT, .flags = PROVE},
    {"C23", "No broadcast in a frame to 01:80:c2:00:00:03 reaches this host", "1", "P1: reserved MACs are dropped",
     EXPECT_SILENCE,
     "box: raw 01:80:c2:00:00:03 --ip 255.255.255.255 --source {box.ip} --proto udp --port {port} --count 3",
     "host: udp {gateway} {port}" SHORT, HOST_UDP, .flags = PROVE},
    {"C24", "No packet to 127.0.0.1 gets through the gateway", "2", "P5 and route_localnet=0", EXPECT_SILENCE,
     "box: raw gateway --ip 127.0.0.1 --source {box.ip} --proto udp --port {port} --count 3",
     "host: udp 127.0.0.1 {port}" SHORT, "host: listen udp --echo --address 127.0.0.1", .flags = PROVE},
    TO_HOST("C25", "23", "No fragments reach this host", "the input rules of the walls",
            "spoof udp {gateway} {port} --size 64 --fragment 24"),
    TO_HOST("C26", "23", "No packet with IP options reaches this host", "P6: no options",
            "spoof udp {gateway} {port} --ip-options 01010101"),
    TO_HOST("C27", "5", "A spoofed sibling's address reaches nothing on this host", "P3 and the armed set",
            "spoof udp {gateway} {port} --source {stranger} --count 3"),
    TO_HOST("C28", "5", "A packet from the gateway's own address reaches nothing on this host", "P4",
            "spoof udp {uplink} {port} --source {gateway} --count 3"),
    TO_HOST("C29", "8", "A packet from a public address reaches nothing on this host", "P3",
            "spoof udp {uplink} {port} --source {web} --source-port 53 --count 3"),
    {"C30", "A stray TCP acknowledgement reaches nothing on this host", "4", "I1: only answers to what the host began",
     .run = siege_claim, .argument = "stray", .flags = PROVE},
    {"C31", "A box cannot inject into a flow of this host with another", "5", "P3 and I1", .run = siege_claim,
     .argument = "inject", .flags = PEER, .budget = 12000},
    {"C32", "A box cannot shrink the path MTU of this host's flows", "7", "I1", .run = siege_claim, .argument = "frag",
     .flags = ALONE, .budget = 15000},
    {"C33", "A box cannot reset this host's flows", "7", "I1", .run = siege_claim, .argument = "reset", .flags = ALONE,
     .budget = 15000},
    {"C34", "ARP for this host's other addresses is not answered", "22", "arp_ignore=1", EXPECT_SILENCE,
     "box: arp who-has {uplink} --timeout 1200", "box: arp who-has {gateway} --timeout 1200", .flags = PROVE},
    {"C35", "Source routing takes no packet through this host", "23", "P6, and the kernel's own refusal",
     EXPECT_SILENCE, "box: spoof udp {lan.2} 7 --source-route {gateway} --wait --timeout 700",
     "host: udp {lan.2} 7" SHORT, .flags = PROVE},

    /* The networks around. */
    UNREACHED("C40", "lan.1", "3", "the router of this host's LAN", "special4"),
    UNREACHED("C41", "lan.2", "3", "a server on this host's LAN (192.168/16)", "special4"),
    UNREACHED("C42", "lan.3", "3", "an office network (10/8)", "special4"),
    UNREACHED("C43", "lan.4", "3", "an office network (172.16/12)", "special4"),
    {"C44", "A box does not reach the LAN over UDP", "3", "special4", EXPECT_SILENCE, "box: udp {lan.2} 7" SHORT,
     "host: udp {lan.2} 7" SHORT, .flags = PROVE},
    {"C45", "A box does not ping the LAN", "3", "special4", EXPECT_SILENCE, "box: icmp {lan.2}" SHORT,
     "host: icmp {lan.2}" SHORT, .flags = PROVE},
    {"C46", "A box does not ask the LAN's DNS", "3", "special4", EXPECT_SILENCE,
     "box: dns {public.name} --server {lan.1} --timeout 800", "host: dns {public.name} --server {lan.1} --timeout 800",
     .flags = PROVE},
    UNREACHED("C47", "vpn.1", "21", "the far end of this host's VPN", "special4"),
    UNREACHED("C48", "vpn.2", "21", "a public address behind this host's VPN", "the uplink's next hop"),
    UNREACHED("C49", "cgnat.1", "25", "a neighbour behind carrier NAT (100.64/10)", "special4"),
    UNREACHED("C50", "metadata.1", "25", "the cloud's metadata service", "special4"),
    {"C51", "A box does not reach the metadata service over UDP", "25", "special4", EXPECT_SILENCE,
     "box: udp {metadata.1} 7" SHORT, "host: udp {metadata.1} 7" SHORT, .flags = PROVE},
    UNREACHED("C52", "special.1", "25", "IETF protocol assignments (192.0.0/24)", "special4"),
    UNREACHED("C53", "special.2", "25", "a documentation range (192.0.2/24)", "special4"),
    UNREACHED("C54", "special.3", "25", "the 6to4 relay range (192.88.99/24)", "special4"),
    UNREACHED("C55", "special.4", "25", "the benchmarking range (198.18/15)", "special4"),
    UNREACHED("C56", "special.5", "25", "a documentation range (198.51.100/24)", "special4"),
    UNREACHED("C57", "special.6", "25", "a documentation range (203.0.113/24)", "special4"),
    UNREACHED("C58", "special.7", "25", "the reserved range (240/4)", "special4"),
    UNREACHED("C59", "neighbour.1", "21", "a machine on this host's own public subnet", "the uplink's next hop"),
    UNREACHED("C60", "uplink.gateway", "21", "the uplink gateway's own address", "the uplink set"),
    {"C61", "A box does not reach the uplink gateway over UDP", "21", "the uplink set", EXPECT_SILENCE,
     "box: udp {uplink.gateway} 7" SHORT, "host: udp {uplink.gateway} 7" SHORT, .flags = PROVE},
    {"C62", "A box does not ping the uplink gateway", "21", "the uplink set", EXPECT_SILENCE,
     "box: icmp {uplink.gateway}" SHORT, "host: icmp {uplink.gateway}" SHORT, .flags = PROVE},

    /* Names. */
    NAMELESS("C65", "15", "A sibling's name does not resolve", "dhcp-ignore-names", "{peer.name}", PEER),
    NAMELESS("C66", "15", "A sibling's name does not resolve in the daemon's domain", "dhcp-ignore-names",
             "{peer.name}.incus", PEER),
    NAMELESS("C67", "15", "This host's name does not resolve", "no-hosts", "{host.name}", PROVE),
    NAMELESS("C68", "15", "A name from this host's /etc/hosts does not resolve", "no-hosts", "{private.name}", PROVE),
    NAMELESS("C69", "17", "A public name with a LAN address does not resolve", "stop-dns-rebind", "rebind.example.com",
             PROVE),
    NAMELESS("C70", "17", "A public name with an office address does not resolve", "stop-dns-rebind",
             "rebind-office.example.com", PROVE),
    NAMELESS("C71", "17", "A public name with the metadata address does not resolve", "stop-dns-rebind",
             "rebind-metadata.example.com", PROVE),
    NAMELESS("C72", "17", "A public name with a loopback address does not resolve", "stop-dns-rebind",
             "rebind-loopback.example.com", PROVE),
    {"C73", "A box's address does not resolve to a name", "15", "no-hosts and dhcp-ignore-names", .run = siege_claim,
     .argument = "reverse", .flags = PROVE},
    {"C74", "The box has no search domain", "15", "dns.mode=none", .run = siege_claim, .argument = "search",
     .flags = PROVE},
    {"C75", "The resolver does not tell its version", "18", "no-ident", .run = siege_claim,
     .argument = "chaos version.bind", .flags = PROVE},
    {"C76", "The resolver does not tell its upstream servers", "18", "no-ident", .run = siege_claim,
     .argument = "chaos servers.bind", .flags = PROVE},
    {"C77", "What a sibling looked up cannot be told from the cache", "19", "cache-size=0", .run = siege_claim,
     .argument = "cache", .flags = PEER, .budget = 12000},
    {"C78", "A box cannot plant a name through DHCP", "15", "dhcp-ignore-names", .run = siege_claim,
     .argument = "plant", .flags = ALONE, .budget = 15000},

    /* A sibling. */
    {"C80", "A box does not reach a sibling over TCP", "14", "port isolation, the bridge's forward drop, F1",
     EXPECT_SILENCE, "box: connect {peer.ip} {port}" TRY, "host: connect {peer.ip} {port} --echo" TRY, PEER_TCP,
     .flags = PEER},
    {"C81", "A box does not reach a sibling over UDP", "14", "port isolation, the bridge's forward drop, F1",
     EXPECT_SILENCE, "box: udp {peer.ip} {port}" SHORT, "host: udp {peer.ip} {port}" SHORT, PEER_UDP, .flags = PEER},
    {"C82", "A box does not ping a sibling", "14", "port isolation, the bridge's forward drop, F1", EXPECT_SILENCE,
     "box: icmp {peer.ip}" SHORT, "host: icmp {peer.ip}" SHORT, .flags = PEER},
    {"C83", "A sibling does not answer ARP", "14", "port isolation, the bridge's forward drop", EXPECT_SILENCE,
     "box: arp who-has {peer.ip} --timeout 1200", "host: arp who-has {peer.ip} --interface boxnet --timeout 1200",
     .flags = PEER},
    FRAME("C84", "frame of an experimental type", "raw {peer.mac} --count 3"),
    FRAME("C85", "broadcast frame", "raw broadcast --count 3"),
    FRAME("C86", "IP packet in a frame to its MAC", "raw {peer.mac} --ip {peer.ip} --proto udp --port 9 --count 3"),
    FRAME("C87", "frame with VLAN tag 0", "raw {peer.mac} --vlan 0 --count 3"),
    FRAME("C88", "frame with VLAN tag 1", "raw {peer.mac} --vlan 1 --count 3"),
    FRAME("C89", "frame with VLAN tag 100", "raw {peer.mac} --vlan 100 --count 3"),
    FRAME("C90", "frame with VLAN tag 4095", "raw {peer.mac} --vlan 4095 --count 3"),
    FRAME("C91", "frame with two VLAN tags", "raw {peer.mac} --vlan 100,200 --outer-type 0x88a8 --count 3"),
    FRAME("C92", "SNAP frame", "raw {peer.mac} --snap --count 3"),
    FRAME("C93", "LLDP frame", "raw 01:80:c2:00:00:0e --lldp --count 3"),
    FRAME("C94", "PPPoE frame", "raw {peer.mac} --ethertype 0x8863 --count 3"),
    FRAME("C95", "MPLS frame", "raw {peer.mac} --ethertype 0x8847 --count 3"),
    FRAME("C96", "EAPOL frame", "raw {peer.mac} --ethertype 0x888e --count 3"),
    FRAME("C97", "multicast frame", "raw 01:00:5e:00:00:fb --ip 224.0.0.251 --proto udp --port 5353 --count 3"),
    {"C98", "No UDP broadcast reaches a sibling", "14", "port isolation, the bridge's forward drop", EXPECT_SILENCE,
     "box: multicast {broadcast} {port} --timeout 700", "host: udp {peer.ip} {port}" SHORT, PEER_UDP, .flags = PEER},
    {"C99", "No packet to a sibling turns back at the gateway", "6", "F1: no hairpin", EXPECT_SILENCE,
     "box: raw gateway --ip {peer.ip} --proto udp --port {port} --count 3", "host: udp {peer.ip} {port}" SHORT,
     PEER_UDP, .flags = PEER},
    {"C100", "A spoofed query does not send the resolver's answer to a sibling", "10", "the armed set, ipv4_filtering",
     EXPECT_SILENCE, "box: dns {token}.example.com --server {gateway} --forge-source {peer.ip} --forge-port {port}",
     "host: udp {peer.ip} {port}" SHORT, PEER_UDP, .flags = PEER},
    {"C101", "ARP does not take a sibling's address away", "11", "ipv4_filtering and the armed pairs",
     .run = siege_claim, .argument = "arp", .flags = PEER | ALONE, .budget = 15000},
    {"C102", "VLAN-tagged ARP does not take a sibling's address away", "11", "ipv4_filtering and the armed pairs",
     .run = siege_claim, .argument = "arp-vlan", .flags = PEER | ALONE, .budget = 15000},
    {"C103", "Flooding with a sibling's MAC captures nothing", "12", "a sticky entry, learning off", .run = siege_claim,
     .argument = "flood", .flags = PEER | ALONE, .budget = 15000},
    {"C104", "Flooding with MACs does not grow the bridge's table", "13", "learning off", .run = siege_claim,
     .argument = "table", .flags = ALONE, .budget = 12000},
    {"C105", "A box cannot play the DHCP server of a sibling", "16", "port isolation, the bridge's forward drop",
     .run = siege_claim, .argument = "rogue", .flags = PEER | ALONE, .budget = 20000},
    {"C106", "A box gets no lease but its own", "16", "dhcp-ignore=tag:!known", .run = siege_claim,
     .argument = "starve", .flags = ALONE, .budget = 15000},

    /* Spoofing towards the internet. */
    SPOOFED("C110", "8", "No packet leaves with a LAN source address", "P3", "{lan.stranger}"),
    SPOOFED("C111", "8", "No packet leaves with a public source address that is not ours", "P3", "8.8.4.4"),
    SPOOFED("C112", "9", "No packet leaves with a sibling's source address", "ipv4_filtering, the armed set",
            "{peer.ip}"),
    SPOOFED("C113", "8", "No packet leaves with the gateway's source address", "P4", "{gateway}"),
    {"C114", "No packet leaves with a MAC that is not the box's", "12", "mac_filtering, the armed set", EXPECT_SILENCE,
     "box: raw gateway --source-mac 02:de:ad:be:ef:01 --ip {web} --proto udp --port 7 --count 3 --wait --timeout 900",
     "box: udp {web} 7" SHORT, .flags = PROVE},
    {"C115", "A spoofed query does not send the resolver's answer to the LAN", "10", "P3", EXPECT_SILENCE,
     "box: dns {token}.example.com --server {gateway} --forge-source {lan.2} --forge-port {port}",
     "host: udp {lan.2} {port}" SHORT, WORLD_UDP, .flags = PROVE},

    /* IPv6, switched on by hand. */
    {"C120", "IPv6 by hand: this host's link-local address does not answer", "20", "P2, disable_ipv6",
     .run = siege_claim, .argument = "v6-gateway", .flags = ALONE, .budget = 15000},
    {"C121", "IPv6 by hand: no neighbour answers", "20", "P2, the bridge's forward drop", .run = siege_claim,
     .argument = "v6-neighbours", .flags = ALONE | PEER, .budget = 15000},
    {"C122", "IPv6 by hand: the internet does not answer", "20", "P2", .run = siege_claim, .argument = "v6-internet",
     .flags = ALONE, .budget = 15000},
    {"C123", "IPv6 by hand: no router advertisement reaches a sibling", "20", "the bridge's forward drop",
     .run = siege_claim, .argument = "v6-advertise", .flags = ALONE | PEER, .budget = 15000},

    /* From outside into a box. */
    {"C125", "No packet from the uplink reaches a box", "24", "NAT without a way in", EXPECT_SILENCE,
     "world: raw {uplink.mac} --interface uplink --ip {box.ip} --proto udp --port {port} --count 3",
     "host: udp {box.ip} {port}" SHORT, "box: listen udp --echo"},
    {"C126", "No packet from the LAN reaches a box", "24", "NAT without a way in", EXPECT_SILENCE,
     "world: raw {lan.mac} --interface lan --ip {box.ip} --proto udp --port {port} --count 3",
     "host: udp {box.ip} {port}" SHORT, "box: listen udp --echo"},

    /* The walls, one by one. */
    WALL("C130", "The watcher runs", "watcher"),
    WALL("C131", "The static tables stand as they must", "static"),
    WALL("C132", "The owned tables stand as they must", "owned"),
    WALL("C133", "The box's port is armed with its own MAC and address", "armed"),
    WALL("C134", "Port isolation is on in the kernel, on every port", "isolated"),
    WALL("C135", "No port learns addresses", "learning"),
    WALL("C136", "The box's MAC is bound to its port", "sticky"),
    WALL("C137", "The daemon's MAC filter of the box is loaded", "mac"),
    WALL("C138", "The daemon's address filter of the box is loaded", "address"),
    WALL("C139", "The bridge's parameters are as they must be", "settings"),
    WALL("C140", "Frames to reserved addresses do not write the bridge's table", "linklocal"),

    /* What disturbs everything else comes last. */
    {"C145", "With a dead watcher a new port passes nothing", NULL, "fail closed: an un-armed port is dropped",
     .run = siege_claim, .argument = "watcher", .flags = ALONE, .budget = 60000},
    {"C146", "One box holds at most 2,000 flows", NULL, "ct count", .run = siege_claim, .argument = "flows",
     .flags = ALONE, .budget = 25000},
    {"C147", "A restricted user's box is behind the same walls", NULL, "the armed set", .run = siege_claim,
     .argument = "restricted", .flags = ALONE, .budget = 90000},
    {"C148", "Docker in a box runs a container with a network, behind the box's walls", NULL, "the box's own port",
     .run = nested_claim, .budget = 240000},
};

const struct claim_table isolation_table = {
    .phase = PHASE_ISOLATION,
    .title = "attacks from a box, and into one",
    .claims = claims,
    .count = ARRAY_LENGTH(claims),
    .budget = 9000,
};
