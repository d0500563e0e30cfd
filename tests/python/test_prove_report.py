"""`opguard prove --html --sarif`: what a page and SARIF say of each verdict, held against `--json` and the plan's text."""

import base64
import hashlib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT
from test_report_sarif import validate  # noqa: F401 (a fixture)

pytest.importorskip("torch")

# The guide's own plan, and what it does to it.
MLP = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "guide" / "prove.md").read_text(), re.DOTALL).group(1)
SUMMED = 'return total(gradient) if ctx.way == "backward" else gradient, None'
BROKEN = MLP.replace(SUMMED, "return gradient, None")
# What a page must not take for markup.
UNKNOWN = """import torch
DIMS, WORLD = dict(rows=4), 2
def build(d):
    x = torch.randn(d["rows"])
    def step():
        return {"out": torch.nn.functional.dropout(x, 0.5)}  # </pre><script>alert("&amp;")</script>
    return dict(state={"x": x}, tokens={}, step=step)
def logical(d): return build(d)
def plan(rank, d): return build(d)
"""
STUCK = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=4), 2
def build(d, rank=None):
    x = torch.randn(d["rows"])
    def step():
        y = x.clone()
        if rank is not None:
            other = torch.empty_like(y)
            dist.recv(other, 1 - rank)  # both wait
            dist.send(y, 1 - rank)
        return {"out": y}
    return dict(state={"x": x}, tokens={}, step=step)
def logical(d): return build(d)
def plan(rank, d): return build(d, rank)
"""
# No rank gives one of the model's outputs.
PARTS = MLP.replace("def plan", "def whole") + """
def plan(rank, d):
    found = whole(rank, d)
    step = found["step"]
    def without():
        return {name: x for name, x in step().items() if name != "grad:up"}
    return dict(found, step=without)
"""
PLANS = {"proved": MLP, "refuted": BROKEN, "unknown": UNKNOWN, "stuck": STUCK, "incomplete": PARTS}
CODES = {"proved": 0, "unknown": 2}


class Page(HTMLParser):
    """The texts of a page's elements by tag and class, each with what lies in it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        if tag in ("meta", "link", "img"):
            self.found.append([tag, dict(attrs), ""])
            return
        self.open.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.open)
        self.found.append(self.open.pop())

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def all(self, tag, kind=None):
        return [text for at, attrs, text in self.found if at == tag and (kind is None or kind in attrs.get("class", "").split())]


@pytest.fixture(scope="module")
def reported(opguard, tmp_path_factory):
    """reported(kind) -> the folder with the plan, out.json, out.html, out.sarif; each kind is proved once."""
    made = {}

    def once(kind):
        if kind not in made:
            made[kind] = folder = tmp_path_factory.mktemp(kind)
            (folder / "my plan.py").write_text(PLANS[kind])
            done = opguard("prove", "my plan.py", "--python", "python", "--json", "out.json", "--html", "out.html", "--sarif", "out.sarif", cwd=folder)
            assert done.returncode == CODES.get(kind, 1), done.stdout + done.stderr
        return made[kind]

    return once


def result_of(folder):
    return json.loads((folder / "out.json").read_text())


@pytest.mark.parametrize("kind", PLANS)
def test_a_page_of_each_verdict(reported, kind):
    folder = reported(kind)
    text, result = (folder / "out.html").read_text(), result_of(folder)
    page = Page(text)
    assert page.all("h1") == [result["verdict"]] and page.all("title") == ["opguard prove: " + result["verdict"]]
    [why] = page.all("span", "why")
    assert why == result.get("why", why) and (why or kind == "proved")
    # It loads nothing, and its policy admits this style alone.
    assert not page.all("script") and "http://" not in text.replace("http-equiv", "")
    [policy] = [attrs["content"] for tag, attrs, _ in page.found if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"]
    [style] = page.all("style")
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy and policy.startswith("default-src 'none'")
    facts = dict(zip(page.all("dt"), page.all("dd")))
    assert "my plan.py" in facts["command"]
    assert f"{result['world']} ranks" in facts["checked"] and facts["sizes"] == ", ".join(f"{n}={v}" for n, v in result["dims"].items())
    lines = PLANS[kind].splitlines()
    assert page.all("mark") == [lines[at["line"] - 1].strip() for at in result.get("waiting") or named(result)]
    assert page.all("li") == result.get("assumed", []), "what a proof rests on, and nothing else has a list"


def named(result):
    """The statements that a report names, in the page's order."""
    difference = result.get("difference", {})
    made, passed = difference.get("made"), difference.get("passed")
    used = difference.get("used")
    elsewhere = used and all(at["line"] != used["line"] for at in (made, passed))
    return [at for at in (result.get("at"), made, *difference.get("fed", []), passed if not made or passed["line"] != made["line"] else None, used if elsewhere else None) if at]


def test_the_numbers_and_the_input_of_a_refutation(reported):
    folder = reported("refuted")
    page, difference = Page((folder / "out.html").read_text()), result_of(folder)["difference"]
    facts = dict(zip(page.all("dt"), page.all("dd")))
    assert facts["output"] == f"{difference['output']} of rank {difference['rank']}"
    assert facts["position"] == str(difference["position"])
    for side in ("logical", "plan"):
        assert repr(difference[side]) in page.all("td")
    assert facts["other outputs"] == ", ".join(difference["other_outputs"])
    [table] = [text for tag, attrs, text in page.found if tag == "table" and "point" in attrs.get("class", "")]
    assert page.all("summary") == [f"the input that tells them apart: {len(difference['point'])} unknowns"]
    for value in difference["point"].values():
        assert f"{value:g}" in table
    # Every unknown has its cell, and no other cell has a number.
    cells = [text for tag, attrs, text in page.found if tag == "td" and text]
    assert len(cells) == len(difference["point"]) + 2


def test_what_a_plan_says_is_no_markup(reported):
    text = (reported("unknown") / "out.html").read_text()
    assert "alert(&quot;&amp;amp;&quot;)" in text and "<script" not in text


def resolve(run, location):
    artifact = location["physicalLocation"]["artifactLocation"]
    return Path(unquote(urlsplit(run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"] + artifact["uri"]).path))


@pytest.mark.parametrize("kind", PLANS)
def test_sarif_of_each_verdict(reported, validate, kind):  # noqa: F811
    folder = reported(kind)
    document, result = json.loads((folder / "out.sarif").read_text()), result_of(folder)
    validate(document)
    [run] = document["runs"]
    assert run["properties"]["verdict"] == result["verdict"]
    if kind == "proved":
        assert run["results"] == []
        return
    [found] = run["results"]
    assert (found["ruleId"], found["level"]) == (kind, "warning" if kind == "unknown" else "error")
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == kind
    [place] = found["locations"]
    assert resolve(run, place) == folder / "my plan.py"
    line = place["physicalLocation"]["region"]["startLine"]
    main = named(result)[0]["line"] if named(result) else 1
    assert line == main
    assert result.get("why", "is not the model's") in found["message"]["text"]


FED = """import torch, torch.distributed as dist
DIMS, WORLD = dict(rows=4), 2
def build(d, parts):
    x = torch.randn(d["rows"] // parts)
    def step():
        loss = x.square().sum()
        if parts > 1:
            dist.all_reduce(loss)
            loss.div_(parts)
        return {"loss": loss}
    return dict(state={"x": x}, tokens={}, step=step)
def logical(d): return build(d, 1)
def plan(rank, d): return dict(build(d, WORLD), place=lambda name, full: full.chunk(WORLD)[rank])
"""


def test_the_way_of_a_wrong_sum_is_a_code_flow(opguard, validate, tmp_path):  # noqa: F811
    (tmp_path / "fed.py").write_text(FED)
    done = opguard("prove", "fed.py", "--python", "python", "--json", "out.json", "--html", "out.html", "--sarif", "out.sarif", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    document, difference = json.loads((tmp_path / "out.sarif").read_text()), result_of(tmp_path)["difference"]
    validate(document)
    [found] = document["runs"][0]["results"]
    lines = [at["location"]["physicalLocation"]["region"]["startLine"] for at in found["codeFlows"][0]["threadFlows"][0]["locations"]]
    assert lines == [*(at["line"] for at in reversed(difference["fed"])), difference["made"]["line"]] == [8, 6, 9]
    assert [at["physicalLocation"]["region"]["startLine"] for at in found["relatedLocations"]] == [8, 6]
    assert found["properties"]["factor"] == difference["factor"] == 0.5 and "a factor of 0.5" in found["message"]["text"]
    assert "0.5" in Page((tmp_path / "out.html").read_text()).all("td")


def test_paths_are_relative_to_the_repository(opguard, tmp_path):
    folder = tmp_path / "plans"
    folder.mkdir()
    (folder / "fed.py").write_text(FED)
    for words in (["init"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "plan"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)
    done = opguard("prove", "fed.py", "--python", "python", "--sarif", "out.sarif", "--html", "out.html", cwd=folder)
    assert done.returncode == 1, done.stderr
    [run] = json.loads((folder / "out.sarif").read_text())["runs"]
    assert run["originalUriBaseIds"]["TREE"]["uri"] == tmp_path.resolve().as_uri() + "/"
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "plans/fed.py"
    assert "plans/fed.py:9" in Page((folder / "out.html").read_text()).all("span", "path")
