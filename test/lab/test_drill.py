"""The drill against a real daemon: green where the stack stands, never a pass where the instrument is broken, clean after
an interruption.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import drilling
import harness
import held
import older

LAB = harness.Lab()
GARBAGE = """cat > /tmp/drill-fake.$$ <<'FAKE'
#!/bin/sh
%s
FAKE
chmod 755 /tmp/drill-fake.$$
for box in "$DRILL_BOX_NAME" "$DRILL_PEER_NAME"; do
    for path in $(incus exec "$box" -- sh -c 'echo /var/tmp/box-probe-*' </dev/null); do
        incus file push --quiet --mode 755 --uid 0 --gid 0 /tmp/drill-fake.$$ "$box$path" </dev/null
    done
done
rm -f /tmp/drill-fake.$$
"""


def setUpModule():
    LAB.ready()


def drill_instances():
    return [row["name"] for row in LAB.query("/1.0/instances?recursion=1") or [] if row["name"].startswith("drill-")]


class Green(unittest.TestCase):
    """`box drill --lab`: a lab of its own, the whole rehearsal, the report in a browser."""

    @classmethod
    def setUpClass(cls):
        harness.build_image()
        cls.directory = tempfile.TemporaryDirectory(prefix="box-drill-")
        cls.page = Path(cls.directory.name) / "report.html"
        report = Path(cls.directory.name) / "report.json"
        began = time.monotonic()
        done = subprocess.run([harness.binary(), "drill", "--lab", "--answers", "--json", str(report), "--report", str(cls.page)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600, check=False,
                              env={**os.environ, "BOX_LAB_PROGRAM": harness.PROGRAM})
        cls.seconds = time.monotonic() - began
        cls.done = done
        cls.report = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        self.assertIsNotNone(self.report, self.done.stdout + self.done.stderr)

    def test_every_judged_claim_holds(self):
        broken = [c for c in self.report["claims"] if c["verdict"] == "BROKEN"]
        self.assertEqual([], [(c["id"], c["reason"]) for c in broken])
        self.assertEqual(0, self.done.returncode, self.done.stderr)

    def test_enough_claims_are_judged(self):
        holding = [c for c in self.report["claims"] if c["verdict"] == "HOLDS"]
        print("\n  %d hold, %d of them of isolation, in %.0f s" % (len(holding), sum(c["phase"] == "C" for c in holding), self.seconds))
        self.assertGreaterEqual(len(holding), 120)
        self.assertGreaterEqual(sum(c["phase"] == "C" for c in holding), 60)

    def test_what_is_not_judged_says_why(self):
        for claim in self.report["claims"]:
            self.assertTrue(claim["reason"], claim["id"])
            if claim["verdict"] == "HOLDS" and claim["phase"] == "C" and claim.get("row") and not claim["layer"]:
                self.assertTrue(claim["steps"], claim["id"])

    def test_answers_name_what_was_tested(self):
        for key in ("box", "instrument"):
            self.assertIn(self.report[key]["sha256"][:16], self.done.stdout)
        self.assertIn("NOT validated", self.done.stdout)
        self.assertRegex(self.done.stdout, r"Incus [0-9.]+, kernel [0-9.]+")

    def test_a_vm_is_said_to_be_missing_aloud(self):
        self.assertIn("VM", " ".join(self.report["notes"]))

    def test_nothing_of_the_lab_is_left(self):
        self.assertEqual([], [p.name for p in Path("/run/netns").glob("box-drill-[0-9]*")])

    def test_the_page_renders_without_a_script_error(self):
        browser = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        if browser is None:
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], stdin=subprocess.DEVNULL,
                           capture_output=True, check=True, timeout=600, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
            browser = shutil.which("chromium")
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=" + profile,
                 "--virtual-time-budget=2000", "--dump-dom", self.page.as_uri() + "#C10T"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120, check=False)
        self.assertEqual([], [line for line in done.stderr.splitlines() if "CONSOLE" in line])
        self.assertEqual(len(self.report["claims"]), len(re.findall(r"<details class=\"claim", done.stdout)))
        # The script ran: the claim that the address names was opened by it.
        self.assertRegex(done.stdout, r"<details class=\"claim holds\" id=\"C10T\" open")


class BrokenInstrument(unittest.TestCase):
    """Whatever is wrong with the instrument or the baseline, no attack is called repelled, and the drill ends."""

    CLAIMS = "C10T,C20,C41,C80,C84,C110"

    def check_nothing_holds(self, damage, seconds=300, expected=("NOT JUDGED",), claims=CLAIMS):
        began = time.monotonic()
        report = drilling.drill(LAB, "--claim", claims, damage=damage)
        took = time.monotonic() - began
        ids = claims.split(",")
        found = drilling.verdicts(report)
        message = drilling.describe(report, "C01", "C02", "C03", "C04", *ids)
        print("\n  %.0f s\n    %s" % (took, message.replace("\n", "\n    ")))
        for id in ids:
            self.assertIn(found[id], expected, message)
        self.assertLess(took, seconds, message)
        self.assertEqual([], drill_instances())
        return report

    def test_no_box_at_all(self):
        # Whatever is claimed of a box that could not be made is not known: not broken.
        report = drilling.drill(LAB, "--phase", "ABE", "--template", "no-such-template")
        found = drilling.verdicts(report)
        self.assertEqual([], [id for id, verdict in found.items() if verdict == "BROKEN"],
                         drilling.describe(report, *[id for id, verdict in found.items() if verdict == "BROKEN"]))
        for id in ("A01", "A03", "A04", "A05", "A18", "A19", "B01", "B13", "E01"):
            self.assertEqual("NOT JUDGED", found[id], drilling.describe(report, id))
        self.assertEqual([], drill_instances())

    def test_somebodys_older_generation(self):
        self.addCleanup(older.remove, LAB)
        older.stack(LAB)
        report = drilling.drill(LAB, "--phase", "M")
        found = {id: verdict for id, verdict in drilling.verdicts(report).items() if id.startswith("M")}
        self.assertEqual({"NOT JUDGED"}, set(found.values()), found)
        self.assertIn("not the drill's", drilling.describe(report, "M01"))
        self.assertIn("claudenet", str(LAB.query("/1.0/networks")))
        self.assertIn("claude-dev", str(LAB.query("/1.0/profiles")))

    def test_a_box_without_an_address(self):
        report = self.check_nothing_holds('incus exec "$DRILL_BOX_NAME" -- ip address flush dev eth0 </dev/null')
        self.assertIn("baseline", report["said"])
        self.assertEqual(1, report["status"])

    def test_a_box_without_a_route(self):
        self.check_nothing_holds('incus exec "$DRILL_BOX_NAME" -- ip route flush default </dev/null',
                                 expected=("NOT JUDGED",))

    def test_no_instrument_in_the_box(self):
        self.check_nothing_holds('for b in "$DRILL_BOX_NAME" "$DRILL_PEER_NAME"; do '
                                 'incus exec "$b" -- sh -c "rm /var/tmp/box-probe-*" </dev/null; done')

    def test_no_instrument_on_the_host(self):
        done = LAB.box("drill", "--host", "--yes", "--phase", "C", env={"BOX_PROBE": "/no/such/box-probe"})
        self.assertEqual(1, done.returncode)
        self.assertIn("instrument", done.stderr)
        self.assertEqual([], drill_instances())

    def test_an_instrument_that_floods(self):
        self.check_nothing_holds(GARBAGE % "yes '{\"verdict\":\"dropped\"}'", seconds=120)

    def test_an_instrument_that_hangs(self):
        self.check_nothing_holds(GARBAGE % "sleep 1000", seconds=180)

    def test_an_instrument_that_always_says_dropped(self):
        self.check_nothing_holds(GARBAGE % "echo '{\"probe\":\"x\",\"verdict\":\"dropped\",\"errno\":0,\"ms\":1,\"evidence\":{}}'", seconds=120)

    def test_an_instrument_that_holds_its_output_open(self):
        # What it says is said; that a child of it lives on changes nothing, and delays by a second at most.
        real = Path(harness.binary()).resolve().parent.parent.parent / "probe" / "box-probe"
        push = ('for box in "$DRILL_BOX_NAME" "$DRILL_PEER_NAME"; do incus file push --quiet --mode 755 %s '
                '"$box/var/tmp/real-probe" </dev/null; done' % real)
        report = drilling.drill(LAB, "--claim", "C10T,C41",
                                damage=GARBAGE % "(sleep 300 &)\nexec /var/tmp/real-probe \"$@\"" + push)
        found = drilling.verdicts(report)
        self.assertEqual({"C10T": "HOLDS", "C41": "HOLDS"}, {id: found[id] for id in ("C10T", "C41")},
                         drilling.describe(report, "C01", "C02", "C03", "C04", "C10T", "C41"))

    def test_a_wedged_box(self):
        self.check_nothing_holds('incus pause "$DRILL_BOX_NAME" </dev/null', seconds=180)

    def test_a_control_that_is_dead(self):
        self.addCleanup(LAB.run, ["ip", "route", "del", "blackhole", "10.20.0.5/32"])
        report = drilling.drill(LAB, "--claim", "C41,C42", damage="ip route add blackhole 10.20.0.5/32")
        found = drilling.verdicts(report)
        self.assertEqual({"C41": "HOLDS", "C42": "NOT JUDGED"}, {id: found[id] for id in ("C41", "C42")})
        self.assertIn("control failed", drilling.describe(report, "C42"))


class Interrupted(unittest.TestCase):
    def tearDown(self):
        drilling.drill(LAB, "--claim", "T01")
        self.assertEqual([], drill_instances())

    def start_until(self, phase, mark):
        process = drilling.start(LAB, "--phase", phase, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        for line in process.stderr:
            if mark in line:
                return process
        self.fail("it ended before \"%s\"" % mark)

    def drill_pids(self):
        found = LAB.run(["pgrep", "-f", "drill --host --yes"]).stdout.split()
        return [int(pid) for pid in found]

    def check_interrupted(self, phase, mark):
        process = self.start_until(phase, mark)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        self.assertEqual(1, process.wait(timeout=60))
        self.assertEqual([], drill_instances())

    def test_while_minting(self):
        self.check_interrupted("C", "minting")

    def test_in_the_surface(self):
        self.check_interrupted("B", "phase B")

    def test_in_the_isolation(self):
        self.check_interrupted("C", "phase C")

    def test_in_the_hardening(self):
        self.check_interrupted("D", "phase D")
        self.assertNotIn("drill-net", LAB.must(["incus", "network", "list", "-f", "csv"]).stdout)

    def check_killed(self, phase, mark, begun=drill_instances):
        process = self.start_until(phase, mark)
        held.Image.wait(begun, "nothing is made")
        LAB.run(["bash", "-c", "kill -9 %s" % " ".join(map(str, self.drill_pids()))])
        process.stderr.read()
        process.wait(timeout=30)
        left = drill_instances()
        self.assertNotEqual([], left, "nothing was left: this proves nothing")
        doctor = LAB.box("doctor")
        self.assertEqual(1, doctor.returncode, doctor.stdout)
        self.assertIn("a drill left", doctor.stdout)
        self.assertIn(left[0], doctor.stdout)
        report = drilling.drill(LAB, "--claim", "A01")
        self.assertIn("an earlier drill left", report["said"])
        self.assertEqual("HOLDS", drilling.verdicts(report)["A01"])
        self.assertEqual([], drill_instances())

    def test_killed_in_the_isolation(self):
        self.check_killed("C", "phase C")

    def test_killed_while_minting(self):
        self.check_killed("C", "minting")

    def test_killed_in_the_hardening(self):
        self.check_killed("D", "phase D", lambda: "drill-net" in LAB.must(["incus", "network", "list", "-f", "csv"]).stdout)
        self.assertNotIn("drill-net", LAB.must(["incus", "network", "list", "-f", "csv"]).stdout)

    def test_killed_in_the_migration(self):
        self.check_killed("M", "phase M", lambda: "claude-dev" in str(LAB.query("/1.0/profiles")))
        self.assertNotIn("claude", LAB.must(["sh", "-c", "incus network list -f csv; incus profile list -f csv; nft list tables"]).stdout)

    def test_one_at_a_time(self):
        process = self.start_until("C", "minting")
        done = LAB.box("drill", "--host", "--yes", "--phase", "A")
        self.assertEqual(1, done.returncode)
        self.assertIn("another drill is running", done.stderr)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.wait(timeout=60)

    def test_a_create_that_goes_on_is_waited_for(self):
        """A mint whose drill was killed goes on in the daemon, which refuses to remove it meanwhile."""
        name = "drill-a-0held0"
        LAB.must(["sh", "-c", "mkdir -p /var/lib/box/drill/made && touch /var/lib/box/drill/made/instance." + name])
        with held.Image(LAB) as image:
            image.create(name)
            process = drilling.start(LAB, "--claim", "T01", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            held.assert_waits(self, process)
            image.release()
            said = process.communicate(timeout=120)[0]
        self.assertEqual(0, process.returncode, said)
        self.assertNotIn("could not be removed", said)
        self.assertEqual([], drill_instances())

    def test_another_box_is_left_alone(self):
        LAB.must([harness.binary(), "new", "drill-mine"], timeout=180)
        self.addCleanup(LAB.box, "rm", "--force", "drill-mine")
        drilling.drill(LAB, "--claim", "A01")
        self.assertEqual(["drill-mine"], drill_instances())
        LAB.box("rm", "--force", "drill-mine")


class Consent(unittest.TestCase):
    def refused(self, *arguments, status=2, says=""):
        done = LAB.box("drill", *arguments)
        self.assertEqual(status, done.returncode, done.stderr)
        self.assertRegex(done.stderr, says)
        self.assertEqual("", done.stdout)

    def test_a_host_is_not_drilled_unasked(self):
        self.refused("--host", says="--yes")

    def test_unknown_phases_and_claims(self):
        self.refused("--host", "--yes", "--phase", "X", says="no phases")
        self.refused("--host", "--yes", "--claim", "C999", says="no claim")
        self.refused("--host", "--lab", says="exclude")

    def test_the_list_needs_nothing(self):
        done = LAB.box("drill", "--list")
        self.assertEqual(0, done.returncode)
        self.assertGreaterEqual(len(re.findall(r"^   [ABCDEMT][0-9]", done.stdout, re.M)), 120)


class Prove(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        LAB.must([harness.binary(), "new", "proved"], timeout=180)

    @classmethod
    def tearDownClass(cls):
        LAB.box("rm", "--force", "proved")

    def test_a_receipt_in_ten_seconds(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "receipt.json"
            began = time.monotonic()
            done = LAB.box("prove", "proved", "--receipt", str(path))
            took = time.monotonic() - began
            receipt = json.loads(path.read_text(encoding="utf-8"))
        print("\n  %s, %.1f s" % (receipt["counts"], took))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual("proved", receipt["subject"])
        self.assertEqual(0, receipt["counts"]["BROKEN"])
        self.assertGreaterEqual(receipt["counts"]["HOLDS"], 60)
        self.assertRegex(receipt["walls"]["digest"], r"^[0-9a-f]{64}$")
        self.assertEqual("", LAB.run(["incus", "exec", "proved", "--", "sh", "-c", "ls /var/tmp/box-probe-* 2>/dev/null"]).stdout)
        self.assertEqual(["proved"], [row["name"] for row in LAB.query("/1.0/instances?recursion=1") if row["name"] == "proved"])

    def test_a_lost_wall_is_told(self):
        self.addCleanup(drilling.mend, LAB)
        LAB.must(["bash", "-c", "kill -9 $(pgrep -f '[f]irewall watch')"])
        with tempfile.TemporaryDirectory() as directory:
            done = LAB.box("prove", "proved", "--receipt", str(Path(directory) / "r.json"))
        self.assertEqual(1, done.returncode)
        self.assertIn("C130", done.stdout)

    def test_what_is_no_running_box(self):
        done = LAB.box("prove", "nobody")
        self.assertEqual(1, done.returncode)
        self.assertIn("no such box", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
