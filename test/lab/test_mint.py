"""`box new`: what it makes, what it says, what it leaves when it is interrupted, spoiled or beaten to the name. Against a
real daemon in the lab, with the image of a whole Debian."""
import concurrent.futures
import json
import os
import re
import signal
import tempfile
import time
import unittest
from pathlib import Path

import harness
import relayed

LAB = harness.Lab()
PREFIX = "mint-"
GOOD = "#cloud-config\nusers:\n  - name: dev\n    shell: /bin/bash\n"
ENV = 'BOX_DESCRIPTION="a test"\nBOX_USER="dev"\nBOX_CPU="1"\nBOX_MEMORY="512MiB"\nBOX_DISK="3GiB"\n'


def setUpModule():
    os.environ["BOX_SEED_MAX_AGE"] = "0"  # every mint here boots the image; warm ones have their own tests
    LAB.ready()
    LAB.remove_boxes(PREFIX)


def tearDownModule():
    del os.environ["BOX_SEED_MAX_AGE"]
    LAB.remove_boxes(PREFIX)


def instance(name):
    """The daemon's own object, or None."""
    return next((row for row in LAB.query("/1.0/instances?recursion=1") if row["name"] == name), None)


def inside(name, script):
    return LAB.must(["incus", "exec", name, "--", "sh", "-c", script]).stdout


def new(*words, **options):
    options.setdefault("timeout", 300)
    return LAB.box("new", *words, **options)


class Templates(unittest.TestCase):
    """Tests that mint from templates of their own, or from blank."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.addCleanup(LAB.remove_boxes, PREFIX)

    def template(self, name, user_data=GOOD, env=ENV):
        place = self.directory / name
        place.mkdir()
        (place / "box.env").write_bytes(env.encode())
        (place / "user-data.yaml").write_bytes(user_data if isinstance(user_data, bytes) else user_data.encode())
        return ("--template-dir", str(self.directory), "--template", name)

    def minted(self, name, *words, **options):
        done = new(name, *words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Minting(Templates):
    def test_a_box_is_ready_to_use(self):
        done = self.minted("mint-a")
        row = instance("mint-a")
        config = row["config"]
        self.assertEqual(row["profiles"], ["box-net"])
        self.assertEqual((config["user.box"], config["user.box.template"], config["user.box.user"]), ("1", "blank", "dev"))
        self.assertNotIn("user.box.state", config)
        self.assertNotIn("user.box.reason", config)
        self.assertEqual(config["security.nesting"], "true")
        self.assertNotIn("security.privileged", config)
        self.assertEqual(config["user.box.uid"], inside("mint-a", "id -u dev").strip())
        self.assertEqual(LAB.box("exec", "mint-a", "--", "id", "-un").stdout, "dev\n")
        self.assertEqual(LAB.box("exec", "mint-a", "--", "sudo", "-n", "id", "-un").stdout, "root\n")
        self.assertEqual(LAB.box("exec", "mint-a", "--", "tmux", "-V").returncode, 0)
        self.assertEqual(LAB.box("exec", "mint-a", "--", "ping", "-c", "1", "-W", "2", "127.0.0.1").returncode, 0)
        web = next(host["address"] for host in LAB.world()["addresses"] if host["kind"] == "public")
        got = LAB.box("exec", "mint-a", "--", "curl", "-sS", "-m", "5", f"http://{web}/")
        self.assertEqual(got.returncode, 0, got.stderr)
        address = re.fullmatch(r"mint-a (10\.\d+\.\d+\.\d+)\n", done.stdout)
        self.assertTrue(address, done.stdout)
        self.assertIn(address.group(1), inside("mint-a", "ip -4 -o address show dev eth0"))
        listed = json.loads(LAB.box("list", "--json").stdout)
        self.assertEqual([(box["incomplete"], box["deviations"]) for box in listed if box["name"] == "mint-a"], [(None, [])])

    def test_every_step_is_told_on_stderr_alone(self):
        done = self.minted("mint-a")
        for words in ("weaker isolation", "the image is debian/13 from this host", "creating the container mint-a",
                      "starting it", "to watch it: incus exec mint-a", "waiting for its first boot", "at most 1200 s",
                      "mint-a is ready after", "box shell mint-a"):
            self.assertIn(words, done.stderr)
        self.assertRegex(done.stderr, r"\([0-9a-f]{12}, built .*\)")
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_a_container_that_was_asked_for_is_no_news(self):
        done = self.minted("--container", "--name", "mint-a")
        self.assertNotIn("weaker", done.stderr)

    def test_json_is_the_box(self):
        made = json.loads(self.minted("mint-a", "--json").stdout)
        self.assertEqual((made["name"], made["state"], made["type"], made["incomplete"]),
                         ("mint-a", "running", "container", None))
        self.assertRegex(made["ipv4"], r"^10\.")

    def test_user_data_arrives_byte_for_byte(self):
        text = (GOOD + "# {{ config_get('x') }} {% raw %} $HOME `id` \\n 'q' \"dq\" caf\u00e9 \U0001f4e6 \u00a0 tab\t.  \n"
                + "write_files:\n  - path: /etc/marker\n    content: |\n      caf\u00e9 {{ x }} $HOME\n")
        data = text.encode() + b"\n\n\n"
        data += b"#" + b"x" * (1024 * 1024 - len(data) - 2) + b"\n"
        self.assertEqual(len(data), 1024 * 1024)
        self.minted("mint-a", *self.template("exact", data))
        seed = LAB.run(["incus", "file", "pull", "mint-a/var/lib/cloud/seed/nocloud-net/user-data", "-"], text=False)
        self.assertEqual(seed.stdout, data)
        self.assertEqual(inside("mint-a", "cat /etc/marker"), "caf\u00e9 {{ x }} $HOME\n")

    def test_user_data_that_ends_without_a_newline(self):
        data = GOOD.encode().rstrip(b"\n")
        self.minted("mint-a", *self.template("cut", data))
        seed = LAB.run(["incus", "file", "pull", "mint-a/var/lib/cloud/seed/nocloud-net/user-data", "-"], text=False)
        self.assertEqual(seed.stdout, data)

    def test_flag_counts_before_environment_before_file(self):
        words = self.template("limits")
        self.minted("mint-a", *words)
        self.minted("mint-b", *words, env={"BOX_MEMORY": "600MiB", "BOX_CPU": "2"})
        self.minted("mint-c", *words, "--memory", "700MiB", "--disk=4GiB", env={"BOX_MEMORY": "600MiB"})
        limits = {name: (instance(name)["config"]["limits.cpu"], instance(name)["config"]["limits.memory"],
                         instance(name)["devices"]["root"]["size"]) for name in ("mint-a", "mint-b", "mint-c")}
        self.assertEqual(limits, {"mint-a": ("1", "512MiB", "3GiB"), "mint-b": ("2", "600MiB", "3GiB"),
                                  "mint-c": ("1", "700MiB", "4GiB")})

    def test_says_which_limits_the_host_cannot_enforce(self):
        done = self.minted("mint-a")
        held = inside("mint-a", "cat /sys/fs/cgroup/memory.max 2>/dev/null || true").strip()
        self.assertEqual("cannot enforce limits.memory" in done.stderr, held in ("", "max"), done.stderr)

    def test_autostart_is_the_templates(self):
        self.minted("mint-a", *self.template("auto", env=ENV + 'BOX_AUTOSTART="true"\n'))
        self.minted("mint-b")
        self.assertEqual([instance(name)["config"]["boot.autostart"] for name in ("mint-a", "mint-b")], ["true", "false"])


class Refusing(Templates):
    """What is refused before anything is made."""

    def refused(self, status, words, *arguments, requests=None, **options):
        with relayed.Relay(LAB) as relay:
            done = relay.box("new", *arguments, **options)
            made = relay.requests()
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse([line for line in made if not line.startswith("GET ")], made)
        if requests is not None:
            self.assertEqual(len(made), requests, made)
        return done

    def test_a_bad_name_before_any_request(self):
        for name in ("", "-a", "a-", "7", "123", "a_b", "a.b", "a b", "\u00e4", "a" * 64, "a/../b", "a\nb"):
            self.refused(2, "1 to 63 of A-Z a-z 0-9 and -", f"--name={name}", requests=0)

    def test_a_name_that_box_keeps_for_itself(self):
        for words in (["box-seed-x"], ["box-import-x"], ["box-seed", "--count", "2"]):
            self.refused(2, "reserved", *words, requests=0)

    def test_a_name_is_shown_as_it_was_typed(self):
        self.refused(2, r"'a\x1b[31m'", "a\x1b[31m", requests=0)

    def test_two_names_and_none(self):
        self.refused(2, "two names", "mint-a", "--name", "mint-b", requests=0)
        self.refused(2, "a box needs a name", requests=0)
        self.refused(2, "exclude each other", "mint-a", "--vm", "--container", requests=0)

    def test_a_bad_limit_before_any_request(self):
        for words in (("--memory", "4"), ("--memory", "1KiB"), ("--cpu", "0"), ("--cpu", "x"), ("--disk", "10Gib"),
                      ("--disk", "1MiB")):
            self.refused(2, words[0], "mint-a", *words, requests=0)
        self.refused(2, "BOX_MEMORY", "mint-a", env={"BOX_MEMORY": "lots"}, requests=0)

    def test_a_bad_template_before_any_request(self):
        self.refused(1, "no such template: nothing", "mint-a", "--template", "nothing", requests=0)
        self.refused(2, ":2: unknown key BOX_NETWORK", "mint-a",
                     *self.template("net", env='BOX_USER="dev"\nBOX_NETWORK="lan"\n'), requests=0)

    def test_a_taken_name(self):
        LAB.must(["incus", "init", harness.IMAGE, "mint-foreign", "-p", "box-net"])
        self.refused(1, "no box", "mint-foreign")
        LAB.must(["incus", "init", harness.IMAGE, "mint-half", "-p", "box-net", "-c", "user.box=1", "-c",
                  "user.box.state=minting"])
        done = self.refused(1, "incomplete (minting)", "mint-half")
        self.assertIn("box rm mint-half", done.stderr)
        LAB.must(["incus", "config", "set", "mint-half", "user.box.created=2020-01-01T00:00:00Z"])
        self.assertIn("box rm mint-half", self.refused(1, "incomplete (minting)", "mint-half").stderr)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        LAB.must(["incus", "config", "set", "mint-half", f"user.box.created={now}"])
        done = self.refused(1, "is being minted right now", "mint-half")
        self.assertIn("or its mint was killed", done.stderr)
        self.assertIn("where no mint of it runs any more: box rm mint-half", done.stderr)
        LAB.must(["incus", "init", harness.IMAGE, "mint-whole", "-p", "box-net", "-c", "user.box=1"])
        self.refused(1, "there is a box mint-whole already", "mint-whole")

    def test_a_vm_where_none_can_run(self):
        if "qemu" in LAB.query("/1.0")["environment"]["driver"]:
            self.fail("this lab's daemon runs VMs: the refusal cannot be seen")
        self.refused(1, "a VM cannot be minted", "mint-a", "--vm")
        words = self.template("vm", env=ENV + 'BOX_REQUIRE_VM="true"\n')
        self.refused(1, "required by the template vm", "mint-a", *words)
        self.refused(2, "requires a VM", "mint-a", "--container", *words)

    def test_an_image_that_is_nowhere_names_both_ways(self):
        done = new("mint-a", *self.template("img", env=ENV + 'BOX_IMAGE="debian/99"\n'))
        self.assertEqual(done.returncode, 1)
        self.assertIn("incus image import", done.stderr)
        self.assertIn("incus remote list", done.stderr)
        self.assertIsNone(instance("mint-a"))

    def test_an_image_that_can_be_built_says_so(self):
        fingerprint = LAB.query("/1.0/images/aliases/debian%2F13")["target"]
        LAB.query("/1.0/images/aliases/debian%2F13", "DELETE")
        try:
            done = new("mint-a")
        finally:
            LAB.query("/1.0/images/aliases", "POST", {"name": harness.IMAGE, "target": fingerprint})
        self.assertEqual(done.returncode, 1)
        self.assertIn("box image build debian/13", done.stderr)
        self.assertIn("image server", done.stderr)
        self.assertIsNone(instance("mint-a"))

    def test_user_data_that_the_daemon_refuses_leaves_nothing(self):
        done = new("mint-a", *self.template("colon", GOOD + "foo: bar: baz\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("mapping values", done.stderr)
        self.assertRegex(done.stderr, "(?m)^creating the container mint-a .*: failed")
        self.assertIsNone(instance("mint-a"))

    def test_user_data_that_no_json_can_carry(self):
        for data, words in ((GOOD.encode() + b"# \xff\n", "not UTF-8"), (GOOD.encode() + b"# \0\n", "NUL"),
                            (b"#" * (1024 * 1024 + 1), "larger than 1 MiB")):
            self.refused(2, words, "mint-a", *self.template("t%d" % len(words), data), requests=0)


class FirstBoot(Templates):
    """The guest's own failures: kept as incomplete, with the reason; what is harmless is handed over."""

    def kept(self, user_data, words):
        done = new("mint-a", *self.template("bad", user_data))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("kept, but incomplete", done.stderr)
        self.assertRegex(done.stderr, words)
        box, = (box for box in json.loads(LAB.box("list", "--json").stdout) if box["name"] == "mint-a")
        self.assertEqual(box["incomplete"], "failed")
        self.assertRegex(box["reason"], words)
        self.assertIn("incomplete", LAB.box("list").stdout)
        self.assertEqual(LAB.box("rm", "--force", "mint-a").returncode, 0)
        self.assertIsNone(instance("mint-a"))
        return done

    def test_user_data_that_cloud_init_dropped_although_it_is_done(self):
        self.kept(GOOD + "x: !foo bar\n", "cloud-init dropped the user-data")

    def test_user_data_without_its_first_line(self):
        self.kept("users:\n  - name: dev\n", "cloud-init dropped the user-data")

    def test_a_script_that_failed_shows_its_words(self):
        done = self.kept(GOOD + "runcmd:\n  - [sh, -c, 'echo the sky fell >&2; exit 3']\n", "cloud-init failed: .*scripts-user")
        self.assertIn("the sky fell", done.stderr)

    def test_a_template_whose_user_is_not_made(self):
        self.kept("#cloud-config\nusers:\n  - name: other\n", "no user dev")

    def test_a_user_that_cannot_land(self):
        self.kept("#cloud-config\nusers:\n  - name: dev\n    shell: /usr/sbin/nologin\n", "cannot run in it as dev")

    def test_escape_sequences_of_the_guest_stay_in_it(self):
        done = self.kept(GOOD + "runcmd:\n  - [sh, -c, 'printf \"\\\\033]0;owned\\\\007\" >&2; exit 3']\n", "scripts-user")
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\x07", done.stderr)

    def test_a_harmless_warning_is_told_and_handed_over(self):
        done = self.minted("mint-a", *self.template("warn", GOOD + "nonsense_key: 3\n"))
        self.assertIn("a warning of its first boot: ", done.stderr)
        self.assertNotIn("user.box.state", instance("mint-a")["config"])

    def test_a_budget_that_runs_out(self):
        done = new("mint-a", "--wait", "3", *self.template("slow", GOOD + "runcmd:\n  - [sleep, '60']\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("at most 3 s", done.stderr)
        self.assertIn("not done after 3 s", done.stderr)
        self.assertEqual(instance("mint-a")["config"]["user.box.state"], "failed")

    def test_a_guest_that_goes_down_at_once(self):
        self.kept(GOOD + "runcmd:\n  - [sh, -c, 'systemctl poweroff --force --force; sleep 60']\n", ".")


class Interrupted(Templates):
    """A signal at each step leaves nothing; a kill leaves a box that says that it is half minted."""

    def interrupt(self, step, number):
        process = LAB.popen([harness.binary(), "new", "mint-a"], stderr=-1, stdout=-1)
        words = ""
        while step not in words:
            line = process.stderr.readline().decode()
            self.assertTrue(line, words)
            words += line
        process.send_signal(number)
        out, rest = process.communicate(timeout=60)
        return process.returncode, out.decode(), words + rest.decode()

    def test_at_each_step(self):
        for step in ("creating the", "starting it", "to watch it", "waiting for its first boot"):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(step=step, signal=number):
                    status, out, words = self.interrupt(step, number)
                    self.assertEqual((status, out), (1, ""), words)
                    self.assertIn("interrupted", words)
                    self.assertNotRegex(words, r"(?m)^(waiting for its first boot|cleaning up).*: done")
                    if step.startswith("waiting"):
                        self.assertRegex(words, "(?m)^waiting for its first boot .*: interrupted")
                    self.assertIsNone(instance("mint-a"), words)
        self.minted("mint-a")

    def test_a_second_ctrl_c_waits_for_the_cleaning_up(self):
        process = LAB.popen([harness.binary(), "new", "mint-a"], stderr=-1, stdout=-1)
        words = ""
        for step, number in (("starting it", signal.SIGINT), ("cleaning up", signal.SIGINT)):
            while step not in words:
                line = process.stderr.readline().decode()
                self.assertTrue(line, words)
                words += line
            process.send_signal(number)
        _, rest = process.communicate(timeout=60)
        words += rest.decode()
        self.assertEqual(process.returncode, 1, words)
        self.assertIsNone(instance("mint-a"), words)

    def test_killed(self):
        for step in ("creating the", "starting it", "waiting for its first boot"):
            with self.subTest(step=step):
                self.interrupt(step, signal.SIGKILL)
                left = instance("mint-a")
                if left:
                    self.assertEqual((left["config"]["user.box"], left["config"]["user.box.state"]), ("1", "minting"))
                    self.assertIn("incomplete: minting", LAB.box("list").stdout)
                LAB.box("rm", "--force", "mint-a", timeout=90)
                self.assertIsNone(instance("mint-a"))
        self.minted("mint-a")


class Twice(Templates):
    def test_one_wins_and_the_loser_touches_nothing(self):
        for delay in (0, 1, 2):
            with concurrent.futures.ThreadPoolExecutor() as pool:
                first = pool.submit(new, "mint-a")
                second = pool.submit(new, "mint-a", env={"BOX_MEMORY": "777MiB"})
                done = [first.result(), second.result()]
            self.assertEqual(sorted(one.returncode for one in done), [0, 1], [one.stderr for one in done])
            winner, loser = sorted(done, key=lambda one: one.returncode)
            self.assertIn("already", loser.stderr)
            row = instance("mint-a")
            self.assertEqual(row["status"], "Running")
            self.assertNotIn("user.box.state", row["config"])
            self.assertEqual(row["config"]["limits.memory"] == "777MiB", winner is done[1])
            self.assertEqual(LAB.box("exec", "mint-a", "--", "true").returncode, 0)
            LAB.remove_boxes("mint-a")


class Broken(Templates):
    """Every request of a mint spoiled in every way: what is left is nothing, or a box that says that it is incomplete and that
    can be removed."""

    def spoil_at(self, k, action):
        name = f"mint-{action}-{k}"
        with relayed.Relay(LAB, k, action) as relay:
            done = relay.box("new", name, timeout=120)
            reached = len(relay.requests()) >= k
        row = instance(name)
        if done.returncode == 0:
            self.assertNotIn("user.box.state", row["config"], (name, done.stderr))
        elif row:
            self.assertEqual(row["config"].get("user.box"), "1", (name, done.stderr))
            # Complete after all: only what came after its last change was lost, with the daemon or with the command itself.
            complete = action in ("stop", "kill", "killed") and "user.box.uid" in row["config"]
            states = ("minting", "failed", None) if complete else ("minting", "failed")
            self.assertIn(row["config"].get("user.box.state"), states, (name, done.stderr))
        if action not in ("kill", "killed") and done.returncode != 0:
            self.assertEqual((done.returncode, done.stdout), (1, ""), (name, done.stderr))
            self.assertRegex(done.stderr, "(?m)^box: ")
        gone = LAB.box("rm", "--force", name, timeout=90)
        self.assertEqual(gone.returncode, 0 if row else 1, (name, gone.stderr))
        self.assertIsNone(instance(name))
        return reached

    def test_every_request_spoiled(self):
        rounds = relayed.rounds(20, "cut", "lose", "error", "delay", "stop", "kill", "killed")
        # Two at a time: half of a mint is waiting.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            reached = list(pool.map(lambda round: self.spoil_at(round[1], round[0]), rounds))
        self.assertGreaterEqual(sum(reached), 0.9 * len(rounds))
        self.minted("mint-after")


if __name__ == "__main__":
    unittest.main()
