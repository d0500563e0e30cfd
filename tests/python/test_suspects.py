"""Under a verdict: where the sources differ and ran before it, where a number can come from, and the region on both sides.

Each program is small and differs from its good twin by one edit, with a comment and a function that nobody calls edited
beside it: these two are never suspects.
"""
import json

import pytest

MODEL = '''\
import functools
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    width: int = 8
    slope: float = 0.1


def scaled(x, factor=2.0):
    # doubles by default
    return x * factor


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.width, 8)
        self.norm = nn.BatchNorm1d(8, momentum=0.1)
        self.act = nn.LeakyReLU(config.slope)
        self.scale = functools.partial(torch.mul, other=3.0)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.scale(scaled(self.act(self.norm(self.fc(x))))))


def unused(x):
    return x + 1
'''

TRAIN = '''\
import argparse
import json

import torch
from torch.nn import functional as F

from model import Config, Net

base_lr = 6e-2
warmup_iters = 4


def get_lr(it):
    # linear warmup
    if it < warmup_iters:
        return base_lr * (it + 1) / warmup_iters
    return base_lr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    args = parser.parse_args()
    with open("settings.json") as file:
        settings = json.load(file)
    torch.manual_seed(0)
    model = Net(Config())
    optimizer = torch.optim.SGD(model.parameters(), lr=base_lr, momentum=settings["momentum"])
    x = torch.randn(16, 8)
    y = torch.randint(0, 4, (16,))
    for it in range(2):
        lr = get_lr(it)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = F.cross_entropy(model(x), y, label_smoothing=args.label_smoothing)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
'''

SETTINGS = '{\n  "comment": "nothing",\n  "momentum": 0.9\n}\n'
GOOD = {"model.py": MODEL, "train.py": TRAIN, "settings.json": SETTINGS}
# In every bad twin: a comment, and a function that does not run.
HARMLESS = [("model.py", "# doubles by default", "# twice, by default"), ("model.py", "return x + 1", "return x + 2"),
            ("train.py", "# linear warmup", "# a linear warmup")]


def write(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def diff(opguard, tmp_path):
    """diff(edit, ...) -> (JSON, stdout): the good program against a twin with these edits."""

    def run(*edits, options=()):
        texts = dict(GOOD)
        for file, old, new in edits:
            assert texts[file].count(old) == 1, old
            texts[file] = texts[file].replace(old, new)
        good, bad = write(tmp_path / "good", GOOD), write(tmp_path / "bad", texts)
        out = tmp_path / "answer.json"
        done = opguard("diff", good, bad, "--no-prove", "--json", out, "--color", "never", *options, "--", "python", "train.py")
        assert out.exists(), done.stdout + done.stderr
        return json.loads(out.read_text()), done.stdout

    return run


def lines_of(text, words):
    found = [i for i, line in enumerate(text.splitlines(), 1) if words in line]
    assert len(found) == 1, words
    return found[0]


# (edit, its file, words of its line; a number's name and the words of the steps that lead there)
NUMBERS = {
    "a function ten lines above": (("train.py", "(it + 1) / warmup", "it / warmup"), "group0.lr", ['group["lr"] = lr', "lr = get_lr(it)", "def get_lr(it):"]),
    "a setting in a file": (("settings.json", "0.9", "0.8"), "group0.momentum", ['momentum=settings["momentum"]', '"momentum": 0.8']),
    "an option's default": (("train.py", "default=0.1", "default=0.2"), "label_smoothing", ["label_smoothing=args", "add_argument"]),
    "a signature's default": (("model.py", "factor=2.0", "factor=2.5"), "arg0", ["factor", "def scaled(x, factor=2.5):"]),
    "a field of a dataclass": (("model.py", "slope: float = 0.1", "slope: float = 0.2"), "", ["nn.LeakyReLU(config.slope)", "slope: float"]),
    "an attribute set in __init__": (("model.py", "momentum=0.1", "momentum=0.7"), "", ["momentum=0.7"]),
    "a partial": (("model.py", "other=3.0", "other=3.5"), "", ["other=3.5"]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_leads_to_the_statement_that_set_it(name, diff):
    edit, number, steps = NUMBERS[name]
    answer, text = diff(edit, *HARMLESS)
    assert answer["verdict"] == "diverged", text
    pivot = answer["pivot"]
    # The one suspect is the edit: not the comments, not what nobody calls.
    assert len(pivot["suspects"]) == 1, text
    suspect = pivot["suspects"][0]
    file, old, new = edit
    assert suspect["b"]["file"] == file
    line = lines_of(GOOD[file], old)
    assert suspect["b"]["first"] <= line <= suspect["b"]["last"]
    assert suspect["nearness"] in ("statement", "origin")
    assert any(new in shown for shown in suspect["b"]["text"])
    assert "suspects" in text and new in text
    # The way there.
    ways = [way for known in pivot["numbers"] if known["name"] == number for way in known["ways"]]
    changed = [way for way in ways if way["changed"]]
    assert changed, json.dumps(pivot["numbers"], indent=1)
    shown = [step["text"][0] for step in changed[0]["steps"]]
    assert len(shown) == len(steps), shown
    for words, step in zip(steps, shown):
        assert words in step, shown
    last = changed[0]["steps"][-1]
    assert last["file"] == file and last["first"] <= line <= last["last"]


def test_equal_runs_have_no_suspects(diff):
    answer, text = diff(*HARMLESS)
    assert answer["verdict"] == "identical" and answer["pivot"] is None
    assert "suspects" not in text


def test_a_region_is_named_on_both_sides(diff, tmp_path):
    answer, text = diff(
        ("model.py", "return x * factor", "x = torch.sin(x)\n    return torch.cos(x)"),
        options=["--sarif", tmp_path / "answer.sarif", "--html", tmp_path / "page.html"])
    pivot = answer["pivot"]
    assert pivot["kind"] == "structure", text
    region = pivot["region"]
    first = lines_of(MODEL, "return x * factor")
    assert (region["b"]["file"], region["b"]["first"], region["b"]["last"]) == ("model.py", first, first + 1)
    assert region["b"]["operators"] == 2
    assert (region["a"]["file"], region["a"]["first"], region["a"]["last"]) == ("model.py", first, first)
    assert f"model.py:{first}-{first + 1} in scaled, 2 operators" in text
    assert pivot["suspects"][0]["nearness"] == "statement"
    # The same places in the annotations.
    result = json.loads((tmp_path / "answer.sarif").read_text())["runs"][0]["results"][0]
    places = [(p["physicalLocation"]["artifactLocation"]["uri"], p["physicalLocation"]["region"]["startLine"], p["message"]["text"])
              for p in result["relatedLocations"]]
    assert ("model.py", first, "the region of run b") in places
    assert any(message.startswith("suspect") for _, _, message in places)
    page = (tmp_path / "page.html").read_text()
    assert "suspects" in page and f"model.py:{first}-{first + 1} in scaled" in page


def test_logs_alone_lead_to_the_sources_they_name(diff, opguard, tmp_path):
    edit = ("train.py", "(it + 1) / warmup", "it / warmup")
    diff(edit, *HARMLESS, options=["--work", tmp_path / "work"])

    def align():
        out = tmp_path / "aligned.json"
        done = opguard("align", tmp_path / "work/run_a/log", tmp_path / "work/run_b/log", "--json", out)
        assert done.returncode == 1, done.stderr
        return json.loads(out.read_text())["pivot"]

    assert [s["b"]["file"] for s in align()["suspects"]] == ["train.py"]
    # A file that is no longer what ran says nothing.
    train = tmp_path / "bad" / "train.py"
    train.write_text("\n\n" + train.read_text())
    assert all(s["b"] is None or s["b"]["file"] != "train.py" for s in align()["suspects"])
