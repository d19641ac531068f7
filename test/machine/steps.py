"""The steps of the check on a whole machine, in their order. Each returns what it saw, or raises guest.Failed."""

import glob
import os
import re
import shutil
import time

from guest import ROOT, call, expect

IMAGES = "/var/cache/box/images"


# The package ---------------------------------------------------------------------------------------------------------

def package(guest):
    """build the Debian package, older and newer, and let lintian judge it"""
    source = os.path.join(guest.scratch, "box")
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(source)
    listed = call(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], 60).stdout.split("\0")
    for name in listed:
        if name and os.path.isfile(os.path.join(ROOT, name)):
            os.makedirs(os.path.dirname(os.path.join(source, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(source, name))
    # The unit tests are ./check's, on this very tree.
    done = call(["nice", "-n", "19", "dpkg-buildpackage", "-us", "-uc", "-b", "-j2", "-Pnocheck"], 1200, cwd=source,
                env=dict(os.environ, DEB_BUILD_OPTIONS="nocheck"))
    expect(done.returncode == 0, "dpkg-buildpackage failed: " + done.stdout[-800:])
    built = glob.glob(os.path.join(guest.scratch, "box_*_*.deb"))
    expect(len(built) == 1, "dpkg-buildpackage left %s" % built)
    judged = call(["lintian", "--fail-on", "error,warning", *glob.glob(os.path.join(guest.scratch, "*.changes"))], 300)
    expect(judged.returncode == 0, "lintian: " + judged.stdout)
    content = call(["dpkg-deb", "--contents", built[0]], 60).stdout
    for path in ("usr/bin/box", "usr/libexec/box/box-probe", "usr/share/box/templates/blank/box.env", "man1/box.1.gz",
                 "systemd/system/box-firewall.service", "bash-completion/completions/box", "vendor_completions.d/box.fish",
                 "site-functions/_box"):
        expect(path in content, "the package holds no %s" % path)
    # The same content under an older version: what an upgrade comes from.
    old, tree = os.path.join(guest.scratch, "box-old.deb"), os.path.join(guest.scratch, "old")
    shutil.rmtree(tree, ignore_errors=True)
    call(["dpkg-deb", "-R", built[0], tree], 60)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as text:
        changed = re.sub(r"^Version: .*$", "Version: 0.0.9", text.read(), flags=re.M)
    with open(control, "w", encoding="utf-8") as text:
        text.write(changed)
    call(["dpkg-deb", "-b", tree, old], 60)
    shutil.copy(built[0], os.path.join(guest.scratch, "box-new.deb"))
    return "lintian clean, %d KiB" % (os.path.getsize(built[0]) // 1024)


def up(guest):
    """bring up a machine with the images of the cache at hand"""
    for kind in ([], ["--vm"]):
        done = call([box_of_tree(guest), "image", "build", "--no-import", *kind], 1800)
        expect(done.returncode == 0, "box image build --no-import: " + done.stdout[-600:])
    begun = time.monotonic()
    guest.up(IMAGES)
    guest.copy(os.path.join(guest.scratch, "box-old.deb"), os.path.join(guest.scratch, "box-new.deb"))
    seen = guest.sh("uname -r; systemctl --failed --no-legend | wc -l").split()
    expect(seen[1] == "0", "units failed: " + guest.sh("systemctl --failed --no-legend"))
    return "kernel %s, up after %.0f s" % (seen[0], time.monotonic() - begun)


def box_of_tree(guest):
    """The program of the package itself, unpacked: what builds the image is what will look for it."""
    return os.path.join(guest.scratch, "old", "usr", "bin", "box")


def install(guest):
    """install the older version with apt, from a file, without a network"""
    guest.sh("DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends /root/box-old.deb", 300)
    expect(guest.sh("box version").startswith("box "), "box version says nothing of itself")
    guest.sh("box help >/dev/null && man -w box 2>/dev/null || test -s /usr/share/man/man1/box.1.gz")
    status, _ = guest.try_sh("systemctl is-enabled --quiet box-firewall.service")
    expect(status != 0, "the package enabled the unit before anybody asked for boxes")
    return "the unit is there and not enabled"


# The host ------------------------------------------------------------------------------------------------------------

def setup(guest):
    """box setup-host, and again: nothing to change"""
    first = guest.seconds("box setup-host", 600)
    again = guest.sh("box setup-host --json", 300)
    expect('"changes":[]' in re.sub(r"\s", "", again), "a second setup-host found something to change: " + again[-600:])
    guest.sh("systemctl is-active --quiet box-firewall && systemctl is-enabled --quiet box-firewall")
    expect("qemu" in guest.sh("incus query /1.0 | grep '\"driver\"'"), "the daemon has no VM driver")
    return "%.0f s, second run changes nothing; unit active and enabled" % first


def walls(guest):
    """what the lab's kernel has not: meta ibrname in the bridge table, VLAN filtering on the bridge"""
    table = guest.sh("nft list table bridge box")
    for rule in ('meta ibrname "boxnet" drop', 'meta obrname "boxnet" drop'):
        expect(rule in table, "no `%s` in: %s" % (rule, table))
    expect("box-owned" in guest.sh("nft list tables"), "the owned copy is not there")
    return "both rules in force on " + guest.sh("nft --version").split("(")[0].strip()


def mint(guest):
    """import the image from the cache and mint two container boxes from it"""
    guest.sh("mkdir -p %s && cp /media/given/* %s/" % (IMAGES, IMAGES), 300)
    imported = guest.seconds("box image build", 900)
    minted = guest.seconds("box new --name one --container --memory 512MiB --cpu 1 --wait 1800", 2400)
    second = guest.seconds("box new --name two --container --wait 1800", 2400)
    expect(guest.sh("box exec one -- sh -c 'echo $HOME'").strip().startswith("/home/"), "exec does not land in a home")
    return "import %.0f s, first box %.0f s, second %.0f s" % (imported, minted, second)


def limits(guest):
    """limits.memory and limits.cpu are enforced, not only accepted"""
    maximum = guest.sh("cat /sys/fs/cgroup/lxc.payload.one/memory.max").strip()
    expect(maximum == str(512 << 20), "memory.max is " + maximum)
    expect(guest.sh("box exec one -- nproc").strip() == "1", "the box sees more than its one processor")
    status, output = guest.try_sh("box exec one -- python3 -c 'x = bytearray(800 << 20); print(len(x))'", 300)
    expect(status == 137, "800 MiB in a box of 512 MiB ended with %d: %s" % (status, output))
    killed = re.search(r"oom_kill (\d+)", guest.sh("cat /sys/fs/cgroup/lxc.payload.one/memory.events"))
    expect(killed and int(killed.group(1)) > 0, "the kernel counts no kill for memory")
    return "800 MiB in 512 MiB: killed (137, oom_kill %s); nproc 1" % killed.group(1)


def apparmor(guest):
    """every process of a box is confined by AppArmor, and what the profile denies is denied"""
    found = guest.sh("cat /proc/$(incus query /1.0/instances/one/state | sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p')/attr/current")
    expect(found.startswith("incus-one_") and "(enforce)" in found, "the box's first process runs as: " + found)
    status, output = guest.try_sh("box exec one -- sudo sh -c 'echo 1 >/proc/sys/kernel/sysrq'")
    expect(status != 0 and "denied" in output, "sysrq could be written: " + output)
    return found.strip()


# Isolation -----------------------------------------------------------------------------------------------------------

def drill(guest, phases, budget):
    """Runs the drill on the machine itself; its own judgement decides."""
    status, output = guest.try_sh("box drill --host --yes --container --wait 1800 --phase %s --json /root/drill.json 2>&1" % phases, budget)
    lines = [line for line in output.strip().splitlines() if line.strip()]
    counts = guest.json("python3 -c 'import json; print(json.dumps(json.load(open(\"/root/drill.json\"))[\"counts\"]))'") if status in (0, 1) else {}
    broken = [line.strip() for line in lines if "BROKEN" in line][:6]
    unjudged = guest.try_sh("python3 -c 'import json\nfor c in json.load(open(\"/root/drill.json\"))[\"claims\"]:\n"
                            " if c[\"verdict\"] == \"NOT JUDGED\": print(c[\"id\"], c[\"reason\"])'")[1] if counts else ""
    expect(status == 0, "box drill --phase %s ended with %d: %s" % (phases, status, " / ".join(broken or lines[-8:])))
    expect(counts.get("HOLDS", 0) >= 60 or phases != "ABC", "only %s" % counts)
    return "%s; not judged: %s" % (counts, "; ".join(unjudged.strip().splitlines()[:12]) or "none")


def claims(guest):
    """the drill's phases A, B and C on this machine"""
    return drill(guest, "ABC", 5400)


def reach(guest, name="one"):
    """From inside a box: (the web answers, the host's LAN answers). A LAN that answers the host itself is the control."""
    web, _ = guest.try_sh("box exec %s -- curl -s -m 20 -o /dev/null http://web.example.com/" % name, 120)
    control, _ = guest.try_sh("python3 -c 'import urllib.request; urllib.request.urlopen(\"http://192.168.50.20/\", timeout=20)'", 120)
    expect(control == 0, "the LAN does not answer the host itself: silence from a box would mean nothing")
    lan, _ = guest.try_sh("box exec %s -- curl -s -m 5 -o /dev/null http://192.168.50.20/" % name, 120)
    return web == 0, lan == 0


def wait_reach(guest, name="one"):
    """Until the box has the web; and at no moment the LAN."""
    deadline = time.monotonic() + 900
    while True:
        web, lan = reach(guest, name)
        expect(not lan, "the box reaches the LAN")
        if web:
            return
        expect(time.monotonic() < deadline, "the box has no web after 900 s: " + guest.sh("box firewall show; box list"))


def nftables(guest):
    """nftables.service started and stopped under running boxes: the walls come back before anything passes"""
    expect(reach(guest) == (True, False), "before: (web, LAN) is %s" % (reach(guest),))
    seen = []
    for verb in ("start", "stop"):
        guest.sh("systemctl %s nftables.service" % verb)
        tables = guest.sh("nft list tables")
        expect("bridge box-owned" in tables, "after nftables.service %s the owned walls are gone: %s" % (verb, tables))
        deadline = time.monotonic() + 30
        while "table inet box\n" not in tables + "\n":
            expect(time.monotonic() < deadline, "30 s after nftables.service %s the static walls are not back" % verb)
            tables = guest.sh("nft list tables")
        _, lan = reach(guest)
        expect(not lan, "after nftables.service %s a box reaches the LAN" % verb)
        expect("as they must be" in guest.sh("box firewall show"), "box firewall show: " + guest.sh("box firewall show"))
        seen.append(verb)
    shown = guest.sh("box firewall show")
    expect("filtering) is not live" in shown, "Incus's own filters went with the flush, and the ports stayed armed: " + shown)
    # Incus lays neither NAT nor filters again by itself; setup-host has it do so.
    mended = guest.seconds("box setup-host", 600)
    wait_reach(guest)
    return ("owned walls outlived the flush at %s, static ones came back, ports were disarmed while Incus's filters were gone; "
            "box setup-host mended it in %.0f s" % (" and ".join(seen), mended))


# The boot ------------------------------------------------------------------------------------------------------------

def reboot(guest):
    """after a reboot the walls stand before the daemon starts, autostart boxes come back, isolation holds"""
    guest.sh("incus config set one boot.autostart true; incus config set two boot.autostart false")
    begun = time.monotonic()
    guest.reboot()
    order = dict(line.split("=", 1) for line in guest.sh(
        "systemctl show -p ActiveEnterTimestampMonotonic box-firewall.service; "
        "systemctl show -p ExecMainStartTimestampMonotonic incus.service").splitlines() if "=" in line)
    stood, started = int(order["ActiveEnterTimestampMonotonic"]), int(order["ExecMainStartTimestampMonotonic"])
    expect(0 < stood < started or (stood > 0 and started == 0),
           "the walls stood at %.1f s after the boot, the daemon started at %.1f s" % (stood / 1e6, started / 1e6))
    deadline = time.monotonic() + 900
    while guest.try_sh("box exec one -- true", 120)[0] != 0:
        expect(time.monotonic() < deadline, "the autostart box is not back after 900 s: " + guest.sh("box list"))
    expect("one" in guest.sh("incus list -f csv -c n status=running"), "one does not run")
    expect("two" not in guest.sh("incus list -f csv -c n status=running"), "two runs although nobody asked")
    wait_reach(guest)
    return "walls at %.1f s, daemon at %.1f s after the boot; box back, %.0f s in all" % (
        stood / 1e6, started / 1e6, time.monotonic() - begun)


def judged(guest):
    """box doctor finds a healthy host after the boot"""
    status, output = guest.try_sh("box doctor 2>&1", 300)
    expect(status == 0, "box doctor ended with %d: %s" % (status, output[-900:]))
    return output.strip().splitlines()[-1]


def again(guest):
    """the isolation claims (phase C) hold again after the reboot"""
    return drill(guest, "C", 3600)


# Life ----------------------------------------------------------------------------------------------------------------

def vm(guest):
    """a VM box from box's own image: booted by its own kernel, the agent answering, isolation measured from inside"""
    imported = guest.seconds("box image build --vm", 1200)
    minted = guest.seconds("box new v --vm --memory 1GiB --cpu 2 --wait 3600", 4500)
    expect("VIRTUAL-MACHINE" in guest.sh("incus list -f csv -c nt").split("v,")[1][:16], "v is no VM")
    host, inside = guest.sh("uname -r; box exec v -- uname -a", 300).splitlines()[:2]
    expect("Linux v " in inside, "not the VM's own name: " + inside)
    grown = int(guest.sh("box exec v -- sh -c 'df --output=size -k / | tail -n 1'", 300))
    expect(grown > 4 << 20, "the root file system has %d KiB: it did not grow" % grown)
    ports = guest.sh("box firewall show")
    expect(re.search(r"^tap\w+ .* yes$", ports, re.M), "no armed port of a VM: " + ports)
    wait_reach(guest, "v")
    return "import %.0f s, minted in %.0f s, root grown to %d MiB, tap port armed, web and no LAN; machine's kernel %s" % (
        imported, minted, grown >> 10, host)


def proof(guest):
    """the isolation claims from inside the VM box"""
    status, output = guest.try_sh("box prove v --json 2>&1", 900)
    expect(status == 0, "box prove v ended with %d: %s" % (status, output[-900:]))
    counts = {}
    for verdict in re.findall(r'"verdict": *"([A-Z ]+)"', output):
        counts[verdict] = counts.get(verdict, 0) + 1
    expect(counts.get("HOLDS", 0) > 20, "box prove v judged %s: %s" % (counts, output[-600:]))
    return str(counts)


def vmlife(guest):
    """a VM box is stopped, started, and removed"""
    down = guest.seconds("box down v", 600)
    begun = time.monotonic()
    guest.sh("box start v", 600)
    deadline = time.monotonic() + 1800
    while guest.try_sh("box exec v -- true", 120)[0] != 0:
        expect(time.monotonic() < deadline, "the VM does not answer 1800 s after its start")
    again = time.monotonic() - begun
    guest.sh("box rm v --force", 300)
    expect("v" not in guest.sh("incus list -f csv -c n").split(), "v is still there")
    return "down %.0f s, answering %.0f s after start" % (down, again)


def upgrade(guest):
    """upgrade the package with a box running: same boot, not one lost answer, a new watcher"""
    identity = "box exec one -- cat /proc/sys/kernel/random/boot_id; cat /proc/$(systemctl show -P MainPID box-firewall)/stat | cut -d' ' -f1"
    before = guest.sh(identity).split()
    guest.sh("box exec one -- sudo sh -c 'ping -i 0.2 -c 300 1.1.1.1 >/tmp/ping 2>&1 &'")
    spent = guest.seconds("DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends /root/box-new.deb", 300)
    expect("0.0.9" not in guest.sh("dpkg-query -W box"), "the older version is still there")
    after = guest.sh(identity).split()
    expect(after[0] == before[0], "the box was rebooted")
    expect(after[1] != before[1], "the watcher is still the older one")
    lost = guest.sh("box exec one -- sh -c 'while pgrep ping >/dev/null; do sleep 1; done; cat /tmp/ping'", 300)
    counted = re.search(r"(\d+) packets transmitted, (\d+) received", lost)
    expect(counted and counted.group(1) == counted.group(2), "pings during the upgrade: " + lost[-300:])
    expect("as they must be" in guest.sh("box firewall show"), guest.sh("box firewall show"))
    return "%.0f s; %s of %s pings answered meanwhile, boot id unchanged, watcher restarted" % (
        spent, counted.group(2), counted.group(1))


def users(guest):
    """a member of incus-admin works without sudo; a stranger is told what to do"""
    guest.sh("id ann >/dev/null 2>&1 || useradd -m -G incus-admin -s /bin/bash ann; id bob >/dev/null 2>&1 || useradd -m -s /bin/bash bob")
    as_ann = "runuser -l ann -c '%s'"
    guest.sh(as_ann % "box list")
    expect(guest.sh(as_ann % "box exec one -- id -un").strip() != "root", "exec lands in root")
    guest.sh(as_ann % "box down two --force; box start two", 900)
    status, told = guest.try_sh("runuser -l bob -c 'box list'")
    expect(status == 1 and "incus-admin" in told and "usermod" in told, "bob was told (status %d): %s" % (status, told))
    return "told to a stranger: " + " / ".join(told.split("\n"))


def removal(guest):
    """removing the package leaves boxes and walls alone and says so; installed again it finds them"""
    said = guest.sh("apt-get remove -q -y box 2>&1", 300)
    expect("teardown-host" in said, "the removal does not name teardown-host: " + said[-500:])
    tables = guest.sh("nft list tables; incus list -f csv -c ns")
    expect("inet box" in tables and "one" in tables, "something went with the package: " + tables)
    guest.sh("DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends /root/box-new.deb && box setup-host", 600)
    guest.sh("box exec one -- true")
    return "walls and boxes stayed"


def teardown(guest):
    """teardown-host and purge leave nothing of box's"""
    guest.sh("box rm one two --force || { box rm one --force && box rm two --force; }", 600)
    status, output = guest.try_sh("box teardown-host --yes 2>&1", 900)
    expect(status == 0, "box teardown-host --yes ended with %d: %s" % (status, output[-900:]))
    left = guest.sh("nft list tables | grep box; ip -o link show boxnet 2>/dev/null; incus network list -f csv | grep boxnet; "
                    "incus profile list -f csv | grep box-net; incus network acl list -f csv | grep box-isolate; "
                    "systemctl is-enabled box-firewall.service 2>/dev/null | grep enabled; ls -d /run/box 2>/dev/null; true")
    expect(left.strip() == "", "left behind: " + left)
    said = guest.sh("apt-get purge -q -y box 2>&1 </dev/null", 300)
    expect(guest.try_sh("test -e /usr/bin/box -o -e /usr/libexec/box -o -e /usr/share/box")[0] != 0, "files of the package stayed")
    return "purge said: " + " / ".join(line for line in said.splitlines() if line.startswith("box:"))


STEPS = {
    "package": package, "up": up, "install": install, "setup": setup, "walls": walls, "mint": mint, "limits": limits,
    "apparmor": apparmor, "claims": claims, "nftables": nftables, "reboot": reboot, "doctor": judged, "again": again,
    "upgrade": upgrade, "users": users, "vm": vm, "proof": proof, "vmlife": vmlife, "removal": removal, "teardown": teardown,
}
GROUND = ["package", "up", "install", "setup"]
