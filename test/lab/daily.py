"""A box for the tests of daily use: the image, box's profile and tags, the template's user; up in some seconds.

    daily.launch(LAB, "cp-box")          # waits until cloud-init made the user
"""
import harness

USER = "dev"


def launch(lab, name):
    done = lab.box("new", "--name", name, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


def launch_plain(lab, name):
    """A box whose first boot nobody waits for: for tests of what is around it. There is no user but root in it."""
    lab.must(["incus", "launch", harness.IMAGE, name, "-p", "box-net", "-c", "user.box=1"], timeout=120)


def as_root(lab, name, script, **options):
    """Prepares the guest: the daemon's own client, no box between."""
    return lab.must(["incus", "exec", name, "--", "sh", "-c", script], **options)
