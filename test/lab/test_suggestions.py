"""Whatever command a message or a help text names is one that can be typed, and leads on. Against a real daemon in the lab.

That the command and its flags exist is held by test_cli.py; here they are all run.
"""
import re
import tempfile
import unittest
from pathlib import Path

import daily
import harness

LAB = harness.Lab()
BOX, FRESH = "say-box", "say-fresh"
# What a word stands for; a lone %s is the box unless its command says otherwise.
WORDS = {"BOX": BOX, "a": BOX, "it": BOX, "work": BOX, "%u": "3000", "PORT": "3000", "HOSTPORT": "8080", "NAME": FRESH,
         "COMMAND": "exec", "CMD...": "true", "LABEL": "label", "IMAGE": harness.IMAGE}
FIRST = {"help": "exec", "image build": harness.IMAGE, "new": FRESH, "image rm": harness.IMAGE}
# These take minutes, or the terminal; their flags are held by test_cli.py.
NOT_RUN = {"drill", "prove", "shell", "tmux", "wipe", "new", "import", "export", "firewall watch"}
LAST = ("rename", "down", "rm", "teardown-host")


def setUpModule():
    LAB.ready()
    LAB.remove_boxes("say-")
    daily.launch_plain(LAB, BOX)


def tearDownModule():
    LAB.remove_boxes("say-")


def without_prose(text):
    """The command alone, of "box doctor tells more": an argument is a placeholder, a flag, a path; behind -- all is."""
    words = text.split()
    kept = words[:2]
    for index, word in enumerate(words[2:], 2):
        if word == "--":
            return " ".join(kept + words[index:])
        if not re.fullmatch(r"%.*|[A-Z]+(\.\.\.)?|--?[a-z-]+|.*[/.:=].*|[0-9]+|\[.*", word) and word not in WORDS and index > 2:
            break
        kept.append(word)
    return " ".join(kept)


def suggestions():
    """Every command that a text in the sources names, with the files that name it."""
    found = {}
    for path in sorted((harness.ROOT / "src").rglob("*.c")):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        code = re.sub(r'"\s*\n\s*"', "", code)  # literals that the compiler joins
        for literal in re.findall(r'"((?:\\.|[^"\\\n])*)"', code):
            literal = literal.replace("\\n", "\n").replace('\\"', '"')
            if re.fullmatch(r"box [a-z-]+(?: [a-z-]+)?(?: %s| [A-Z]+| --[a-z-]+)*", literal):
                literal = ": " + literal  # a remedy that is nothing but the command
            for match in re.finditer(r"(?:^ {4}|: |sudo )(box [a-z][^'`\n;,)(|]*)", literal, re.M):
                text = re.split(r" {2,}|>>|\.$", match.group(1))[0].strip()  # what follows on the line explains it
                found.setdefault(without_prose(text), set()).add(path.name)
    return found


class Suggestions(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.names = set()
        for line in LAB.box("help").stdout.splitlines():
            match = re.match(r"  ([a-z-]+(?: [a-z-]+)?)(?= |$)", line)
            if match:
                cls.names.add(match.group(1))

    def command_of(self, words):
        pair = " ".join(words[1:3])
        return pair if pair in self.names else words[1]

    def fill(self, text):
        """The words that a person would type."""
        words = text.replace("%s%s", "%s").replace("%.0fGiB", "20GiB").replace("%s:", "a:").split()
        command = self.command_of(words)
        filled = []
        for index, word in enumerate(words):
            if index == 2 and word.isalpha() and word.islower() and word not in WORDS and len(command.split()) == 1:
                break  # prose
            if word in ("%s", "NAME") and command in FIRST and len(filled) == len(command.split()) + 1:
                filled.append(FIRST[command])
            elif word == "%s":
                filled.append(BOX if BOX not in filled else "label")
            elif word.startswith("["):
                break
            else:
                filled.append(WORDS.get(word, word).replace("BOX:", BOX + ":").replace("a:", BOX + ":", 1)
                              if ":" in word or word in WORDS else word)
        return filled

    def test_every_one_can_be_typed(self):
        found = suggestions()
        self.assertGreater(len(found), 30)
        rows = [(self.command_of(text.split()), text, files) for text, files in found.items()]
        rows.sort(key=lambda row: (LAST.index(row[0]) if row[0] in LAST else -1, row[1]))
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            for name in ("FILE", "PATH", "src"):
                (Path(directory) / name).write_text("words")
            daily.as_root(LAB, BOX, "mkdir -p work; echo report >work/report.txt; echo words >PATH")
            LAB.run(["incus", "snapshot", "create", BOX, "label"])
            for command, text, files in rows:
                if command in NOT_RUN or text.endswith(("...", " -c")):
                    continue
                with self.subTest(text, files=sorted(files)):
                    words = self.fill(text)
                    done = LAB.run(["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", directory, harness.binary(), *words[1:]],
                                   timeout=120)
                    # An act that asks, where nobody can answer; a command as a noun.
                    asked = any(word in done.stderr for word in ("--force", "--yes", "missing"))
                    self.assertTrue(done.returncode != 2 or asked, f"{words}: {done.stderr}")


class Forward(unittest.TestCase):
    """The remedy is followed to the letter, and what was refused goes through."""

    def remedy(self, done):
        self.assertNotEqual(done.returncode, 0)
        match = re.search(r"(?m)^ +(?:[^\n]*: )?(?:sudo )?box ([^\n]*)$", done.stderr)
        self.assertIsNotNone(match, done.stderr)
        return match.group(1).split()

    def follow(self, *refused):
        words = self.remedy(LAB.box(*refused))
        done = LAB.box(*words, timeout=120)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return words

    def setUp(self):
        LAB.run(["incus", "start", BOX])
        if LAB.box("info", BOX).returncode != 0:
            daily.launch_plain(LAB, BOX)

    def test_a_box_that_is_down(self):
        for refused in (("exec", BOX, "--", "true"), ("cp", "/etc/hostname", f"{BOX}:"), ("expose", BOX, "3100")):
            with self.subTest(refused):
                LAB.must(["incus", "stop", "--force", BOX])
                self.follow(*refused)
                self.assertEqual(LAB.box(*refused).returncode, 0)
        LAB.box("expose", BOX, "--remove", "3100")

    def test_what_is_not_there(self):
        self.follow("exec", "say-nothing", "--", "true")
        self.follow("expose", BOX, "--remove", "4000")
        self.follow("rm", "say-nothing", "--force")

    def test_what_is_mistyped(self):
        self.assertEqual(self.remedy(LAB.box("lsit")), ["list"])
        self.assertEqual(self.remedy(LAB.box("exce", BOX, "--", "true")), ["exec"])
        self.assertIn("did you mean --json?", LAB.box("list", "--jsno").stderr)

    def test_no_terminal(self):
        for command in ("shell", "tmux"):
            self.assertEqual(self.remedy(LAB.box(command, BOX)), ["exec", BOX, "--", "CMD..."])

    def test_the_other_end_of_a_door(self):
        self.assertEqual(LAB.box("expose", BOX, "3200").returncode, 0)
        try:
            self.follow("expose", BOX, "3200")  # has one already: it says how to close it
        finally:
            LAB.box("expose", BOX, "--remove", "3200")


if __name__ == "__main__":
    unittest.main()
