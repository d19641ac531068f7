"""`box logs`: the mint, cloud-init's narration, the console; nothing raw of a guest. Against a real daemon in the lab."""
import os
import signal
import unittest

import daily
import harness

LAB = harness.Lab()
BOX = "logs-box"
NARRATION = "/var/log/cloud-init-output.log"


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("logs-")
    daily.launch(LAB, BOX)


def tearDownModule():
    LAB.remove_boxes("logs-")


def start_again():
    """Until cloud-init has said all that it has to say of this boot, or it would write among what a test wrote."""
    LAB.must(["incus", "start", BOX])
    daily.as_root(LAB, BOX, "cloud-init status --wait >/dev/null || [ $? -ne 1 ]", timeout=120)


def logs(*words, status=0):
    done = LAB.box("logs", BOX, *words)
    if done.returncode != status:
        raise AssertionError(done.stderr)
    return done.stdout


def part(text, name):
    return text.split(f"==> {name} <==\n")[1].split("\n==> ")[0]


class Logs(unittest.TestCase):
    def setUp(self):
        """The file as the guest left it after its first boot."""
        daily.as_root(LAB, BOX, f"[ -e {NARRATION}.kept ] || cp {NARRATION} {NARRATION}.kept; cat {NARRATION}.kept >{NARRATION}")

    def test_tells_the_mint_and_cloud_inits_narration(self):
        text = logs()
        self.assertRegex(part(text, "mint"), r"(?m)^template +blank\n(.*\n)*mode +container\nuser +dev\noutcome +complete\n")
        self.assertIn("Cloud-init v.", part(text, f"cloud-init: {NARRATION}"))

    def test_tells_why_a_box_is_incomplete_and_nothing_raw(self):
        set_to = lambda state, reason: LAB.query(f"/1.0/instances/{BOX}", "PATCH", {"config": {
            "user.box.state": state, "user.box.reason": reason}})
        set_to("failed", "bad \x1b]0;title\x07yaml")
        try:
            text = logs()
        finally:
            set_to("", "")
        self.assertRegex(text, r"(?m)^outcome +failed\nreason +bad yaml$")
        self.assertNotIn("\x1b", text)

    def test_what_a_guest_wrote_is_shown_without_its_escape_sequences(self):
        daily.as_root(LAB, BOX, f"printf '\\033[31mred\\033[0m\\r\\n 10%%\\r100%%\\n\\377\\n\\033]52;c;aGk=\\007end\\n' >>{NARRATION}")
        self.assertEqual(part(logs("-n", "4"), f"cloud-init: {NARRATION}"), "red\n100%\n�\nend\n")

    def test_at_most_so_many_lines(self):
        daily.as_root(LAB, BOX, f"seq -f line%g 300 >>{NARRATION}")
        shown = part(logs("--lines=3"), f"cloud-init: {NARRATION}")
        self.assertEqual(shown, "line298\nline299\nline300\n")
        self.assertEqual(len(part(logs(), f"cloud-init: {NARRATION}").splitlines()), 200)
        self.assertIn("Cloud-init v.", part(logs("-n", "0"), f"cloud-init: {NARRATION}"))

    def test_a_box_that_is_down_still_tells(self):
        LAB.must(["incus", "exec", BOX, "--", "sh", "-c", r"printf '\033[1mlast\033[0m words\n' >/dev/console"])
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            text = logs()
            follow = LAB.box("logs", BOX, "-f")
        finally:
            start_again()
        self.assertIn("last words\n", part(text, "console"))
        self.assertIn("Cloud-init v.", text)
        self.assertEqual(follow.returncode, 1)
        self.assertIn(f"box logs {BOX}", follow.stderr)

    def follow(self):
        child = LAB.popen([harness.binary(), "logs", "-f", BOX, "-n", "1"], stdout=-1, stderr=-1, start_new_session=True)
        daily.as_root(LAB, BOX, f"printf 'new \\033[31mline\\n' >>{NARRATION}")
        while (line := child.stdout.readline()) != b"new line\n":
            self.assertNotEqual(line, b"", "it ended early")
        return child

    def test_follows_until_ctrl_c(self):
        child = self.follow()
        os.killpg(child.pid, signal.SIGINT)
        _, told = child.communicate(timeout=30)
        self.assertEqual((child.returncode, told), (0, b""))
        self.assertEqual(LAB.run(["incus", "exec", BOX, "--", "pgrep", "-x", "tail"]).stdout, "")

    def test_follows_until_the_box_is_down(self):
        child = self.follow()
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            child.communicate(timeout=30)
        finally:
            start_again()
        self.assertIsNotNone(child.returncode)

    def test_the_boundary(self):
        done = LAB.box("logs", "logs-nothing")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no such box", done.stderr)


if __name__ == "__main__":
    unittest.main()
