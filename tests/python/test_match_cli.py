"""opguard plan --static, match --json and --explain, and opguard-instrument --check, as a user or CI calls them."""
import json

import pytest

BEFORE = """import torch

def attention(q, k, v):
    s = torch.matmul(q, k.transpose(-2, -1))
    p = torch.softmax(s, dim=-1)
    return torch.matmul(p, v)
"""
RENAMED = "import torch\n\nSCALE = 2\n\n" + BEFORE.split("\n\n", 1)[1].replace("p = ", "weights = ").replace("matmul(p,", "matmul(weights,")
REMOVED = BEFORE.replace("    p = torch.softmax(s, dim=-1)\n", "    p = s\n")


@pytest.fixture
def planned(opguard, tmp_path):
    """A function that makes a plan of BEFORE and a tree that holds the text given; returns (plan, tree)."""

    def make(after, name="model.py"):
        old, new, plan = tmp_path / "old", tmp_path / "new", tmp_path / "plan.json"
        for tree, text, file in ((old, BEFORE, "model.py"), (new, after, name)):
            tree.mkdir()
            (tree / file).write_text(text)
        assert opguard("plan", "--static", old, "-o", plan).returncode == 0
        return plan, new

    return make


def answers(opguard, plan, tree, tmp_path):
    done = opguard("match", "--plan", plan, tree, "--json", tmp_path / "match.json")
    boundaries = json.loads((tmp_path / "match.json").read_text())["boundaries"]
    return done, {b["boundary"].split(":")[0]: b for b in boundaries}


def test_a_site_is_given_by_its_bytes(opguard, planned, tmp_path):
    plan, tree = planned(RENAMED)
    done, found = answers(opguard, plan, tree, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    softmax = found["model.softmax"]
    site = softmax["site"]
    data = (tree / "model.py").read_bytes()
    assert data[site["start"]:site["end"]] == b"torch.softmax(s, dim=-1)"
    assert (softmax["status"], site["file"], site["line"]) == ("matched", "model.py", 7)
    assert set(softmax) == {"boundary", "status", "site", "score", "runner_up", "why"}


def test_a_removed_operator_is_lost(opguard, planned, tmp_path):
    plan, tree = planned(REMOVED)
    done, found = answers(opguard, plan, tree, tmp_path)
    assert done.returncode == 1
    assert found["model.softmax"]["status"] == "lost" and found["model.softmax"]["site"] is None
    assert found["model.transpose"]["status"] == "matched"


def test_a_moved_file_is_searched_for(opguard, planned, tmp_path):
    plan, tree = planned(BEFORE, "layers/attend.py".replace("/", "_"))
    (tree / "unrelated.py").write_text("def f(x):\n    return x.softmax(-1)\n")
    done, found = answers(opguard, plan, tree, tmp_path)
    assert done.returncode == 0
    assert {b["site"]["file"] for b in found.values()} == {"layers_attend.py"}


@pytest.mark.parametrize("text", ["def f(:\n", "print 'python 2'\n"])
def test_a_file_that_does_not_parse_is_skipped_and_named(opguard, planned, text):
    plan, tree = planned(BEFORE)
    whole = opguard("match", "--plan", plan, tree)
    (tree / "broken.py").write_text(text)
    done = opguard("match", "--plan", plan, tree)
    assert (done.returncode, done.stdout) == (whole.returncode, whole.stdout) and whole.returncode == 0
    assert "broken.py:1:" in done.stderr and "warning: " in done.stderr and "the file is skipped" in done.stderr


def test_boundaries_of_a_skipped_file_are_nowhere_else(opguard, planned):
    plan, tree = planned(BEFORE)
    (tree / "model.py").write_text("def f(:\n")
    (tree / "copy.py").write_text(BEFORE)
    done = opguard("match", "--plan", plan, tree)
    assert done.returncode == 1 and "its file is skipped" in done.stdout + done.stderr
    assert "copy.py" not in done.stdout


def test_what_was_in_other_files_is_not_what_went(opguard, tmp_path):
    """A plan of one file knows what read like its operators elsewhere: those that were removed are not the twin's, which were always there."""
    twin = BEFORE.replace("attention", "other").replace("torch.matmul(p, v)", "p + v")
    removed = BEFORE.replace("    s = torch.matmul(q, k.transpose(-2, -1))\n    p = torch.softmax(s, dim=-1)\n", "    p = q + k\n")
    old, new, plan = tmp_path / "old", tmp_path / "new", tmp_path / "plan.json"
    for tree, text in ((old, BEFORE), (new, removed)):
        tree.mkdir()
        (tree / "model.py").write_text(text)
        (tree / "twin.py").write_text(twin)
    done = opguard("plan", "--static", old, "--only", "model.py", "-o", plan)
    assert done.returncode == 0
    text = json.loads(plan.read_text())
    assert {b["file"] for b in text["boundaries"]} == {"model.py"} and text["elsewhere"]
    done, found = answers(opguard, plan, new, tmp_path)
    assert found["model.softmax"]["site"] is None and found["model.transpose"]["site"] is None
    # A plan of an older opguard does not know, and three that read alike side by side look like a move.
    del text["elsewhere"]
    plan.write_text(json.dumps(text))
    done, found = answers(opguard, plan, new, tmp_path)
    assert found["model.softmax"]["site"]["file"] == found["model.transpose"]["site"]["file"] == "twin.py"


def test_only_a_file_that_is_there(opguard, planned, tmp_path):
    plan, tree = planned(BEFORE)
    before = plan.read_bytes()
    done = opguard("plan", "--static", tree, "--only", "modle.py", "-o", plan)
    assert done.returncode == 2 and "the tree has no Python file 'modle.py'" in done.stderr
    assert plan.read_bytes() == before


def test_explain_shows_tags_weights_score_and_runner_up(opguard, planned, tmp_path):
    plan, tree = planned(BEFORE.replace("    return", "    extra = torch.matmul(p, s)\n    return"))
    identifier = next(b["id"] for b in json.loads(plan.read_text())["boundaries"] if b["text"] == "torch.matmul(p, v)")
    done = opguard("match", "--plan", plan, tree, "--explain", identifier)
    assert identifier in done.stdout and "matched" in done.stdout
    lines = done.stdout.splitlines()
    assert any("site" in line and "torch.matmul" in line for line in lines)
    assert any(line.strip().startswith("+") and line.endswith("name:matmul") for line in lines)
    assert opguard("match", "--plan", plan, tree, "--explain", "no.such:aaaa").returncode == 2


def test_check_is_for_ci(opguard, planned):
    plan, tree = planned(REMOVED)
    done = opguard(tree, "--plan", plan, "--check", program="opguard-instrument")
    assert done.returncode == 1
    assert "lost" in done.stderr and "model.py:5:" in done.stderr and "softmax" in done.stderr
    assert (tree / "model.py").read_text() == REMOVED


def test_check_passes_while_the_plan_matches(opguard, planned):
    plan, tree = planned(RENAMED)
    done = opguard(tree, "--plan", plan, "--check", program="opguard-instrument")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["plan", "match", "instrument"])
def test_a_fault_in_a_users_template_is_shown_by_a_caret(opguard, planned, tmp_path, command):
    plan, tree = planned(BEFORE)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "attention.json").write_text('{"opguard_templates": 1,\n "description": "Mine.",\n "templates": [\n'
                                         '  {"name": "mine", "formz": ["call"], "callees": ["mine.softmax"]}]}\n')  # fmt: skip
    words = {"plan": ["plan", "--static", tree, "-o", tmp_path / "p.json"], "match": ["match", "--plan", plan, tree],
             "instrument": ["instrument", tree, "--plan", plan]}[command]  # fmt: skip
    done = opguard(*words, "--templates", mine)
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"{mine}/attention.json:4:20: error: ") and "formz" in lines[0]
    assert lines[1].startswith('  {"name": "mine"') and lines[2].index("^") == 19
