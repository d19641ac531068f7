#!/usr/bin/python3
"""Checks the house rules that can be read off the sources. Prints one line a rule and file: 'ok NAME' or 'bad NAME'.

Floors look down only; base names are unique; a header compiles alone; a function belongs to its file's prefix; nothing
is too long; no banned function; no word that marks unfinished work; every unit test asserts.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A floor, and those that it may look into besides itself. src/host and src/incus are neighbours that never meet.
FLOORS = {
    "base": [],
    "host": ["base"],
    "incus": ["base"],
    "stack": ["base", "host", "incus"],
    "box": ["base", "host", "incus", "stack"],
    "doctor": ["base", "host", "incus", "stack", "box"],
    "drill": ["base", "host", "incus", "stack", "box", "doctor"],
    "cli": ["base", "host", "incus", "stack", "box", "doctor", "drill"],
}
BANNED = re.compile(r"\b(system|popen|strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|alloca|sleep|usleep)\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|stubbed", re.I)
MOST_LINES, MOST_FUNCTION_LINES = 800, 80
# Files whose functions carry names that the field gave them, not the file's.
OTHER_PREFIX = {"memory.c": "x"}


def report(ok, name):
    print(("ok " if ok else "bad ") + name)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).exists()]


def without_comments(text):
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_floor(path, text):
    floor = path.relative_to(ROOT / "src").parts[0]
    allowed = FLOORS.get(floor)
    report(allowed is not None, f"{path.relative_to(ROOT)}: stands on a known floor")
    for target in re.findall(r'^#include "([^"]+)"', text, re.M):
        other = target.split("/")[0]
        if other != floor and other not in (allowed or []):
            report(False, f"{path.relative_to(ROOT)}: includes {target}, which is not below it")


def functions(code):
    """Yields (name, static, lines) of every function defined in the code."""
    for match in re.finditer(r"^(?!static const|struct \w+ \{|enum|typedef|#)([A-Za-z_][^;{}#\n]*(?:\n[^;{}#\n]+)?)\n\{\n",
                             code, re.M):
        end = code.find("\n}", match.end())
        name = re.search(r"(\w+)\s*\(", match.group(1))
        if name and end > 0:
            yield name.group(1), "static" in match.group(1).split(), code.count("\n", match.end(), end) + 1


def check_source(path, text):
    name = path.relative_to(ROOT)
    code = without_comments(text)
    lines = text.count("\n")
    if lines > MOST_LINES:
        report(False, f"{name}: {lines} lines")
    for match in BANNED.finditer(code):
        report(False, f"{name}:{code.count(chr(10), 0, match.start()) + 1}: {match.group(1)}() is banned")
    for function, static, length in functions(code):
        if length > MOST_FUNCTION_LINES:
            report(False, f"{name}: {function}() has {length} lines")
        if name.parts[0] == "src" and name.suffix == ".c" and not static and function != "main" \
                and not function.startswith(OTHER_PREFIX.get(path.name, path.stem)):
            report(False, f"{name}: {function}() does not carry the prefix of its file")


def check_header(path):
    done = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                           "-fsyntax-only", "-x", "c", "-I", str(ROOT / "src"), str(path)],
                          capture_output=True, text=True)
    report(done.returncode == 0, f"{path.relative_to(ROOT)}: compiles alone" + done.stderr[:300].replace("\n", " "))


ASSERTS = re.compile(r"\bassert|self\.fail|Raises|AssertionError")


def definitions(text):
    """Yields (name, body) of each function and method; one that stands in another belongs to it."""
    for chunk in re.split(r"\n(?= {0,4}def )", text):
        name = re.match(r" *def (\w+)", chunk)
        if name:
            yield name.group(1), chunk.split("\n", 1)[-1]


def check_tests(paths):
    """Every test of the lab asserts, itself or through a helper."""
    found = [(path, name, body) for path in paths for name, body in definitions(path.read_text())]
    asserting = {name for _, name, body in found if ASSERTS.search(body)}
    for path, name, body in found:
        if path.name.startswith("test_") and name.startswith("test_"):
            ok = ASSERTS.search(body) or asserting & set(re.findall(r"\b(\w+)\(", body))
            report(bool(ok), f"{path.relative_to(ROOT)}: {name} asserts")


def main():
    sources = tracked("*.c", "*.h")
    for path in sources:
        text = path.read_text(errors="replace")
        before = path.relative_to(ROOT).parts
        if before[0] == "src":
            check_floor(path, text)
        check_source(path, text)
        if path.suffix == ".h" and before[0] == "src":
            check_header(path)
        if before[0] == "test" and path.name.startswith("test_") and path.suffix == ".c":
            report("assert_" in text, f"{path.relative_to(ROOT)}: asserts")
    names = [path.name for path in sources if path.relative_to(ROOT).parts[0] in ("src", "probe")]
    for name in sorted({name for name in names if names.count(name) > 1}):
        report(False, f"{name}: two files of that name")
    check_tests(tracked("test/*.py"))
    for path in tracked():
        if path.name == "tree.py" or path.suffix in (".png",) or "corpus" in path.parts:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if UNFINISHED.search(line):
                report(False, f"{path.relative_to(ROOT)}:{number}: unfinished work: {line.strip()[:60]}")
    report(bool(sources), "the sources were found")


if __name__ == "__main__":
    sys.exit(main())
