"""bench/invariants: the programs are what they say, the split does not move, and how answers are scored."""
import ast
import difflib
import json
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from invariants import programs, score  # noqa: E402
from invariants.programs import HERE, Pair, Program, read_clean, read_pairs  # noqa: E402

THIRD = HERE / "third"
CLEAN = read_clean(HERE / "clean") + read_clean(THIRD / "clean", "third")
PAIRS = read_pairs(THIRD / "pairs", "third") + read_pairs(HERE / "pairs") + read_pairs(HERE / "second", "second")


def test_there_are_enough():
    assert len(CLEAN) >= 28 and len(PAIRS) >= 24
    for part in ("learn", "held_out", "third"):
        assert sum(p.part == part for p in CLEAN) >= 14
    for part in ("tuning", "opened", "second", "third"):
        assert sum(p.part == part for p in PAIRS) >= 12


def test_the_split_is_by_the_name_alone(tmp_path):
    assert [programs.odd(name) for name in ("lora", "gnn", "x_plain_list", "x_decay_lost")] == [False, True, False, True]
    (tmp_path / "gnn").mkdir()
    (tmp_path / "gnn" / "train.py").write_text("")
    assert [p.part for p in read_clean(tmp_path)] == ["held_out"] and [p.part for p in read_clean(tmp_path, "shared")] == ["shared"]


@pytest.mark.parametrize("program", CLEAN, ids=lambda p: p.name)
def test_a_clean_program(program):
    text = "".join(path.read_text() for path in program.files())
    assert 'os.environ.get("SEED", "0")' in text and 'os.environ.get("STEPS", "8")' in text
    for path in program.files():
        ast.parse(path.read_text())


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.name)
def test_a_pair(pair):
    e = pair.expect
    good, bad = ({str(f.relative_to(p.folder)): f.read_text() for f in p.files()} for p in (pair.good, pair.bad))
    assert good.keys() == bad.keys() and good != bad
    assert e["text"] in bad[e["file"]].splitlines()[e["line"] - 1]
    assert pair.lines() >= {e["line"], *e.get("also", [])}
    assert max(pair.lines()) <= len(bad[e["file"]].splitlines())
    assert pair.kinds() and all(e[key] for key in ("source", "module", "fault")) and 0 <= e["by_step"] <= 8
    # One fault: few lines differ, in one or two places.
    changed = [line for f in good for line in difflib.ndiff(good[f].splitlines(), bad[f].splitlines()) if line[0] in "+-"]
    assert len(changed) <= 12, changed


@pytest.fixture
def pair(tmp_path):
    for side in ("good", "bad"):
        (tmp_path / side).mkdir()
    (tmp_path / "bad" / "train.py").write_text("import a\n\n\nloss = f(\n    x,\n)\nloss.backward()\n\n\n\n\nopt.step()\n")
    expect = {"relation": "sequence: zero_grad first; unheard: of; coverage: all", "by_step": 2, "file": "train.py", "line": 4, "also": [12],
              "text": "loss = f(", "module": "h.*.attn (Attention), fc1", "fault": "x", "source": "y"}  # fmt: skip
    return Pair("p", "tuning", *(Program("p", side, tmp_path / side, "tuning") for side in ("good", "bad")), expect)


def violation(rule="r1", step=1, relation="sequence", line=7, name="", module="", severity="error", file="train.py", **more):
    place = {"file": file, "path": f"/tmp/{file}", "line": line, "text": ""} if line else None
    return {"invariant": {"id": rule, "says": "", "severity": severity, "tier": "general"}, "relation": relation, "step": step, "rank": None,
            "name": name, "module": module, "detail": "", "place": place, "places": [place], **more}  # fmt: skip


def answer(*findings, applied=10, violated=1):
    return {"findings": list(findings), "rules": {"applied": applied, "violated": violated, "not_applied": 0}}


def test_what_is_expected_of_a_pair(pair):
    assert pair.kinds() == ["sequence", "coverage"]
    assert pair.lines() == {4, 5, 6, 12}  # a statement of several lines counts with each
    assert pair.modules() == ["attn", "Attention", "fc1"]


@pytest.mark.parametrize("findings, wanted", [
    ([], {"caught": False, "in_time": False, "relation": False, "exact": False, "near": False, "module": False}),
    ([violation()], {"caught": True, "in_time": True, "relation": True, "leads": True, "exact": False, "near": True}),
    ([violation(step=3)], {"caught": True, "in_time": False}),
    ([violation(line=5)], {"exact": True, "near": True}),
    ([violation(line=5, file="other.py")], {"exact": False, "near": False}),
    ([violation(line=None)], {"caught": True, "exact": False}),
    ([violation(relation="dtype")], {"relation": False, "leads": False}),
    ([violation(relation="dtype", others=[violation("r2", relation="coverage")])], {"relation": True, "leads": False}),
    ([violation(rule=f"r{i}", relation="dtype", line=99) for i in range(3)] + [violation("r9", line=12)], {"relation": False, "exact": False, "findings": 4}),
    ([violation(name="fc1.weight")], {"module": True}),
    ([violation(name="fc10.weight")], {"module": False}),
    ([violation(module="h.1.attn (Attention)")], {"module": True}),
    ([violation(module="h.1.attn")], {"module": True}),
    ([violation(module="h.1.attention")], {"module": False}),
])  # fmt: skip
def test_judge_pair(pair, findings, wanted):
    row = score.judge_pair(pair, answer(*findings), answer())
    assert {key: row[key] for key in wanted} == wanted


def test_what_the_good_side_has_too_is_no_catch(pair):
    row = score.judge_pair(pair, answer(violation(name="fc1.weight")), answer(violation("r5", others=[violation(name="fc1.weight")])))
    assert not row["caught"] and row["findings"] == 0
    assert not score.judge_pair(pair, None, None)["caught"]


def test_figures(pair):
    rows = [score.judge_pair(pair, answer(*[violation(f"r{i}") for i in range(n)]), None) for n in (0, 1, 5)]
    assert score.pair_figures(rows) == {"pairs": 3, "caught": 2, "in_time": 2, "relation": 2, "leads": 2, "exact": 0, "near": 2, "module": 0,
                                        "with_module": 2 + 1, "findings_median": 3, "findings_most": 5}  # fmt: skip
    clean = [score.judge_clean(pair.good, a) for a in (answer(violated=0), answer(violation(severity="note", others=[violation("r2")])), None)]
    assert score.clean_figures(clean) == {"programs": 3, "applied": 20, "violated": 1, "errors": 1, "share": 0.05, "with_any": 1, "with_error": 1,
                                          "without_rules": 1}  # fmt: skip


TOOL = """#!{python}
import json, os, sys
words = sys.argv[1:]
def after(word): return words[words.index(word) + 1]
if words[0] == "--version": print("opguard 1 (abc)")
elif words[0] == "run":
    with open(os.path.join("{count}"), "a") as f: f.write("run " + os.environ["SEED"] + os.environ["STEPS"] + "\\n")
    os.mkdir(after("--log"))
elif words[0] == "infer": open(after("-o"), "w").write(json.dumps({{"invariants": words}}))
else:
    bad = os.path.exists("train.py") and "FAULT" in open("train.py").read()
    found = [{{"invariant": {{"id": "r", "says": "s", "severity": "error"}}, "relation": "sequence", "step": 0, "name": "", "module": "",
              "detail": "", "place": {{"file": "train.py", "line": 1}}}}] if bad else []
    json.dump({{"findings": found, "rules": {{"applied": 4, "violated": int(bad), "not_applied": 0}}}}, open(after("--json"), "w"))
    sys.exit(int(bad))
"""


def test_the_whole_with_a_tool_that_looks_for_a_word(tmp_path):
    bin = tmp_path / "build" / "src" / "cli" / "opguard"
    bin.parent.mkdir(parents=True)
    bin.write_text(TOOL.format(python=sys.executable, count=tmp_path / "count"))
    bin.chmod(0o755)
    shared = tmp_path / "shared"
    for side, text in (("good", "x = 1\n"), ("bad", "x = 'FAULT'\n")):
        (shared / "pairs" / "one" / side).mkdir(parents=True)
        (shared / "pairs" / "one" / side / "train.py").write_text(text)
    (shared / "clean" / "two").mkdir(parents=True)
    (shared / "clean" / "two" / "train.py").write_text("y = 2\n")
    (shared / "pairs" / "one" / "expect.json").write_text(json.dumps(
        {"relation": "sequence: s", "by_step": 1, "file": "train.py", "line": 1, "text": "x", "module": "all parameters"}))
    words = [sys.executable, ROOT / "bench" / "invariants.py", "--set", "shared", "--shared", shared, "--opguard", bin, "--work", tmp_path / "work",
             "--python", sys.executable, "--json", tmp_path / "out.json"]  # fmt: skip
    for _ in range(2):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "shared, program: 1 pairs, 1 caught, 1 in time" in done.stdout and "line exact 1" in done.stdout
        assert "shared clean programs, builtin: 1 programs, 0 of 4 applicable rules violated" in done.stdout
    # Kept: the second time nothing was recorded.
    assert sorted((tmp_path / "count").read_text().splitlines()) == ["run 08", "run 18", "run 26"]
    tiers = json.loads((tmp_path / "out.json").read_text())["sets"]["shared"]["tiers"]
    assert [tiers[t]["pairs"][0]["told"][0]["at"] for t in ("builtin", "program")] == ["train.py:1"] * 2
    done = subprocess.run([*words, "--only", "three"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no program three" in done.stderr
    done = subprocess.run([*words, "--only", "one,two", "--infer", tmp_path / "rules.json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "from 4 runs of 2 programs" in done.stdout, done.stderr
    said = json.loads((tmp_path / "rules.json").read_text())["invariants"]
    assert [word.partition("=")[0] for word in said if "=" in word] == ["clean-two", "clean-two", "good-one", "good-one"]
