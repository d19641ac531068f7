"""`box rm` looks before it asks: unpushed work and tmux sessions of a running box, within 3 seconds, and never as an obstacle. A
real daemon in the lab; git in the guest is a stand-in that answers as the real one does."""
import time
import unittest

import harness
import relayed
import tinybox
from session import Session

LAB = harness.Lab()
BOXES = tinybox.Boxes(LAB)
PREFIX = "loss-"
GIT = """#!/bin/sh
case "$*" in
    *status*) echo ' M work.c' ;;
    *rev-list*) echo 3 ;;
    *stash*) echo 'stash@{0}: WIP' ;;
esac
"""


def setUpModule():
    relayed.set_up(LAB)
    LAB.remove_boxes(PREFIX)
    BOXES.prepare()


def tearDownModule():
    LAB.remove_boxes(PREFIX)


def program(name, path, text):
    LAB.must(["incus", "exec", name, "--", "/bin/sh", "-c", f"PATH=/bin; cat > {path}; chmod 755 {path}"], input=text)


class Loss(unittest.TestCase):
    def setUp(self):
        BOXES.launch("loss-a")
        BOXES.shell("loss-a", "mkdir -p /home/dev/work/.git /home/dev/deep/er/.git")
        self.addCleanup(LAB.remove_boxes, PREFIX)

    def exists(self):
        return LAB.run(["incus", "info", "loss-a"]).returncode == 0

    def test_lists_what_would_be_lost_before_it_asks(self):
        LAB.ready()
        self.assertEqual(LAB.box("new", "loss-d", timeout=180).returncode, 0)
        LAB.must(["incus", "exec", "loss-d", "--", "sh", "-c", "cat > /usr/bin/git; chmod 755 /usr/bin/git; "
                  "mkdir -p /home/dev/work/.git; chown -R dev: /home/dev; su dev -c 'tmux new-session -d -s night'"], input=GIT)
        session = Session(LAB, harness.binary(), "rm", "loss-d", columns=200)
        session.wait_for(r"loss-d would lose: tmux session night")
        session.wait_for(r"loss-d would lose: repository /home/dev/[a-z/]+: "
                         r"uncommitted changes, 3 commits that were not pushed, a stash")
        session.wait_for(r"Delete the box loss-d .*\[y/N\] ")
        session.type("n\n")
        self.assertEqual(session.finish()[0], 1)
        self.assertTrue(self.exists())

    def test_says_where_nobody_can_say(self):
        done = LAB.box("rm", "loss-a")
        self.assertEqual(done.returncode, 2)
        self.assertIn("repository /home/dev/work: without git and setpriv in the box nobody can say", done.stderr)

    def test_a_guest_that_does_not_answer_is_no_obstacle(self):
        program("loss-a", "/usr/bin/git", "#!/bin/sh\nsleep 60\n")
        began = time.monotonic()
        done = LAB.box("rm", "loss-a")
        self.assertEqual(done.returncode, 2)
        self.assertLess(time.monotonic() - began, 50)  # its git takes 60

    def test_what_a_guest_says_is_made_safe_and_bounded(self):
        program("loss-a", "/usr/bin/find", "#!/bin/sh\ni=0; while [ $i -lt 500 ]; do "
                "printf '/\\033[2J%s/.git\\n' $i; i=$((i + 1)); done\n")
        LAB.run(["incus", "exec", "loss-a", "--", "/bin/mv", "/bin/find", "/bin/find.away"])
        done = LAB.box("rm", "loss-a")
        self.assertNotIn("\033", done.stderr)
        self.assertLessEqual(done.stderr.count("would lose"), 20)

    def test_force_does_not_look(self):
        program("loss-a", "/usr/bin/git", GIT)
        done = LAB.box("rm", "--force", "loss-a")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("would lose", done.stderr)
        self.assertFalse(self.exists())


if __name__ == "__main__":
    unittest.main()
