"""The command line: slips are named with what was meant, every command helps, shells complete."""
import re
import shutil
import subprocess

import pytest

from conftest import binary

COMMANDS = ("diff preflight plan match instrument run align bisect noise certify check infer invariants record against replay store compare dump export doctor help "
            "completion man").split()


@pytest.mark.parametrize("words, said", [
    (["dif", "p", "p"], "no command 'dif'; did you mean 'diff'?"),
    (["confirm", "--help"], "no command 'confirm'"),
    (["--vers"], "no option '--vers'; did you mean '--version'?"),
    (["plan", "--statik", "."], "no option '--statik'; did you mean '--static'?"),
    (["dump", "log", "--formt=csv"], "no option '--formt'; did you mean '--format'?"),
    (["dump", "a", "b", "c"], "'c' is one argument too many"),
    (["help", "determinsm"], "no topic 'determinsm'; did you mean 'determinism'?"),
    (["align"], "DIR_A is required"),
])
def test_a_slip_is_named(opguard, words, said):
    done = opguard(*words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


@pytest.mark.parametrize("words, first", [
    (["diff", "a", "a", "python", "train.py"], "python"),
    (["diff", "a", "a", "python", "train.py", "--lr", "3"], "python"),
    (["diff", "a", "python", "train.py"], "python"),
    (["diff", "a", "a", "./train.sh"], "./train.sh"),
    (["run", "--log", "x", "./train.sh", "-v"], "./train.sh"),
    (["noise", "a", "python", "train.py"], "python"),
    (["preflight", "-o", "plan.json", "python", "train.py", "--steps", "3"], "python"),
    (["instrument", "a", "python", "train.py"], "python"),
])
def test_a_forgotten_double_dash(opguard, tmp_path, words, first):
    (tmp_path / "a").mkdir()
    done = opguard(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert f"put -- before '{first}'" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "plan.json").exists() and not (tmp_path / "x").exists()


def test_alone_it_shows_its_help(opguard):
    done = opguard()
    assert done.returncode == 2 and done.stdout == opguard("--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps(opguard, command):
    text = opguard(command, "--help").stdout
    assert text == opguard("help", command).stdout or text in opguard("help", command).stdout
    assert text.startswith(f"Usage: opguard {command}") and f"  opguard {command}" in text.split("Example")[1] or command in (
        "completion", "man"), text
    # A type says nothing: FILE, DIR, N do.
    assert not re.search(r"\b(TEXT|UINT|INT|FLOAT)\b", text), text
    takes = command in ("diff", "preflight", "run", "bisect", "noise", "certify", "check", "record", "against", "replay", "instrument")
    assert bool(re.search(r"^Usage: .* \[?-- ", text)) == (takes or command == "doctor")
    # What an option does begins with a capital.
    for line in re.findall(r"^  -\S+.*?  +(\S.*)", text, re.M):
        assert line[0].isupper(), line


def test_every_page_that_help_names_is_there(opguard):
    named = set()
    for command in COMMANDS:
        named |= set(re.findall(r"opguard help (\w+)", re.sub(r"\s+", " ", opguard(command, "--help").stdout)))
    assert {"determinism", "noise", "json", "runtime", "tensors", "judgement"} <= named
    for topic in named:
        done = opguard("help", topic)
        assert done.returncode == 0 and re.search(r"^# ", done.stdout, re.M), topic
    assert "determinism" in opguard("help").stdout


def complete(opguard, tmp_path, *words):
    """What bash offers for the last word."""
    script = tmp_path / "complete.bash"
    script.write_text(opguard("completion", "bash").stdout)
    text = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=({text}); COMP_CWORD={len(words) - 1}; _opguard; "
                           'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes(opguard, tmp_path):
    (tmp_path / "verdict.json").touch()
    (tmp_path / "folder").mkdir()
    assert complete(opguard, tmp_path, "opguard", "d") == ["diff", "digest", "dump", "doctor"]
    assert complete(opguard, tmp_path, "opguard", "diff", "--no") == ["--no-prove"]
    assert complete(opguard, tmp_path, "opguard", "diff", "--color", "a") == ["auto", "always"]
    assert complete(opguard, tmp_path, "opguard", "diff", "--json", "v") == ["verdict.json"]
    assert complete(opguard, tmp_path, "opguard", "diff", "--work", "") == ["folder"]
    assert complete(opguard, tmp_path, "opguard", "dump", "--format", "") == ["text", "json", "csv"]
    assert complete(opguard, tmp_path, "opguard-instrument", ".", "--str") == ["--strip"]
    # Behind -- are the program's own words.
    assert complete(opguard, tmp_path, "opguard", "diff", "a", "b", "--", "python", "--no") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_theirs(opguard, tmp_path, shell):
    path = tmp_path / shell
    path.write_text(opguard("completion", shell).stdout)
    for command in COMMANDS:
        assert command in path.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its completion is printed, and not read here")
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_manual_page(opguard):
    page = opguard("man").stdout
    for command in COMMANDS:
        assert f".SS opguard {command}" in page
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: the page is printed, and not set here")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "did not converge" not in done.stdout and len(done.stdout.splitlines()) > 100


def test_the_build_leaves_them_where_systems_look(opguard):
    share = binary("opguard").parents[2] / "share"
    for path, words in {"man/man1/opguard.1": ["man"], "bash-completion/completions/opguard": ["completion", "bash"],
                        "zsh/site-functions/_opguard": ["completion", "zsh"],
                        "fish/vendor_completions.d/opguard.fish": ["completion", "fish"]}.items():
        if not (share / path).exists():
            pytest.skip("built without the target opguard_shell_files")
        assert (share / path).read_text() == opguard(*words).stdout
