"""An operator that one run has and the other runs at another moment: the report says where, and shows that text."""

import json

import pytest

from browser import Browser, chromium

pytest.importorskip("torch")

TRAIN = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(2):
    optimizer.zero_grad()
    for micro in range(3):
        loss = model(torch.randn(4, 8)).square().mean() * 30
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
"""


def test_a_clip_moved_into_the_loop(opguard, tmp_path):
    for name, indent in (("a", 4), ("b", 8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(TRAIN.replace("    torch.nn.utils", " " * indent + "torch.nn.utils"))
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--no-prove", "--json", tmp_path / "o.json", "--html", tmp_path / "o.html",
                   "--sarif", tmp_path / "o.sarif", "--", "python", "train.py")
    assert done.returncode == 1, done.stderr
    [other] = json.loads((tmp_path / "o.sarif").read_text())["runs"][0]["results"][0]["relatedLocations"][:1]
    assert other["message"]["text"] == "run a runs it elsewhere: forward, step 0, rank 0, micro-batch 3"
    assert other["physicalLocation"]["region"]["startLine"] == 12
    pivot = json.loads((tmp_path / "o.json").read_text())["pivot"]
    assert pivot["a"] is None and pivot["b"]["operator"] == "torch.nn.utils.clip_grad_norm_"
    elsewhere = pivot["elsewhere"]
    assert (elsewhere["boundary"], elsewhere["step"], elsewhere["micro_batch"], elsewhere["column"]) == (pivot["boundary"], 0, 3, 4)
    lines = done.stdout.splitlines()
    at = lines.index("  a does not run it here, but in forward, step 0, micro-batch 3, rank 0")
    assert lines[at + 1].startswith(f"  a {tmp_path}/a/train.py:12:5") and "clip_grad_norm_" in lines[at + 2]
    assert "no such operator" not in done.stdout
    if not chromium():
        return
    # Both halves of the summary and of the panel show a source: a's is where a runs it.
    with Browser(width=1440, height=1000) as page:
        page.open(tmp_path / "o.html")
        page.key("p")
        for box in ("#summary", "#details"):
            places = page.evaluate(f"[...document.querySelectorAll('{box} .source .path')].map(e => e.textContent)")
            assert places == ["train.py:12:5", "train.py:12:9"], box
            assert "not here: it runs it in forward, step 0, micro-batch 3" in page.evaluate(f"document.querySelector('{box}').innerText")
        assert page.errors == []


def test_a_row_of_one_run_shows_where_the_other_has_it(opguard, tmp_path):
    """Not the pivot alone: every row that only one run has."""
    if not chromium():
        pytest.skip("no Chromium: apt install chromium")
    for name, indent in (("a", 4), ("b", 8)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(TRAIN.replace("    torch.nn.utils", " " * indent + "torch.nn.utils"))
    assert opguard("diff", tmp_path / "a", tmp_path / "b", "--no-prove", "--html", tmp_path / "o.html", "--", "python", "train.py").returncode == 1
    with Browser(width=1440, height=1000) as page:
        page.open(tmp_path / "o.html")
        page.evaluate("select([...lanes[0].state].lastIndexOf(kOnlyB), true)")
        places = page.evaluate("[...document.querySelectorAll('#details .source .path')].map(e => e.textContent)")
        assert places == ["train.py:12:5", "train.py:12:9"] and page.errors == []


def test_an_operator_that_is_nowhere_else(opguard, tmp_path):
    for name, text in (("a", TRAIN), ("b", TRAIN.replace(" * 30", ".relu() * 30.5"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    done = opguard("diff", tmp_path / "a", tmp_path / "b", "--no-prove", "--json", tmp_path / "o.json", "--", "python", "train.py")
    pivot = json.loads((tmp_path / "o.json").read_text())["pivot"]
    assert done.returncode == 1 and pivot["elsewhere"] is None


@pytest.mark.parametrize("sides", ["ab", "ba"])
def test_a_clip_moved_between_two_gradients_of_a_leaf(opguard, tmp_path, sides):
    """The gradient added behind it reads what the clip left: it follows, and is not the cause that the proof names."""
    moved = TRAIN.replace("    torch.nn.utils", "        torch.nn.utils").replace("step()", "step()\n    print(loss.item())")
    trees = {"a": TRAIN.replace("step()", "step()\n    print(loss.item())"), "b": moved}
    for name, text in trees.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    done = opguard("diff", tmp_path / sides[0], tmp_path / sides[1], "--json", tmp_path / "o.json", "--", "python", "train.py")
    assert done.returncode == 1, done.stderr
    pivot = json.loads((tmp_path / "o.json").read_text())["pivot"]
    only = "b" if sides == "ab" else "a"
    assert pivot["kind"] == "structure" and pivot[{"a": "b", "b": "a"}[only]] is None
    assert (pivot[only]["operator"], pivot[only]["line"]) == ("torch.nn.utils.clip_grad_norm_", 12)
