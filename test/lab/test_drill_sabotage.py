"""Mutation test of the drill: each sabotage of the stack is caught by the claim that is meant for it.

Eight of them run in ./check; all of them with BOX_DRILL_ALL=1, and as many clean runs as BOX_DRILL_CLEAN says. What came of
each is appended to $BOX_DRILL_LOG, one line of JSON each. drill/long-check runs all of it and writes the section of
drill/RUNS.md.
"""

import json
import os
import time
import unittest

import drilling
import harness

LAB = harness.Lab()
ALL = bool(os.environ.get("BOX_DRILL_ALL"))
CLEAN_RUNS = int(os.environ.get("BOX_DRILL_CLEAN") or 0)

BOTH = '"$DRILL_BOX_PORT" "$DRILL_PEER_PORT"'
UNISOLATE = 'for p in %s; do bridge link set dev "$p" isolated off; done' % BOTH
UNFILTER = ('nft flush chain bridge incus "in.$DRILL_BOX_NAME.eth0"; '
            'nft flush chain bridge incus "fwd.$DRILL_BOX_NAME.eth0"')  # the daemon's own NIC filters

# The daemon's ACL stands behind several of our rules; without it they stand alone. Taken away while somebody watches.
NOACL = 'incus network unset boxnet security.acls </dev/null; sleep 0.5'

# name: (in ./check, damage, claims that must be BROKEN, claims that must still hold)
SABOTAGES = {
    "both layers between siblings gone": (True, NOACL + "; W; %s; nft flush chain bridge box forward; nft flush chain inet box forward; "
                                                "nft flush chain inet box postrouting" % UNISOLATE,
                                          ["C80", "C82", "C83", "C134", "C131"], ["C10T"]),
    "both layers gone, the third still there": (False, "W; %s; nft flush chain bridge box forward" % UNISOLATE,
                                                ["C83", "C134", "C131"], ["C80", "C82"]),
    "port isolation off, the drop still there": (True, "S; " + UNISOLATE, ["C134"], ["C80", "C83", "C84"]),
    "the bridge's drop gone, isolation still there": (True, "W; nft flush chain bridge box forward", ["C131"], ["C80", "C83", "C84"]),
    "reserved MACs let through": (True, "W; unrule inet box prerouting 01:80:c2; nft insert rule inet box prerouting accept",
                                  ["C20", "C131"], ["C41"]),
    "the resolver unpinned from no-hosts": (True, "unmasq '^no-hosts'", ["C68"], ["C69"]),
    "a foreign accept before ours": (True, NOACL + "; W; nft insert rule inet box input accept", ["C10U", "C131"], ["C84"]),
    "special-purpose ranges let through": (True, NOACL + "; W; unrule inet box forward '198.18.0.0/15'", ["C55", "C50"], ["C41", "C84"]),
    "the watcher dead": (True, "W", ["C130", "C132"], ["C84", "C41"]),
    "the watcher stopped": (False, "S", ["C130"], ["C84", "C41"]),
    "the uplink set and next hop not asked": (False, "W; unrule inet box forward '@uplink'", ["C59", "C60", "C48"], ["C41"]),
    "the input chain emptied": (False, NOACL + "; W; nft flush chain inet box input", ["C10U", "C131"], ["C84"]),
    "the inet table deleted": (False, "W; nft delete table inet box", ["C131", "C20"], ["C84"]),
    "public names may have private answers": (False, "unmasq '^stop-dns-rebind'", ["C69", "C71"], ["C68"]),
    "the resolver tells its version": (False, "unmasq '^no-ident'", ["C75"], ["C68"]),
    "the resolver caches": (False, "unmasq '^cache-size'", ["C77"], ["C68"]),
    "leases for everybody": (False, "unmasq '^dhcp-ignore='; W; %s; nft flush chain bridge box pre; nft add rule bridge box pre meta mark set 0x626f7800"
                             % UNFILTER, ["C106"], ["C84"]),
    "names from DHCP requests": (False, "unmasq '^dhcp-ignore-names'; incus network set boxnet dns.mode=dynamic </dev/null; sleep 1",
                                 ["C78"], ["C68"]),
    "ARP answered for every address": (False, "S; sysctl -qw net.ipv4.conf.boxnet.arp_ignore=0", ["C34", "C139"], ["C41"]),
    "loopback routed": (False, NOACL + "; W; "
                               "unrule inet box prerouting '127.0.0.0/8'; nft insert rule inet box input accept; "
                               "sysctl -qw net.ipv4.conf.boxnet.route_localnet=1", ["C24", "C139"], ["C41"]),
    "the daemon's MAC filter gone": (False, "S; " + UNFILTER, ["C137", "C138"], ["C114"]),
    "spoofed addresses let through": (False, "W; %s; nft flush chain bridge box pre; nft add rule bridge box pre meta mark set 0x626f7800; "
                                             "unrule inet box prerouting 'saddr !='" % UNFILTER, ["C110", "C111", "C112"], ["C84"]),
    "spoofed siblings let through": (False, "W; %s; nft flush chain bridge box pre; nft add rule bridge box pre meta mark set 0x626f7800"
                                     % UNFILTER, ["C112"], ["C111"]),
    "the MAC not bound to its port": (False, 'S; bridge link set dev "$DRILL_BOX_PORT" learning on; '
                                             'bridge fdb del "$DRILL_BOX_MAC" dev "$DRILL_BOX_PORT" master', ["C135", "C136"], ["C84"]),
    "MACs learnt from a flood": (False, 'W; %s; bridge link set dev "$DRILL_BOX_PORT" learning on' % UNFILTER, ["C104", "C135"], ["C84"]),
    "reserved frames write the table": (False, "S; ip link set boxnet type bridge no_linklocal_learn 0", ["C140"], ["C84"]),
    "answers to errors taken": (False, "W; nft insert rule inet box input ct state established,related accept", ["C32", "C33"], ["C41"]),
    "flows without a limit": (False, "W; unrule inet box forward 'ct count'", ["C146"], ["C41"]),
    "IPv6 on": (False, "W; sysctl -qw net.ipv6.conf.boxnet.disable_ipv6=0; ip -6 addr add \"$(python3 -c '"
                       "import sys; b=[int(x,16) for x in sys.argv[1].split(\":\")]; "
                       "print(\"fe80::%x:%xff:fe%02x:%x\" % ((b[0]^2)<<8|b[1], b[2], b[3], b[4]<<8|b[5]))' $DRILL_GATEWAY_MAC)/64\" dev boxnet nodad 2>/dev/null || true; "
                       + UNFILTER + "; nft flush chain bridge box pre; nft add rule bridge box pre meta mark set 0x626f7800; "
                       "nft flush chain inet box prerouting; nft insert rule inet box input accept", ["C120", "C139"], ["C84"]),
    "a range taken out of the special set": (False, NOACL + "; W; unrule inet box forward '198.18.0.0/15'; nft insert rule inet box forward ct direction original ip daddr "
                                                    "'{ 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 169.254.0.0/16 }' drop", ["C55", "C131"], ["C41"]),
    "a neighbour put into the uplink set": (False, "W; nft add element inet box uplink '{ \"eth0\" . 45.33.10.77 }'", ["C131"], ["C41"]),
    "no NAT": (False, "W; nft list ruleset | grep -q masquerade; incus network set boxnet ipv4.nat=false </dev/null; sleep 0.5", ["C02"], []),
    "no server for DHCP and DNS": (False, "kill -9 $(cat /var/lib/incus/networks/boxnet/dnsmasq.pid | sed -n 's/.*pid: *//p;/^[0-9]*$/p' | head -1)",
                                   ["C03"], []),
}


def setUpModule():
    LAB.ready()


def log(**row):
    path = os.environ.get("BOX_DRILL_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


class Sabotage(unittest.TestCase):
    def setUp(self):
        self.addCleanup(drilling.mend, LAB)

    def check_sabotage(self, name):
        _, damage, broken, held = SABOTAGES[name]
        began = time.monotonic()
        report = drilling.drill(LAB, "--claim", ",".join(broken + held), damage=damage)
        found = drilling.verdicts(report)
        seconds = time.monotonic() - began
        print("\n  %s (%.0f s)\n    %s" % (name, seconds, drilling.describe(report, *broken, *held).replace("\n", "\n    ")), flush=True)
        caught = all(found[id] == "BROKEN" for id in broken) and all(found[id] == "HOLDS" for id in held)
        log(sabotage=name, incus=report["host"]["incus"], caught=caught, seconds=round(seconds), held=held,
            evidence={c["id"]: [c["verdict"], c["reason"]] for c in report["claims"] if c["id"] in broken})
        message = "%s:\n%s" % (name, drilling.describe(report, *broken, *held))
        self.assertEqual({id: "BROKEN" for id in broken}, {id: found[id] for id in broken}, message)
        self.assertEqual({id: "HOLDS" for id in held}, {id: found[id] for id in held}, message)
        self.assertEqual(1, report["status"], message)


def add_case(name):
    def case(self):
        self.check_sabotage(name)
        self.assertIn(name, SABOTAGES)
    case.__doc__ = name
    setattr(Sabotage, "test_" + "".join(c if c.isalnum() else "_" for c in name), case)


ONLY = os.environ.get("BOX_DRILL_ONLY")
for title, row in SABOTAGES.items():
    if (ONLY and ONLY in title) or (not ONLY and (ALL or row[0])):
        add_case(title)


class Clean(unittest.TestCase):
    def no_false_alarm(self):
        for number in range(CLEAN_RUNS):
            report = drilling.drill(LAB, "--phase", "C")
            found = drilling.verdicts(report)
            broken = [id for id, verdict in found.items() if verdict == "BROKEN"]
            print("\n  clean run %d of %d: %s, %.0f s" % (number + 1, CLEAN_RUNS, report["counts"], report["seconds"]), flush=True)
            log(clean=number + 1, incus=report["host"]["incus"], counts=report["counts"], seconds=round(report["seconds"]), broken=broken)
            self.assertEqual([], broken, drilling.describe(report, *broken))


if CLEAN_RUNS:
    Clean.test_no_false_alarm = Clean.no_false_alarm


if __name__ == "__main__":
    unittest.main(verbosity=2)
