"""A box for the tests of daily use: the image, box's profile and tags, the template's user; up in some seconds.

    daily.launch(LAB, "cp-box")          # waits until cloud-init made the user
"""
import harness

USER = "dev"


def launch(lab, name):
    user_data = (harness.ROOT / "templates" / "blank" / "user-data.yaml").read_text(encoding="utf-8")
    lab.must(["incus", "launch", harness.IMAGE, name, "-p", "box-net", "-c", "user.box=1", "-c", f"user.box.user={USER}",
              "-c", "user.box.template=blank", "-c", "security.nesting=true", "-c", f"cloud-init.user-data={user_data}"],
             timeout=120)
    lab.must(["incus", "exec", name, "--", "cloud-init", "status", "--wait"], timeout=120)


def as_root(lab, name, script, **options):
    """Prepares the guest: the daemon's own client, no box between."""
    return lab.must(["incus", "exec", name, "--", "sh", "-c", script], **options)
