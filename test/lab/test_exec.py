"""`box exec`: whose command it is, what reaches it, what comes back. Against a real daemon in the lab."""
import hashlib
import os
import pty
import signal
import subprocess
import time
import unittest

import daily
import harness

LAB = harness.Lab()
BOX = "exec-box"
USER = daily.USER


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("exec-")
    daily.launch(LAB, BOX)
    LAB.must(["incus", "launch", harness.IMAGE, "exec-foreign", "-p", "box-net"], timeout=120)


def tearDownModule():
    LAB.remove_boxes("exec-")


def run(*words, **options):
    return LAB.box("exec", BOX, "--", *words, **options)


def as_root(script, **options):
    """Prepares the guest: the daemon's own client, no box between."""
    return LAB.must(["incus", "exec", BOX, "--", "sh", "-c", script], **options)


class WhoRuns(unittest.TestCase):
    def test_is_the_users_with_all_its_groups(self):
        as_root(f"groupadd -f extra && usermod -aG extra {USER}")
        done = run("id")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"^uid=\d+\({USER}\) gid=\d+\({USER}\) groups=.*\(extra\)")
        self.assertNotIn("(root)", done.stdout)

    def test_environment_is_a_logins_and_nothing_of_the_hosts(self):
        done = run("env", env={"SECRET_TOKEN": "s3cret", "DISPLAY": ":7", "SSH_AUTH_SOCK": "/tmp/agent",
                               "LC_ALL": "tlh_KX", "LANG": "xx_YY", "HOME": "/nowhere", "PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
        self.assertEqual(variables["HOME"], f"/home/{USER}")
        self.assertEqual((variables["USER"], variables["LOGNAME"]), (USER, USER))
        self.assertEqual(variables["SHELL"], "/bin/bash")
        self.assertEqual(variables["LANG"], "C.UTF-8")
        self.assertEqual(variables["PWD"], f"/home/{USER}")
        self.assertIn("/usr/bin", variables["PATH"].split(":"))
        self.assertFalse({"SECRET_TOKEN", "DISPLAY", "SSH_AUTH_SOCK", "LC_ALL", "OLDPWD", "container"} & set(variables))
        self.assertNotIn("s3cret", done.stdout)

    def test_path_and_variables_of_the_profile_count_and_its_noise_does_not(self):
        as_root(f"""su {USER} -c 'cp ~/.profile ~/.kept; mkdir -p ~/bin; printf "#!/bin/sh\\necho mine" >~/bin/mytool
chmod +x ~/bin/mytool; printf "echo noise; echo noise >&2; cat; export MARK=set; PATH=~/bin:\\$PATH\\n" >>~/.profile'""")
        try:
            self.assertEqual(run("mytool").stdout, "mine\n")
            done = run("sh", "-c", 'echo "$MARK"; cat', input="through\n")
            self.assertEqual((done.stdout, done.stderr), ("set\nthrough\n", ""))
        finally:
            as_root(f"mv /home/{USER}/.kept /home/{USER}/.profile")

    def test_runs_whatever_the_profile_does(self):
        for line in ("exit 3", "syntax ( error", "set -eu; false", "set -- a b", "cd /"):
            with self.subTest(line):
                as_root(f"su {USER} -c 'cp ~/.profile ~/.kept'; echo '{line}' >>/home/{USER}/.profile")
                try:
                    done = run("echo", "still", "here")
                    self.assertEqual((done.returncode, done.stdout), (0, "still here\n"), done.stderr)
                finally:
                    as_root(f"mv /home/{USER}/.kept /home/{USER}/.profile")

    def test_lands_in_the_root_directory_where_home_is_gone(self):
        as_root(f"mv /home/{USER} /home/away")
        try:
            done = run("pwd")
        finally:
            as_root(f"mv /home/away /home/{USER}")
        self.assertEqual((done.returncode, done.stdout), (0, "/\n"), done.stderr)

    def test_what_pam_reads_at_a_login_counts_and_is_never_executed(self):
        as_root("""cp -p /etc/environment /etc/environment.kept 2>/dev/null || : >/etc/environment.kept
printf '%s\\n' '# a comment=1' 'ONE=1' 'export TWO="two words"' 'THREE=$(touch /tmp/executed)' 'bad name=x' 'UID=7' '=x' 'PATH=/nowhere' \
  >/etc/environment""")
        try:
            done = run("/usr/bin/env")
        finally:
            as_root("mv /etc/environment.kept /etc/environment")
        self.assertEqual(done.returncode, 0, done.stderr)
        variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
        self.assertEqual((variables["ONE"], variables["TWO"]), ("1", "two words"))
        self.assertEqual(variables["THREE"], "$(touch /tmp/executed)")
        self.assertNotIn("bad name", variables)
        self.assertEqual(run("test", "-e", "/tmp/executed").returncode, 1)

    def test_says_that_the_guest_lacks_the_user(self):
        as_root("cp /etc/passwd /etc/passwd.kept; sed -i '/^dev:/d' /etc/passwd")
        try:
            done = run("true")
        finally:
            as_root("mv /etc/passwd.kept /etc/passwd")
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"the guest has no user '{USER}'", done.stderr)

    def test_the_older_tag_means_the_user_claude(self):
        as_root("id claude 2>/dev/null || useradd -m -s /bin/bash claude")
        saved = LAB.query(f"/1.0/instances/{BOX}")["config"]
        changed = {key: "" for key in saved if key.startswith("user.box")} | {"user.claudebox": "1"}
        LAB.query(f"/1.0/instances/{BOX}", "PATCH", {"config": changed})
        try:
            self.assertEqual(run("whoami").stdout, "claude\n")
        finally:
            LAB.query(f"/1.0/instances/{BOX}", "PATCH", {"config": {**saved, "user.claudebox": ""}})

    def test_leaves_no_process_of_its_own_beside_the_command(self):
        done = run("sh", "-c", "ps -o pid=,ppid=,comm= -u $(id -u); echo end")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [line.split()[2] for line in done.stdout.splitlines() if len(line.split()) == 3]
        self.assertFalse({"setpriv", "su", "runuser"} & set(names), done.stdout)


class WhatArrives(unittest.TestCase):
    def test_every_argument_byte_for_byte(self):
        words = ["$HOME", "", "two\nlines", ";", "*", "a b", "'", '"', "\\", "`id`", "$(id)", "--", "-n", "é日本", "\t", "a\r",
                 "!", "{}", "~", "&&", "x" * 60000]
        done = run("printf", "%s\\0", *words)
        self.assertEqual(done.stdout.split("\0")[:-1], words, done.stderr)

    def test_stdin_of_every_kind(self):
        self.assertEqual(run("cat", input="a pipe").stdout, "a pipe")
        self.assertEqual(run("cat").stdout, "")
        read, write = os.pipe()
        os.close(write)
        done = subprocess.run(LAB.argv([harness.binary(), "exec", BOX, "--", "cat"]), stdin=read, capture_output=True,
                              timeout=30, check=False)
        os.close(read)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        with open(__file__, "rb") as file:
            done = subprocess.run(LAB.argv([harness.binary(), "exec", BOX, "--", "cat"]), stdin=file,
                                  capture_output=True, timeout=30, check=False)
        with open(__file__, "rb") as file:
            self.assertEqual(done.stdout, file.read())

    def test_a_closed_stdin_is_an_empty_one(self):
        done = LAB.run(["sh", "-c", f"exec '{harness.binary()}' exec {BOX} -- cat <&-"])
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_terminal_is_read_only_when_asked(self):
        for flags, expected in (([], b"[]"), (["-i"], b"[typed]")):
            master, slave = pty.openpty()
            child = subprocess.Popen(LAB.argv([harness.binary(), "exec", *flags, BOX, "--", "sh", "-c",
                                               "printf '[%s]' \"$(cat)\""]), stdin=slave, stdout=subprocess.PIPE)
            os.close(slave)
            os.write(master, b"typed\n\x04")
            out, _ = child.communicate(timeout=30)
            os.close(master)
            self.assertEqual(out, expected)

    def test_no_stdin_leaves_a_loop_its_own(self):
        script = f"while read -r line; do '{harness.binary()}' exec -n {BOX} -- echo \"$line\"; done"
        done = LAB.run(["sh", "-c", script], input="1\n2\n3\n")
        self.assertEqual(done.stdout, "1\n2\n3\n", done.stderr)


class WhatComesBack(unittest.TestCase):
    def test_streams_stay_apart(self):
        done = run("sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))

    def test_the_commands_own_exit_status(self):
        for status in (0, 1, 2, 3, 42, 124, 125, 126, 127, 255):
            with self.subTest(status):
                self.assertEqual(run("sh", "-c", f"exit {status}").returncode, status)

    def test_127_unknown_126_not_executable_128_and_the_signal(self):
        done = run("no-such-command")
        self.assertEqual(done.returncode, 127)
        self.assertIn("there is no command no-such-command", done.stderr)
        self.assertEqual(run("/no/such").returncode, 127)
        done = run("")
        self.assertEqual(done.returncode, 127)
        self.assertIn("there is no command '' in the box", done.stderr)
        self.assertEqual(run("-x").returncode, 127)
        self.assertEqual(run("/etc/passwd").returncode, 126)
        self.assertEqual(run("/etc").returncode, 126)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGPIPE):
            with self.subTest(number):
                self.assertEqual(run("sh", "-c", f"kill -{int(number)} $$").returncode, 128 + number)

    def test_200_mib_arrive_intact_either_way(self):
        size = 200 << 20
        digest = hashlib.sha256()
        child = LAB.popen([harness.binary(), "exec", BOX, "--", "sha256sum"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
        block = os.urandom(1 << 20)
        for _ in range(size >> 20):
            child.stdin.write(block)
            digest.update(block)
        out, _ = child.communicate(timeout=120)
        self.assertEqual(out.split()[0].decode(), digest.hexdigest())
        digest, count, last = hashlib.sha256(), 0, b""
        with LAB.popen([harness.binary(), "exec", BOX, "--", "sh", "-c", f"head -c {size} /dev/zero; echo end"],
                       stdout=subprocess.PIPE) as child:
            while chunk := child.stdout.read(1 << 20):
                digest.update(chunk)
                count, last = count + len(chunk), chunk
            self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(count, size + 4)
        self.assertTrue(last.endswith(b"end\n"))
        self.assertEqual(digest.hexdigest(), hashlib.sha256(bytes(size) + b"end\n").hexdigest())

    def test_returns_when_the_command_ends_though_a_child_keeps_the_stream(self):
        began = time.monotonic()
        done = run("sh", "-c", "sleep 60 & echo before")
        self.assertLess(time.monotonic() - began, 50)  # its child takes 60
        self.assertEqual((done.returncode, done.stdout), (0, "before\n"), done.stderr)
        as_root("pkill -x sleep || true")

    def test_an_early_reader_ends_the_command(self):
        done = LAB.run(["bash", "-c", f"'{harness.binary()}' exec {BOX} -- yes | head -n 2"], timeout=30)
        self.assertEqual(done.stdout, "y\ny\n")
        self.assertEqual(LAB.run(["incus", "exec", BOX, "--", "pgrep", "-x", "yes"]).returncode, 1)

    def test_a_closed_or_full_stdout_is_a_failure(self):
        for redirect in (">&-", ">/dev/full"):
            with self.subTest(redirect):
                done = LAB.run(["sh", "-c", f"exec '{harness.binary()}' exec {BOX} -- echo words {redirect}"])
                self.assertNotEqual(done.returncode, 0)

    def test_a_signal_reaches_the_command_itself(self):
        script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
        child = LAB.popen([harness.binary(), "exec", BOX, "--", "sh", "-c", script], stdout=subprocess.PIPE,
                          start_new_session=True)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        os.killpg(child.pid, signal.SIGTERM)
        out, _ = child.communicate(timeout=30)
        self.assertEqual(out, b"caught\n")
        self.assertEqual(child.returncode, 7)

    def test_fifty_at_once(self):
        children = [LAB.popen([harness.binary(), "exec", BOX, "--", "sh", "-c", f"echo {n}; exit {n}"],
                              stdout=subprocess.PIPE) for n in range(50)]
        for number, child in enumerate(children):
            out, _ = child.communicate(timeout=120)
            self.assertEqual((child.returncode, out), (number, f"{number}\n".encode()))


class TheBoundary(unittest.TestCase):
    def test_refuses_what_is_no_box_alike(self):
        for name in ("exec-foreign", "exec-nothing"):
            done = LAB.box("exec", name, "--", "touch", "/tmp/reached")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            self.assertIn("no such box", done.stderr)
        self.assertNotEqual(LAB.run(["incus", "exec", "exec-foreign", "--", "test", "-e", "/tmp/reached"]).returncode, 0)

    def test_refuses_a_bad_name_before_any_request(self):
        done = LAB.box("exec", "../a", "--", "true", env={"INCUS_SOCKET": "/nowhere.socket"})
        self.assertNotEqual(done.returncode, 0)

    def test_says_that_the_box_does_not_run_and_what_helps(self):
        LAB.must(["incus", "stop", "--force", BOX])
        try:
            done = run("true")
        finally:
            LAB.must(["incus", "start", BOX])
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{BOX} is not running", done.stderr)
        self.assertIn(f"box start {BOX}", done.stderr)

    def test_wants_the_dashes(self):
        for words in ((BOX,), (BOX, "--"), (BOX, "ls"), ()):
            done = LAB.box("exec", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: box exec BOX -- CMD...", done.stderr)


if __name__ == "__main__":
    unittest.main()
