"""A container image of one static busybox: small, built in a second without a network, quick to start.

    metadata, rootfs = tinyimage.build(directory)      # two files for `incus image import` or the API
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

BUSYBOX = "/bin/busybox"
MACHINE = {"x86_64": "x86_64", "aarch64": "aarch64"}
PASSWD = "root:x:0:0:root:/root:/bin/sh\ndev:x:1000:1000:dev:/home/dev:/bin/sh\n"
GROUP = "root:x:0:\ndev:x:1000:\n"
INITTAB = "::sysinit:/bin/true\n::respawn:/bin/tail -f /dev/null\n"
FOLDERS = ("bin", "dev", "etc", "home/dev", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin", "var")


def build(directory, files=None):
    """`files`: more of them (path: text), or others in their stead."""
    directory = Path(directory)
    root = directory / "rootfs"
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            os.symlink("busybox", root / "bin" / applet)
    os.symlink("/bin/busybox", root / "sbin" / "init")
    os.chmod(root / "tmp", 0o1777)
    os.chown(root / "home" / "dev", 1000, 1000)
    for name, text in (("passwd", PASSWD), ("group", GROUP), ("inittab", INITTAB)):
        (root / "etc" / name).write_text(text, encoding="utf-8")
    for path, text in (files or {}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        os.chmod(root / path, 0o755 if text.startswith("#!") else 0o644)
    squashed = directory / "rootfs.squashfs"
    subprocess.run(["mksquashfs", str(root), str(squashed), "-noappend", "-quiet", "-no-progress", "-comp", "gzip"],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    shutil.rmtree(root)
    description = directory / "metadata.yaml"
    description.write_text("architecture: %s\ncreation_date: 1700000000\nproperties:\n  description: busybox\n"
                           % MACHINE.get(os.uname().machine, os.uname().machine), encoding="utf-8")
    metadata = directory / "metadata.tar"
    with tarfile.open(metadata, "w") as archive:
        archive.add(description, "metadata.yaml")
    return metadata, squashed
