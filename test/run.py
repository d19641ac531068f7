#!/usr/bin/python3
"""Runs every test of the tree, stage by stage, and ends with one line: N passed, N failed.

    ./check                 everything
    ./check unit lab        those stages only
    ./check lab:test_exec   one module of the lab's tests
    ./check --list          the stages
"""
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SANITIZED = ROOT / "build-sanitized"
FUZZ_SECONDS = 12
WORKERS = 2  # labs side by side
ALONE = ("test_lab",)  # compares the whole machine before and after
LONGEST = ("test_drill_sabotage", "test_drill", "test_doctor", "test_artifact", "test_mint")  # first, or they would be last
FUZZ_FLAGS = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dfuzz=true", "-Dtests=false"]


class Tally:
    """What passed and what failed, by name."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.absent = []

    def add(self, name, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failures.append(name)
            print(f"FAIL {name}" + (f"\n{detail}" if detail else ""), flush=True)


def run(argv, **options):
    return subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          capture_output=True, **options)


def build(directory, *flags, compiler="gcc"):
    """Configures once and compiles; returns (ok, log)."""
    log = ""
    if not (directory / "build.ninja").exists():
        done = run(["meson", "setup", str(directory), *flags], env=os.environ | {"CC": compiler})
        log = done.stdout + done.stderr
        if done.returncode:
            return False, log
    done = run(["meson", "compile", "-C", str(directory)])
    return done.returncode == 0, log + done.stdout + done.stderr


def run_tap(tally, directory, label, environment=None):
    """Runs the unit tests of one build and counts each case that they report."""
    done = run(["meson", "test", "-C", str(directory), "--no-rebuild"], env=os.environ | (environment or {}))
    log = directory / "meson-logs" / "testlog.json"
    tests = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not tests:
        tally.add(f"{label}: the unit tests ran", False, done.stdout + done.stderr)
    for test in tests:
        output = test.get("stdout", "")
        cases = re.findall(r"^(ok|not ok) (?:\d+) ?-? ?(.*)$", output, re.M)
        for word, name in cases:
            tally.add(f"{label}: {test['name']}: {name}", word == "ok", output)
        if test["result"] != "OK" or not cases:
            tally.add(f"{label}: {test['name']}", False, output + test.get("stderr", ""))


def stage_tree(tally):
    """The house rules that a program can check: floors, sizes, banned words."""
    done = run(["/usr/bin/python3", "test/tree.py"])
    for line in done.stdout.splitlines():
        word, _, name = line.partition(" ")
        tally.add(f"tree: {name}", word == "ok")
    if not done.stdout:
        tally.add("tree: the check ran", False, done.stderr)


def stage_unit(tally):
    """Builds with gcc, warnings as errors, and runs the unit tests."""
    ok, log = build(BUILD)
    tally.add("build with gcc", ok, log)
    if ok:
        run_tap(tally, BUILD, "unit")


def stage_clang(tally):
    """Builds with clang, warnings as errors."""
    ok, log = build(ROOT / "build-clang", compiler="clang")
    tally.add("build with clang", ok, log)


def stage_sanitized(tally):
    """Builds with ASan and UBSan and runs the unit tests under them."""
    ok, log = build(SANITIZED, "-Db_sanitize=address,undefined", "-Db_lundef=false")
    tally.add("build with the sanitizers", ok, log)
    if ok:
        run_tap(tally, SANITIZED, "sanitized", {"UBSAN_OPTIONS": "halt_on_error=1"})


def stage_fuzz(tally):
    """Runs each fuzz target for a bounded time from its committed corpus; the same walk each time, unless $BOX_FUZZ_SEED."""
    directory = ROOT / "build-fuzz"
    ok, log = build(directory, *FUZZ_FLAGS, compiler="clang")
    tally.add("build the fuzz targets", ok, log)
    targets = sorted((ROOT / "test" / "fuzz").glob("fuzz_*.c"))
    tally.add("there are fuzz targets", bool(targets))
    seconds = os.environ.get("BOX_FUZZ_SECONDS", str(FUZZ_SECONDS))
    seed = os.environ.get("BOX_FUZZ_SEED", "1")  # 0: another walk each time
    for source in targets if ok else []:
        name = source.stem
        found = directory / "corpus" / name
        found.mkdir(parents=True, exist_ok=True)
        corpus = ROOT / "test" / "fuzz" / "corpus" / name.removeprefix("fuzz_")
        tally.add(f"{name}: its corpus is committed", any(corpus.iterdir()) if corpus.is_dir() else False)
        done = run([str(directory / "test" / "fuzz" / name), f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=10",
                    "-rss_limit_mb=2048", f"-artifact_prefix={directory}/", str(found), str(corpus)])
        tally.add(f"{name}: {seconds} s without a finding", done.returncode == 0, done.stderr[-4000:])


class Result(unittest.TextTestResult):
    """Counts what passed, too."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def run_module(name):
    """The tests of one module of the lab's: a dictionary that JSON carries, with all that they printed."""
    text = io.StringIO()
    start = time.monotonic()
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    result = unittest.TextTestRunner(text, verbosity=2, resultclass=Result).run(suite)
    return {"module": name, "passed": result.passed, "text": text.getvalue(), "seconds": time.monotonic() - start,
            "failed": [str(test) for test, _ in result.failures + result.errors]
            + [f"{test}: unexpected success" for test in result.unexpectedSuccesses],
            "skipped": [(str(test), reason) for test, reason in result.skipped]}


def work():
    """The other end of a Worker: a module's name a line in, its result a line out. The lab goes down at the end."""
    sys.path.insert(0, str(ROOT / "test" / "lab"))
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a test prints by itself is no result
    for line in sys.stdin:
        print(json.dumps(run_module(line.strip())), file=results, flush=True)
    return 0


class Worker:
    """A process with a lab of its own that runs modules one after the other."""

    def __init__(self, number):
        self.process = subprocess.Popen(["/usr/bin/python3", __file__, "--worker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, cwd=ROOT,
                                        env={**os.environ, "BOX_LAB": f"{os.environ.get('BOX_LAB', 'test')}-{number}"})

    def run(self, name):
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return {"module": name, "passed": 0, "text": "", "seconds": 0, "failed": [f"{name}: its process ended"], "skipped": []}

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def take_in(tally, result):
    """A test that cannot run has failed; only what this machine cannot have (a VM) is counted apart, aloud."""
    print(result["text"], end="")
    print(f"   {result['module']}: {result['seconds']:.0f} s\n", flush=True)
    tally.passed += result["passed"]
    tally.failures += [f"lab: {name}" for name in result["failed"]]
    for test, reason in result["skipped"]:
        if reason.startswith("needs a VM"):
            tally.absent.append(f"{test}: {reason}")
        else:
            tally.failures.append(f"lab: {test}: skipped: {reason}")


def stage_lab(tally, modules=()):
    """Runs the integration tests against a real Incus in labs, two side by side, with the sanitized build."""
    ok, log = build(SANITIZED, "-Db_sanitize=address,undefined", "-Db_lundef=false")
    if not ok:
        tally.add("build for the lab", False, log)
        return
    os.environ.setdefault("BOX_BINARY", str(SANITIZED / "src" / "cli" / "box"))
    names = list(modules) or [path.stem for path in sorted((ROOT / "test" / "lab").glob("test_*.py"))]
    alone = [name for name in names if name in ALONE]
    queue = [name for name in LONGEST if name in names]
    queue += [name for name in names if name not in alone and name not in queue]
    lock = threading.Lock()

    def serve(worker):
        while True:
            with lock:
                if not queue:
                    break
                name = queue.pop(0)
            result = worker.run(name)
            with lock:
                take_in(tally, result)
        worker.end()

    threads = [threading.Thread(target=serve, args=(Worker(number),)) for number in range(1, min(WORKERS, len(queue)) + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if alone:
        worker = Worker(0)
        for name in alone:
            take_in(tally, worker.run(name))
        worker.end()


STAGES = {"tree": stage_tree, "unit": stage_unit, "clang": stage_clang, "sanitized": stage_sanitized,
          "fuzz": stage_fuzz, "lab": stage_lab}


def main(arguments):
    if arguments == ["--worker"]:
        return work()
    if arguments and arguments[0] in ("-h", "--help", "--list"):
        print(__doc__.strip())
        for name, stage in STAGES.items():
            print(f"    {name:10} {stage.__doc__}")
        return 0
    tally = Tally()
    wanted = {}
    for argument in arguments or list(STAGES):
        name, _, module = argument.partition(":")
        if name not in STAGES:
            print(f"check: no stage {name}; ./check --list names them", file=sys.stderr)
            return 2
        wanted.setdefault(name, [])
        if module:
            wanted[name].append(module)
    for name, modules in wanted.items():
        start = time.monotonic()
        print(f"== {name}: {STAGES[name].__doc__}", flush=True)
        before = tally.passed, len(tally.failures)
        STAGES[name](tally, *([modules] if modules else []))
        print(f"   {tally.passed - before[0]} passed, {len(tally.failures) - before[1]} failed "
              f"in {time.monotonic() - start:.0f} s", flush=True)
    for line in tally.absent:
        print(f"NOT RUN, this machine has no VM: {line}")
    for name in tally.failures:
        print(f"failed: {name}")
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 1 if tally.failures or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
