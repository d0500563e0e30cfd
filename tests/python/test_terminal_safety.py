"""No text of a log, a plan, a file name or a repository drives the terminal or fakes a line of ours, in any command."""

import json
import re
import shutil

import pytest
from conftest import static_plan

# Clears the screen, sets the title and the clipboard, C1 forms of the same, a bidi override, lines of its own.
PAYLOADS = ["\x1b[2J", "\x1b]0;t\x07", "\x1b]52;c;aGk=\x07", "\x9b2J", "\x85x", "\u202egnp", "\u2066x", "\r", "\nopguard: error: none", "\x08\x7f"]
DRIVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
EVIL = "".join(PAYLOADS)


def check(done, says=None):
    for text in (done.stdout, done.stderr):
        assert not DRIVES.search(text), ascii(DRIVES.search(text))
        assert not re.search(r"^opguard: error: none", text, re.M)
    if says:
        assert says in done.stdout + done.stderr
    return done


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text("import torch\nx = torch.ones(2)\ny = x * 2\n")
    return tree


@pytest.fixture
def plan(opguard, tree, tmp_path):
    return static_plan(opguard, tree, tmp_path)


def test_every_text_of_a_plan(opguard, tree, plan, tmp_path):
    plain = json.loads(plan.read_text())

    def texts(value, at=()):
        if isinstance(value, str):
            yield at
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield from texts(inner, (*at, key))

    shown = 0
    for at in texts(plain):
        evil = json.loads(plan.read_text())
        inner = evil
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] += EVIL
        path = tmp_path / "evil.json"
        path.write_text(json.dumps(evil))
        for done in (
            opguard("dump", path),
            opguard("match", "--plan", path, tree),
            opguard("match", "--plan", path, "--json", "-", tree),
            opguard(tree, "--plan", path, "--check", program="opguard-instrument"),
        ):
            check(done)
            shown += "\\x1b]0;t\\x07" in done.stdout + done.stderr
    assert shown > 10  # or nothing was tried


def test_names_of_files_and_folders(opguard, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    name = EVIL.replace("/", "") + ".py"
    (tree / name).write_text("x = (\n")
    check(opguard("plan", "--static", tree, "-o", tmp_path / "p.json"), "\\x1b]0;t\\x07")
    check(opguard(tree, "--all-sites", program="opguard-instrument"), "\\x1b]0;t\\x07")
    for command in (["dump"], ["align"], ["plan", "-o", tmp_path / "q", "--static"], ["compare"]):
        check(opguard(*command, tmp_path / name, *([tree] if command[0] in ("align", "compare") else [])), "\\x1b]0;t\\x07")


def test_a_long_line_is_shown_in_part(opguard, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "long.py").write_text("x = " + "a + " * 300_000 + "= 1\n")
    done = opguard("plan", "--static", tree, "-o", tmp_path / "p.json")
    assert len(done.stderr) < 2000


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_a_log(opguard, tree, tmp_path, form):
    assert opguard(tree, "--all-sites", "--apply", program="opguard-instrument").returncode == 0
    text = (tree / "train.py").read_text()
    (tree / "train.py").write_text(text.replace('og("', 'og("' + repr(EVIL)[1:-1]))
    opguard("run", "--log", tmp_path / "log", "--", "python", "train.py", cwd=tree)
    (log,) = (tmp_path / "log").glob("*.log")
    check(opguard("dump", "--format", form, tmp_path / "log"), "\\x1b]0;t\\x07" if form != "json" else "\\u001b]0;t\\u0007")
    moved = tmp_path / EVIL.replace("/", "")
    shutil.move(tmp_path / "log", moved)
    check(opguard("dump", moved))
    check(opguard("align", moved, moved, "--color", "never"))
