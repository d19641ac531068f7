"""`box migrate-host`: boxes of the older generation move onto boxnet with all that they are, whatever interrupts it; then
its stack goes. Against a real daemon in the lab."""
import json
import signal
import unittest

import harness
import held
import older
import relayed

LAB = harness.Lab()
BOXES = older.Boxes(LAB)
PREFIX = "mig-"
NOTE = "user.box.migrating"


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    older.remove(LAB)


def tearDownModule():
    LAB.remove_boxes(PREFIX)
    older.remove(LAB)
    LAB.run(["incus", "image", "delete", older.ALIAS])


def instance(name):
    return LAB.query("/1.0/instances/" + name)


def migrate(*arguments, box=LAB.box, **options):
    return box("migrate-host", "--yes", "--grace", "0", *arguments, timeout=120, **options)


class Case(unittest.TestCase):
    def setUp(self):
        if "claude-dev" not in str(LAB.query("/1.0/profiles")):
            older.stack(LAB)
            BOXES.prepare()

    def tearDown(self):
        LAB.remove_boxes(PREFIX)

    def assert_older(self, name, status):
        row = instance(name)
        self.assertEqual((row["profiles"], row["status"]), (["claude-dev"], status))
        self.assertEqual(row["config"].get("user.claudebox"), "1")
        self.assertNotIn(NOTE, row["config"])
        self.assertNotIn("limits.memory", row["config"], "what came from the profile is the profile's again")
        return row

    def assert_moved(self, name, status):
        row = instance(name)
        self.assertEqual((row["profiles"], row["status"]), (["box-net"], status))
        self.assertEqual(row["config"].get("user.claudebox"), "1", "the tag stays what it was")
        self.assertNotIn(NOTE, row["config"])
        self.assertEqual(row["expanded_config"]["limits.memory"], older.LIMIT)
        self.assertEqual(row["expanded_devices"]["root"]["size"], "64MiB")
        nic = row["expanded_devices"]["eth0"]
        self.assertEqual([nic[key] for key in ("network", "security.port_isolation", "security.mac_filtering", "security.ipv4_filtering")],
                         ["boxnet", "true", "true", "true"])
        info = json.loads(LAB.box("info", name, "--json").stdout)
        self.assertEqual((info["user"], info["deviations"]), ("claude", []))
        return row


class Moving(Case):
    def test_a_running_one_keeps_all_and_runs_again(self):
        BOXES.make("mig-a", run=True)
        BOXES.make("mig-b")
        LAB.must(["incus", "exec", "mig-a", "--", "/bin/sh", "-c", "echo kept > /root/work"])
        before = instance("mig-a")
        asked = LAB.box("migrate-host", "--box", "mig-a")
        self.assertEqual((asked.returncode, asked.stdout), (2, ""))
        self.assertIn("shut down what runs in mig-a", asked.stderr)
        self.assertIn("--yes", asked.stderr)
        self.assert_older("mig-a", "Running")
        done = migrate("--box", "mig-a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^moved: mig-a \(10\.[0-9.]+\)\n$")
        row = self.assert_moved("mig-a", "Running")
        for key in ("volatile.uuid", "volatile.base_image", "volatile.eth0.hwaddr"):
            self.assertEqual(row["config"][key], before["config"][key])
        self.assertEqual(LAB.must(["incus", "exec", "mig-a", "--", "cat", "/root/work"]).stdout, "kept\n")
        ports = json.loads(LAB.box("firewall", "show", "--json").stdout)["ports"]
        self.assertEqual([port["armed"] for port in ports if port["interface"] == row["config"]["volatile.eth0.host_name"]], [True])
        self.assert_older("mig-b", "Stopped")
        again = migrate("--box", "mig-a")
        self.assertEqual((again.returncode, again.stdout), (0, "unchanged: mig-a (it is on boxnet already)\n"), again.stderr)

    def test_a_stopped_one_with_a_snapshot_of_it(self):
        BOXES.make("mig-b", snapshot="before")
        snapshot = instance("mig-b/snapshots/before")
        done = LAB.box("migrate-host", "--box", "mig-b", "--grace", "0", "--json", timeout=120)  # nothing runs: nothing is asked
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual([(row["name"], row["result"], row["reason"]) for row in report["boxes"]], [("mig-b", "moved", None)])
        self.assertEqual(report["retired"], [])
        self.assert_moved("mig-b", "Stopped")
        for key in ("config", "devices", "created_at"):
            self.assertEqual(instance("mig-b/snapshots/before")[key], snapshot[key])
        restored = LAB.box("restore", "--force", "mig-b", "before")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertEqual(instance("mig-b")["profiles"], ["box-net"], "what an old snapshot holds of the older network does not come back")

    def test_what_the_contract_forbids_is_refused_untouched(self):
        BOXES.make("mig-a")
        LAB.must(["incus", "config", "device", "add", "mig-a", "etc", "disk", "source=/etc", "path=/mnt"])
        before = instance("mig-a")
        done = migrate("--box", "mig-a")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a path of the host", done.stderr)
        self.assertEqual(done.stdout.splitlines()[0].split(":")[0], "failed")
        self.assertEqual(instance("mig-a"), before)

    def test_one_that_fails_on_its_new_leg_is_put_back_and_the_others_move(self):
        BOXES.make("mig-a", run=True)
        LAB.must(["incus", "exec", "mig-a", "--", "/bin/sh", "-c", "echo '#!/bin/sh' > /bin/getent"])
        BOXES.make("mig-b")
        done = migrate("--all-boxes", "--retire-legacy")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^put back: mig-a \(.*no user claude")
        self.assertRegex(done.stdout, r"(?m)^moved: mig-b")
        self.assert_older("mig-a", "Running")
        self.assert_moved("mig-b", "Stopped")
        self.assertIn("claudenet", str(LAB.query("/1.0/networks")))

    def test_asked_wrong(self):
        for words in ((), ("--box", "mig-a", "--all-boxes")):
            done = LAB.box("migrate-host", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("no such box", LAB.box("migrate-host", "--box", "mig-nothing").stderr)
        done = LAB.run(["setpriv", "--reuid", "65534", "--clear-groups", harness.binary(), "migrate-host", "--all-boxes"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("sudo", done.stderr)


class Interrupted(Case):
    """Killed after each request that changes something: what it left is a box, and the same command ends it. Between two of
    them nothing of the daemon's differs; $BOX_ALL spoils the others too."""

    def requests(self, run):
        """What a migration asks the daemon, and the numbers of those requests that change something."""
        BOXES.make("mig-a", run=run)
        with relayed.Relay(LAB) as relay:
            done = migrate("--box", "mig-a", box=relay.box)
            self.assertEqual(done.returncode, 0, done.stderr)
            requests = relay.requests()
        LAB.remove_boxes(PREFIX)
        changing = [k for k, request in enumerate(requests, 1) if not request.startswith("GET ") and "/exec" not in request]
        self.assertGreaterEqual(len(changing), 4, requests)
        return requests, list(range(1, len(requests) + 1)) if relayed.every() else changing

    def spoil(self, action, k, run):
        BOXES.make("mig-a", run=run)
        with relayed.Relay(LAB, k, action) as relay:
            first = migrate("--box", "mig-a", box=relay.box)
        self.assertEqual(instance("mig-a")["config"].get("user.claudebox"), "1")
        if "put back" in first.stdout:
            self.assert_older("mig-a", "Running" if run else "Stopped")
        done = migrate("--box", "mig-a")
        self.assertEqual(done.returncode, 0, (first.stderr, done.stderr))
        self.assert_moved("mig-a", "Running" if run else "Stopped")
        LAB.remove_boxes(PREFIX)

    def test_one_that_runs(self):
        requests, spoiled = self.requests(True)
        for action, at in relayed.rounds(len(spoiled), "lose", "killed"):
            with self.subTest(action=action, request=requests[spoiled[at - 1] - 1]):
                self.spoil(action, spoiled[at - 1], True)

    def test_one_that_is_stopped_up_to_the_end(self):
        requests, spoiled = self.requests(False)
        for k in spoiled if relayed.every() else spoiled[-2:]:
            with self.subTest(request=requests[k - 1]):
                self.spoil("killed", k, False)

    def test_half_way_is_told_and_keeps_the_older_stack(self):
        BOXES.make("mig-a")
        LAB.must(["incus", "profile", "assign", "mig-a", "box-net"])
        LAB.must(["incus", "config", "set", "mig-a", NOTE + '={"ran": true}'])
        doctor = LAB.box("doctor")
        self.assertIn("half-way", doctor.stdout)
        done = migrate("--retire-legacy")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("the move of the box mig-a has not ended", done.stderr)

    def test_ctrl_c_puts_it_back(self):
        BOXES.make("mig-a", run=True)
        process = LAB.popen([harness.binary(), "migrate-host", "--yes", "--grace", "0", "--box", "mig-a"], stdout=-1, stderr=-1)
        held.Image.wait(lambda: instance("mig-a")["profiles"] == ["box-net"], "it does not move")
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=60)
        if process.returncode != 0:  # quick enough, it was done before
            self.assertIn(b"put back: mig-a", out, words)
            self.assert_older("mig-a", "Running")
        done = migrate("--box", "mig-a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_moved("mig-a", "Running")


class Retiring(Case):
    def test_refused_then_done(self):
        BOXES.make("mig-a")
        BOXES.make("mig-b", snapshot="before")
        LAB.must(["incus", "init", older.ALIAS, "mig-mail", "--profile", "claude-dev"])
        self.assertIn("migrate-host --box mig-a", LAB.box("doctor").stdout)
        done = migrate("--retire-legacy")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for name in ("mig-a", "mig-b", "mig-mail"):
            self.assertIn("instance %s uses the profile claude-dev" % name, done.stderr)
        self.assertEqual(migrate("--all-boxes").returncode, 0)
        self.assertIn("instance mig-mail", migrate("--retire-legacy").stderr)
        self.assertIn("claudenet", str(LAB.query("/1.0/networks")))
        LAB.must(["incus", "delete", "mig-mail"])
        asked = LAB.box("migrate-host", "--retire-legacy")
        self.assertEqual(asked.returncode, 2)
        self.assertIn("network claudenet", asked.stderr)
        done = migrate("--retire-legacy")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("network claudenet", "profile claude-dev", "ACL claude-isolate", "nft table inet claudebox",
                     "nft table bridge claudebox", "file " + older.SCRIPT, "file " + older.UNIT):
            self.assertIn("absent: %s\n" % line, done.stdout)
        self.assertIn("boxnet", str(LAB.query("/1.0/networks")))
        self.assertIn("table inet box", LAB.must(["nft", "list", "tables"]).stdout)
        again = migrate("--all-boxes", "--retire-legacy")
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        restored = LAB.box("restore", "--force", "mig-b", "before")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assert_contract("mig-b")
        doctor = LAB.box("doctor")
        self.assertEqual(doctor.returncode, 0, doctor.stdout + doctor.stderr)

    def assert_contract(self, name):
        self.assertEqual(json.loads(LAB.box("info", name, "--json").stdout)["deviations"], [])


if __name__ == "__main__":
    unittest.main()
