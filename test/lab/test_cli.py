"""The command line's contract, and that help, man page and completions tell the same. Needs no daemon and no lab."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

NOWHERE = {"INCUS_SOCKET": "/nonexistent/unix.socket", "PATH": os.environ["PATH"]}


def box(*words, env=None, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([harness.binary(), *words], capture_output=True, text=True, timeout=30, check=False,
                          env=NOWHERE if env is None else env, **options)


def shell(script, env=None, **options):
    """Runs a line of sh in which $BOX is the binary."""
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30, check=False,
                          stdin=subprocess.DEVNULL, env={**(NOWHERE if env is None else env), "BOX": harness.binary()},
                          **options)


def commands():
    """Every command that help lists, by its usage: {"exec": "exec BOX -- CMD..."}; groups are told by two words."""
    usages = re.findall(r"^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?)((?: [\[A-Z-][^ \n]*)*)(?:  |$)", box("help").stdout, re.M)
    return {name: (name + arguments) for name, arguments in usages}


def flags(name):
    """The flags that `box help NAME` lists: {"stdin": "i", "memory": ""}."""
    text = box("help", *name.split()).stdout.split("\nFlags\n")[1]
    return {flag: letter for letter, flag in re.findall(r"^  (?:-(\w), |    )--([a-z-]+)", text, re.M)}


class Contract(unittest.TestCase):
    def test_exit_status_of_help_is_0_and_it_goes_to_stdout(self):
        for words in (["help"], ["--help"], ["-h"], ["help", "exec"], ["exec", "--help"], ["exec", "-h"], ["image", "--help"]):
            with self.subTest(words):
                done = box(*words)
                if words[0] == "image" and "image build" not in commands():
                    self.skipTest("no such group in this build")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("usage: box", done.stdout)

    def test_help_wins_over_what_is_wrong_on_the_line(self):
        for words in (["exec", "--nonsense", "--help"], ["shell", "a", "b", "c", "--help"], ["exec", "--help", "--"]):
            self.assertEqual(box(*words).returncode, 0, words)
        self.assertNotEqual(box("exec", "a", "--", "--help").returncode, 0)

    def test_nothing_asked_is_asked_wrong(self):
        done = box()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage: box", done.stderr)

    def test_unknown_commands_name_the_nearest(self):
        for typed, meant in (("hlep", "help"), ("shel", "shell"), ("exce", "exec"), ("versoin", "version")):
            done = box(typed)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"there is no command 'box {typed}'", done.stderr)
            self.assertIn(f"did you mean: box {meant}\n", done.stderr)
        self.assertIn("box help", box("qqqqqqqqqq").stderr)

    def test_two_letters_that_changed_places_are_one_slip(self):
        for typed, meant in (("nwe", "new"), ("lsit", "list"), ("exce", "exec")):
            self.assertIn(f"did you mean: box {meant}\n", box(typed).stderr)

    def test_who_consents_in_other_words_hears_the_flag(self):
        for flag in ("--yes", "-y"):
            done = box("rm", "x", flag)
            self.assertEqual(done.returncode, 2)
            self.assertIn("did you mean --force?", done.stderr)

    def test_help_wants_one_command(self):
        done = box("help", "new", "extra")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'extra'", done.stderr)
        self.assertEqual(box("help", "image", "build").returncode, 0)

    def test_help_fits_into_the_columns_there_are(self):
        for columns, most in (("60", 59), ("20", 59), ("100", 99)):
            text = box("help", env={**NOWHERE, "COLUMNS": columns}).stdout
            summaries = [line for line in text.splitlines() if line.startswith(" " * 30)]
            self.assertTrue(summaries)
            self.assertLessEqual(max(map(len, summaries)), most, columns)
        self.assertEqual(box("help", env={**NOWHERE, "COLUMNS": "80"}).stdout, box("help").stdout)

    def test_every_command_refuses_an_unknown_flag_by_name(self):
        for name in commands():
            with self.subTest(name):
                for flag in ("--nonsense", "--nonsense=1", "-Z"):
                    done = box(*name.split(), "a", flag, "b")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f"unknown flag {flag.split('=')[0]}", done.stderr)
                    self.assertEqual(done.stdout, "")

    def test_flags_stand_anywhere_but_before_the_command(self):
        self.assertEqual(box("version", "--json").stdout, box("version", "--json", "--quiet").stdout)
        done = box("--json", "version")
        self.assertEqual(done.returncode, 2)
        self.assertIn("must stand behind a command", done.stderr)

    def test_every_command_counts_its_arguments(self):
        for name, usage in commands().items():
            with self.subTest(name):
                arguments = usage[len(name):].split()
                before = arguments[:arguments.index("--")] if "--" in arguments else arguments
                if any(not word.startswith("[") for word in before):
                    done = box(*name.split())
                    self.assertEqual(done.returncode, 2)
                    self.assertIn("usage: box " + usage, done.stderr)

    def test_version(self):
        self.assertRegex(box("version").stdout, r"^box \d+\.\d+\.\d+\n$")
        self.assertEqual(box("--version").stdout, box("version").stdout)

    def test_a_closed_or_full_stdout_is_a_failure(self):
        for redirect in (">&-", ">/dev/full"):
            for command in ("help", "version", "version --json", "help exec"):
                with self.subTest(command + redirect):
                    done = shell(f'"$BOX" {command} {redirect}')
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("writing to stdout", done.stderr)

    def test_a_reader_that_leaves_early_ends_it(self):
        done = shell('"$BOX" help | true')
        self.assertEqual(done.stderr, "")

    def test_no_daemon_is_said_once_with_a_remedy(self):
        done = box("exec", "a", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^box: .*\n     .+\n")

    def test_shell_without_a_terminal_says_so(self):
        done = box("shell", "a")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("needs a terminal", done.stderr)
        self.assertIn("box exec a --", done.stderr)

    def test_root_is_asked_for_by_name(self):
        if os.geteuid() != 0 or "setup-host" not in commands():
            self.skipTest("needs root to become somebody else, and setup-host")
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            copy = shutil.copy(harness.binary(), directory)
            done = subprocess.run([copy, "setup-host"], capture_output=True, text=True, check=False, user=65534,
                                  stdin=subprocess.DEVNULL, env=NOWHERE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("must run as root", done.stderr)


class Surroundings(unittest.TestCase):
    def test_home_unset_empty_or_not_there(self):
        for home in (None, "", "/nonexistent", "/proc"):
            env = dict(NOWHERE) if home is None else {**NOWHERE, "HOME": home}
            self.assertEqual(box("help", env=env).returncode, 0)
            self.assertEqual(box("version", env=env).returncode, 0)

    def test_no_environment_at_all(self):
        self.assertEqual(box("help", env={}).returncode, 0)

    def test_a_directory_that_is_gone(self):
        done = shell('d=$(mktemp -d) && cd "$d" && rmdir "$d" && "$BOX" help')
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_any_language(self):
        plain = box("help").stdout
        for language in ("C", "POSIX", "tlh_KX.UTF-8", "de_DE.ISO-8859-1", "\xff", ""):
            env = {**NOWHERE, "LANG": language, "LC_ALL": language}
            self.assertEqual(box("help", env=env).stdout, plain)

    def test_closed_descriptors(self):
        for redirect in ("<&-", "2>&-", "<&- 2>&-"):
            done = shell(f'"$BOX" version {redirect}')
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^box \d")
        for redirect in ("<&- >&- 2>&-", ">&- 2>&-"):
            self.assertEqual(shell(f'"$BOX" version {redirect}').returncode, 1)

    def test_no_colours_in_a_file(self):
        for words in (["help"], ["nonsense"], ["exec", "a", "--", "true"]):
            done = box(*words, env={**NOWHERE, "TERM": "xterm-256color"})
            self.assertNotIn("\033", done.stdout + done.stderr)

    def test_help_loads_no_library_that_it_does_not_need(self):
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run(["strace", "-o", log.name, "-e", "trace=openat,connect,socket", harness.binary(), "help"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # which ptrace forbids
            opened = set(re.findall(r'openat\([^"]*"([^"]+)"', log.read()))
            log.seek(0)
            self.assertNotRegex(log.read(), r"socket\(|connect\(")
        libraries = {os.path.basename(path).split(".so")[0] for path in opened if ".so" in path}
        self.assertLessEqual(libraries, {"ld", "libc", "libjansson", "libwslay", "libasan", "libubsan", "libm", "libgcc_s",
                                         "libstdc++", "libpthread", "libdl", "librt", "libresolv"})


class Descriptions(unittest.TestCase):
    """Help, man page and completions come from one table; this compares what they say all the same."""

    def test_each_command_has_help_of_its_own(self):
        listed = commands()
        self.assertLessEqual({"exec", "shell", "incus", "help", "version"}, set(listed))
        for name, usage in listed.items():
            with self.subTest(name):
                text = box("help", *name.split()).stdout
                self.assertTrue(text.startswith(f"usage: box {usage}\n"), text)
                self.assertEqual(text, box(*name.split(), "--help").stdout)
                self.assertLessEqual({"help", "quiet", "verbose"}, set(flags(name)))
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 80, line)

    def test_man_page_names_every_command_and_flag(self):
        page = box("generate", "man").stdout
        sections = re.split(r"^\.SS ", page, flags=re.M)[1:]
        described = {}
        for section in sections:
            heading, body = section.split("\n", 1)
            described[heading.replace("\\-", "-")] = body.split("\n.SH ")[0].replace("\\-", "-")
        for name, usage in commands().items():
            with self.subTest(name):
                body = described.pop("box " + usage)
                named = re.findall(r"^\.B (?:-(\w), )?--([a-z-]+)", body, re.M)
                self.assertEqual({flag: letter for letter, flag in named},
                                 {flag: letter for flag, letter in flags(name).items()
                                  if flag not in ("help", "quiet", "verbose")})
        self.assertEqual(described, {}, "the man page describes commands that help does not list")

    def test_man_page_is_sound(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(box("generate", "man").stdout)
            file.flush()
            done = subprocess.run(["man", "--warnings", "-l", "-Tutf8", file.name], capture_output=True, text=True,
                                  check=False, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("EXIT STATUS", re.sub(".\b", "", done.stdout))

    def test_generate_knows_four_things(self):
        self.assertEqual(box("generate", "nothing").returncode, 2)


class TemplateFormat(unittest.TestCase):
    """box.env(5) and the help of `box templates` name the keys that the reader takes, all of them and no other."""

    def test_the_same_keys_everywhere(self):
        page = box("generate", "man-env").stdout
        described = re.findall(r"(?m)^\.B (BOX_[A-Z_]+)$", page)
        self.assertGreater(len(described), 5)
        self.assertEqual(described, re.findall(r"(?m)^    (BOX_[A-Z_]+) ", box("help", "templates").stdout))
        values = {"BOX_CPU": "2", "BOX_MEMORY": "2GiB", "BOX_DISK": "10GiB", "BOX_REQUIRE_VM": "true", "BOX_AUTOSTART": "true"}
        with tempfile.TemporaryDirectory() as directory:
            template = Path(directory) / "t"
            template.mkdir()
            (template / "user-data.yaml").write_text("#cloud-config\n")
            for keys, fault in ((described, False), ([*described, "BOX_NETWORK"], True)):
                (template / "box.env").write_text("".join(f'{key}="{values.get(key, "x")}"\n' for key in keys))
                rows = json.loads(box("templates", "--json", "--template-dir", directory).stdout)
                found = [row["fault"] for row in rows if row["name"] == "t"]
                self.assertEqual([text is not None for text in found], [fault], found)

    def test_the_pages_are_sound(self):
        for what in ("man", "man-env"):
            done = subprocess.run(["man", "--warnings", "-l", "-"], input=box("generate", what).stdout, text=True,
                                  capture_output=True, check=False, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), what)


class Suggestions(unittest.TestCase):
    """Whatever command an error, a remedy or a help text names must exist, with the flags that it names."""

    def test_every_command_that_is_named_exists(self):
        if not {"new", "list", "info", "start", "down", "rm"} <= set(commands()):
            self.skipTest("this build lacks commands that others name")
        listed = set(commands()) | {name.split()[0] for name in commands()}
        for path in sorted((harness.ROOT / "src").rglob("*.c")):
            code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
            for literal in re.findall(r'"((?:\\.|[^"\\\n])*)"', code):
                if re.fullmatch(r"box [a-z-]+(?: [a-z-]+)?(?: %s| [A-Z]+| --[a-z-]+)*", literal):
                    literal = ": " + literal  # a remedy that is nothing but the command
                for match in re.finditer(r"(?:: |, |[`']|sudo |    )box ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?((?: [^ `',;)]+)*)",
                                         literal):
                    name, second, rest = match.groups()
                    with self.subTest(f"{path.name}: {match.group()}"):
                        self.assertIn(name, listed)
                        full = f"{name} {second}" if second and f"{name} {second}" in listed else name
                        for flag in re.findall(r" --([a-z-]+)", rest.split(" -- ")[0]):
                            self.assertIn(flag, flags(full))


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.files = {}
        for kind in ("bash", "zsh", "fish"):
            cls.files[kind] = os.path.join(cls.directory.name, kind)
            with open(cls.files[kind], "w", encoding="utf-8") as file:
                file.write(box("generate", kind).stdout)
        fake = os.path.join(cls.directory.name, "box")
        with open(fake, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1" = complete ] && [ "$2" = BOX ] && printf "%s\\n" alpha beta\nexit 0\n')
        os.chmod(fake, 0o755)
        cls.env = {**os.environ, "PATH": cls.directory.name + ":" + os.environ["PATH"]}

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def bash(self, *words):
        """What bash offers with the cursor behind the last of the words."""
        done = subprocess.run(
            ["bash", "-c", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _box; printf "%s\\n" "${COMPREPLY[@]}"',
             "bash", self.files["bash"], "box", *words], capture_output=True, text=True, check=False, env=self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(done.stdout.split())

    def test_bash_offers_commands_flags_and_names(self):
        self.assertEqual(self.bash(""), sorted({name.split()[0] for name in commands()}))
        self.assertEqual(self.bash("she"), ["shell"])
        self.assertEqual(self.bash("exec", ""), ["alpha", "beta"])
        self.assertEqual(self.bash("exec", "al"), ["alpha"])
        self.assertEqual(self.bash("exec", "alpha", "--", ""), [])
        self.assertEqual(self.bash("exec", "-i", ""), ["alpha", "beta"])
        self.assertEqual(self.bash("help", "ver"), ["version"])
        self.assertEqual(self.bash("firewall", "w"), ["watch"])
        self.assertEqual(self.bash("snapshot", ""), ["alpha", "beta", "rm"])
        self.assertEqual(self.bash("snapshot", "rm", ""), ["alpha", "beta"])
        self.assertEqual(self.bash("nonsense", ""), [])
        for name in commands():
            self.assertEqual(self.bash(*name.split(), "--"), sorted("--" + flag for flag in flags(name)), name)

    def test_zsh_offers_the_same(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        script = 'compdef() { :; }; source "$1"; shift; _box_offer "$@"; print -r -- $reply'
        for words, expected in ((["", "exec"], "alpha beta"), (["", "exec", "alpha", "--"], ""), (["", "help"], None)):
            done = subprocess.run(["zsh", "-fc", script, "zsh", self.files["zsh"], *words], capture_output=True, text=True,
                                  check=False, env=self.env)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            if expected is not None:
                self.assertEqual(done.stdout.split(), expected.split())

    def test_fish_names_every_command_and_flag(self):
        with open(self.files["fish"], encoding="utf-8") as file:
            text = file.read()
        for name in commands():
            offered = re.findall(rf"^complete -c box -n '__box_at {name}' -l ([a-z-]+)", text, re.M)
            self.assertEqual(sorted(offered), sorted(flags(name)), name)
        if shutil.which("fish"):
            done = subprocess.run(["fish", "--no-execute", self.files["fish"]], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_fish_offers_commands_flags_and_names(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        for line, expected in (("box she", ["shell"]), ("box exec ", ["alpha", "beta"]), ("box exec al", ["alpha"]),
                               ("box exec alpha -- ", []), ("box exec --no", ["--no-stdin"]),
                               ("box firewall w", ["watch"])):
            done = subprocess.run(["fish", "-c", f"source {self.files['fish']}; complete -C'{line}'"], text=True,
                                  capture_output=True, check=False, env={**self.env, "HOME": self.directory.name})
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            self.assertEqual([row.split("\t")[0] for row in done.stdout.splitlines()], expected, line)


if __name__ == "__main__":
    unittest.main()
