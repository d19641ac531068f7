"""Runs `box drill` in the tests' lab, with the world in reach, and reads its report.

    drilling.drill(LAB, "--claim", "C80,C84")                # the report, decoded
    drilling.drill(LAB, "--claim", "C80", damage="...bash...")
    drilling.verdicts(report)                                # {"C80": "HOLDS", ...}
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import harness

# What damage is written with. The watcher repairs what it can see: W kills it (the owned tables go with it), S stops it.
PRELUDE = """#!/bin/bash
set -eu
W() { kill -9 "$DRILL_BEFORE_WATCHER"; for i in $(seq 50); do nft list table inet box-owned >/dev/null 2>&1 || return 0; sleep 0.1; done; exit 9; }
S() { kill -STOP "$DRILL_BEFORE_WATCHER"; }
# Deletes the rules of a chain that match: unrule FAMILY TABLE CHAIN PATTERN
unrule() {
    local handles; handles=$(nft -a list chain "$1" "$2" "$3" | grep -E -- "$4" | sed -n 's/.*# handle //p')
    [ -n "$handles" ] || { echo "no rule like $4 in $1 $2 $3" >&2; exit 9; }
    for h in $handles; do nft delete rule "$1" "$2" "$3" handle "$h"; done
}
# Removes words from the network's raw.dnsmasq: unmasq PATTERN
unmasq() {
    local was; was=$(incus network get boxnet raw.dnsmasq </dev/null)
    printf '%s\\n' "$was" | grep -Ev -- "$1" > /tmp/drill-masq.$$
    [ "$was" != "$(cat /tmp/drill-masq.$$)" ] || { echo "no line like $1" >&2; exit 9; }
    incus network set boxnet "raw.dnsmasq=$(cat /tmp/drill-masq.$$)" </dev/null
    rm -f /tmp/drill-masq.$$
    sleep 0.5
}
"""


def world_descriptor(lab):
    """The world's network namespace, so that attacks and controls can come from outside the host."""
    return os.open("/run/netns/box-%s-world" % lab.name, os.O_RDONLY)


def start(lab, *arguments, env=None, **options):
    """`box drill --host --yes ARGUMENTS` as a process."""
    descriptor = world_descriptor(lab)
    try:
        return subprocess.Popen(
            lab.argv([harness.binary(), "drill", "--host", "--yes", *arguments]), pass_fds=[descriptor],
            stdin=subprocess.DEVNULL, env={**os.environ, "BOX_DRILL_WORLD_FD": str(descriptor), **(env or {})}, **options)
    finally:
        os.close(descriptor)


def drill(lab, *arguments, damage=None, env=None, timeout=400):
    """The report of a run that ended; its exit status is in report["status"], what it said in report["said"]."""
    with tempfile.TemporaryDirectory(prefix="box-drill-") as directory:
        report = Path(directory) / "report.json"
        words = ["--json", str(report), *arguments]
        if damage is not None:
            script = Path(directory) / "damage"
            script.write_text(PRELUDE + damage + "\n", encoding="utf-8")
            script.chmod(0o755)
            words += ["--damage", str(script)]
        process = start(lab, *words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = process.communicate(timeout=timeout)
        if not report.exists():
            raise RuntimeError("box drill ended with %d and wrote no report:\n%s" % (process.returncode, said.decode()))
        found = json.loads(report.read_text(encoding="utf-8"))
        found["status"] = process.returncode
        found["said"] = said.decode(errors="replace")
        return found


def verdicts(report):
    return {claim["id"]: claim["verdict"] for claim in report["claims"]}


def describe(report, *ids):
    """What the report says about those claims, for a failure's message."""
    return "\n".join("%s %s: %s" % (c["id"], c["verdict"], c["reason"]) for c in report["claims"] if c["id"] in ids)


def mend(lab):
    """Whatever damage was done: the watcher anew, the stack converged."""
    lab.run(["bash", "-c", "for p in $(pgrep -f '[f]irewall watch'); do kill -CONT $p; kill -9 $p; done; "
                           "true"])
    lab.must([harness.binary(), "setup-host"], timeout=120)
