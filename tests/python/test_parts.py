"""Ranks compared where their logs lie, and one verdict of what they tell: docs/formats/parts.md."""

import json
import re

import pytest

from distributed import run_ranks

pytest.importorskip("torch.distributed")

# Two ranks that average their gradients by a collective of their own. In step `at` rank `other` scales its input.
TRAINING = """
net = torch.nn.Linear(4, 4)
torch.nn.init.ones_(net.weight); torch.nn.init.zeros_(net.bias)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
replicas = dist.new_group([0, 1], group_desc="replicas")
for step in range(5):
    x = torch.arange(8.).reshape(2, 4) + rank + step
    x = og("train.mul:aaaa", torch.mul)(x, 1.5 if (rank, step) == ({other}, {at}) else 1.25)
    loss = og("train.forward:bbbb", net)(x).pow(2).mean()
    loss.backward()
    for p in net.parameters():
        og("train.all_reduce:cccc", dist.all_reduce)(p.grad, group=replicas)
    og("train.step:dddd", optimizer.step)()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for name, other, at in (("a", -1, -1), ("same", -1, -1), ("b", 1, 3)):
        run_ranks(TRAINING.format(other=other, at=at), 2, folder / name)
    return folder


def parts(opguard, runs, b, of, folder):
    files = []
    for number in range(1, of + 1):
        files.append(folder / f"{number}.json")
        made = opguard("align", runs / "a", runs / b, "--part", f"{number}/{of}", "-o", files[-1])
        assert made.returncode == 0 and made.stdout == "", made.stdout + made.stderr
    return files


def test_parts_name_the_operator_that_all_logs_name(runs, opguard, tmp_path):
    whole = opguard("align", runs / "a", runs / "b", "--json", tmp_path / "whole.json")
    files = parts(opguard, runs, "b", 2, tmp_path)
    merged = opguard("align", "--merge", *reversed(files), "--json", tmp_path / "fleet.json")
    assert merged.returncode == whole.returncode == 1, merged.stdout + merged.stderr
    assert merged.stdout.startswith("diverged: it began on rank 1\n"), merged.stdout
    pivot = json.loads((tmp_path / "whole.json").read_text())["pivot"]
    fleet = json.loads((tmp_path / "fleet.json").read_text())
    assert (fleet["rank"], fleet["pivot"]["boundary"], fleet["pivot"]["step"]) == (1, pivot["boundary"], 3)
    assert fleet["pivot"]["boundary"] == "train.mul:aaaa"
    (received,) = [one for one in fleet["unequal"] if one["rank"] == 0]
    assert received["role"] == "received" and received["from"] == [1]
    assert received["finding"]["boundary"] == "train.all_reduce:cccc"
    assert "rank 0: received from rank 1 by " in merged.stdout and ", group replicas 0-1#1, number " in merged.stdout


def test_the_map_has_groups_by_name_and_a_page_of_each_rank(runs, opguard, tmp_path):
    made = opguard("align", runs / "a", runs / "b", "--part", "1/1", "-o", tmp_path / "part.json", "--pages", tmp_path / "pages")
    assert made.returncode == 0, made.stderr
    assert sorted(p.name for p in (tmp_path / "pages").iterdir()) == ["rank-0.html", "rank-1.html"]
    assert "train.mul:aaaa" in (tmp_path / "pages" / "rank-1.html").read_text()
    opguard("align", "--merge", tmp_path / "part.json", "--html", tmp_path / "fleet.html", "--pages", tmp_path / "pages")
    (text,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "fleet.html").read_text(), re.S)
    data = json.loads(text)
    assert (data["pages"], data["page"]) == ("pages", {"0": "rank-0.html", "1": "rank-1.html"})
    assert (data["groups"], data["members"]) == ({"replicas": [0, 0]}, ["0-1#1"])


def test_workers_make_the_parts(runs, opguard, tmp_path):
    merged = opguard("align", "--merge", *parts(opguard, runs, "b", 3, tmp_path))
    words = ("align", runs / "a", runs / "b", "--on", "threads", "--parts", "3")
    done = opguard(*words, "--html", tmp_path / "fleet.html", "--pages", tmp_path / "pages")
    assert (done.returncode, done.stdout) == (1, merged.stdout), done.stderr
    assert len(list((tmp_path / "pages").iterdir())) == 2 and "rank-1.html" in (tmp_path / "fleet.html").read_text()
    wrong = opguard(*words[:2], runs / "none", *words[3:])
    assert wrong.returncode == 2 and "part 1 of 3 is missing: error: " in wrong.stderr and wrong.stdout == ""


def test_a_merged_part_is_a_part(runs, opguard, tmp_path):
    files = parts(opguard, runs, "same", 2, tmp_path)
    one = opguard("align", "--merge", files[0], "-o", tmp_path / "one.json")
    assert one.returncode == 2 and "missing is part 2 of 2" in one.stdout
    both = opguard("align", "--merge", tmp_path / "one.json", files[1], files[0])
    assert both.returncode == 0 and both.stdout.startswith("identical: every rank of the two runs agrees\n"), both.stdout


def test_what_is_no_part_is_an_error_that_names_it(runs, opguard, tmp_path):
    (other,) = parts(opguard, runs, "b", 1, tmp_path)
    (tmp_path / "bad.json").write_text("{")
    for arguments, word in (
        (("--merge", tmp_path / "bad.json"), "bad.json: not a part of a comparison"),
        (("--merge", tmp_path / "none.json"), "none.json: "),
        ((runs / "a", runs / "b", "--part", "3/2"), "--part takes I/N"),
        ((runs / "a", runs / "none", "--part", "1/2"), "none"),
    ):
        bad = opguard("align", *arguments, "-o", tmp_path / "out.json")
        assert bad.returncode == 2 and word in bad.stderr, bad.stderr
        assert not (tmp_path / "out.json").exists()
    (tmp_path / "same").mkdir()
    (same,) = parts(opguard, runs, "same", 1, tmp_path / "same")
    bad = opguard("align", "--merge", other, same)
    assert bad.returncode == 2 and "parts of other runs" in bad.stderr
