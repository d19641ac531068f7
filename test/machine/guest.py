"""The machine as the steps see it: commands in it with a budget, files into it, the box program there."""

import json
import os
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "lab", "machine")


class Failed(Exception):
    """A claim of a step that does not hold, with what was seen."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def call(argv, budget, **more):
    """A process of this side; output as text. The budget's end is a failure that says so."""
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=budget, check=False, **more)
    except subprocess.TimeoutExpired as expired:
        raise Failed("%s did not end within %d s; it said: %s"
                     % (" ".join(argv[:6]), budget, str(expired.output or "")[-400:])) from None


class Guest:
    def __init__(self, name):
        self.name = name
        self.scratch = os.path.join("/var/cache/box-machine-check", name)
        os.makedirs(self.scratch, exist_ok=True)

    def machine(self, *words, budget):
        done = call([PROGRAM, *words], budget)
        expect(done.returncode == 0, "lab/machine %s: %s" % (words[0], done.stdout[-800:]))
        return done.stdout

    def up(self, given):
        return self.machine("up", "--name", self.name, "--give", given, budget=3600)

    def end(self):
        call([PROGRAM, "down", "--name", self.name], 60)
        call(["rm", "-rf", self.scratch], 60)

    def copy(self, *paths):
        self.machine("copy", "--name", self.name, *paths, "machine:/root/", budget=300)

    def reboot(self):
        self.machine("reboot", "--name", self.name, budget=1800)

    def try_sh(self, script, budget=120):
        """(status, output) of a bash script there, as root; both streams."""
        done = call([PROGRAM, "run", "--name", self.name, "--", "bash", "-c", script], budget)
        return done.returncode, done.stdout

    def sh(self, script, budget=120):
        status, output = self.try_sh(script, budget)
        expect(status == 0, "`%s` ended with %d: %s" % (script.strip().split("\n")[0][:100], status, output[-900:]))
        return output

    def seconds(self, script, budget):
        begun = time.monotonic()
        self.sh(script, budget)
        return time.monotonic() - begun

    def json(self, script, budget=120):
        output = self.sh(script, budget)
        try:
            return json.loads(output)
        except ValueError:
            raise Failed("`%s` gave no JSON: %s" % (script, output[-400:])) from None
