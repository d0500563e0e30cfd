#!/usr/bin/env python3
"""`opguard bisect` on histories with a planted fault, and on the releases of two packages: is the commit found, and by how many runs of the program?

  bisect.py [--opguard FILE] [--python FILE] [--only TEXT] [--all] [--jobs N] [--json FILE] [--check] [--keep DIR]
  bisect.py --json FILE --table docs/guide/bisect.md     # puts what FILE holds into the page; runs nothing

A history has 64 commits behind the good one: one fault, 20 refactorings, and comments, prints, files (bisect_history.py). With `merges` some of it came
by branches; with `broken` 6 commits in a row do not run. The program itself counts its starts, so that no run is forgotten: `runs` are the reference and
those that judged, `traced` the reference's preflight, `naming` what the first bad commit took against its parent.

The packages: a program trains with one, and every release is run once without opguard. The first whose digest of losses, parameters and optimizer state
is another is what has to be found.

--check: exit code 1 where a fault was not found, or a history without broken commits took more than 7 runs.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bisect_history
import marks

ROOT = Path(__file__).resolve().parents[1]
GOAL = 7
HISTORIES = [("line", 1, {}), ("line", 2, {}), ("line", 3, {}), ("merges", 6, {"merges": True}), ("broken", 8, {"broken": 6})]
MORE = [("line", 4, {}), ("line", 5, {}), ("merges", 7, {"merges": True}), ("broken", 9, {"broken": 6})]
LION = """import hashlib
import torch
from lion_pytorch import Lion

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
optimizer = Lion(model.parameters(), lr=1e-3, weight_decay=0.1)
digest = hashlib.sha256()
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16)).square().mean()
    loss.backward()
    optimizer.step()
    digest.update(loss.detach().numpy().tobytes())
for p in model.parameters():
    digest.update(p.detach().numpy().tobytes())
    digest.update(optimizer.state[p]["exp_avg"].numpy().tobytes())
print("digest", digest.hexdigest())
"""
ROTARY = """import hashlib
import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)
torch.set_num_threads(1)
rotary = RotaryEmbedding(dim=16, use_xpos=True, xpos_scale_base=64)
project = torch.nn.Linear(16, 48)
optimizer = torch.optim.SGD(project.parameters(), lr=0.5)
digest = hashlib.sha256()
for step in range(4):
    optimizer.zero_grad()
    q, k, v = project(torch.randn(2, 2, 12, 16)).chunk(3, dim=-1)
    q, k = rotary.rotate_queries_and_keys(q, k)
    loss = ((q @ k.transpose(-2, -1) / 4).softmax(-1) @ v).square().mean()
    loss.backward()
    optimizer.step()
    digest.update(loss.detach().numpy().tobytes())
for p in project.parameters():
    digest.update(p.detach().numpy().tobytes())
print("digest", digest.hexdigest())
"""
PACKAGES = [("lion-pytorch", "0.0.2", "0.2.2", LION), ("rotary-embedding-torch", "0.2.1", "0.4.0", ROTARY)]


def environment(counts):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPGUARD_", "GIT_"))}
    return {**env, "BISECT_RUNS": str(counts), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def bisect(options, words, program, cwd, counts, out):
    """(the result, seconds, exit code, starts by kind)"""
    begin = time.monotonic()
    done = subprocess.run([str(w) for w in [options.opguard, "bisect", *words, "--jobs", options.jobs, "--json", out, "--", options.python, *program]],
                          cwd=cwd, env=environment(counts), capture_output=True, text=True)
    took = time.monotonic() - begin
    result = json.loads(out.read_text()) if out.is_file() else None
    if result is None:
        print(done.stderr[-3000:], file=sys.stderr)
    lines = counts.read_text().split() if counts.is_file() else []
    return result, took, done.returncode, {kind: lines.count(kind) for kind in ("guarded", "traced")}


def run_history(options, kind, seed, settings, work):
    made, culprit, fault = bisect_history.history(seed, **settings)
    tree = work / f"{kind}{seed}"
    tree.mkdir()
    subprocess.run(["git", "-c", "init.defaultBranch=main", "init", "-q", tree], check=True)
    marks_file = tree / ".git" / "marks"
    subprocess.run(["git", "fast-import", "--quiet", f"--export-marks={marks_file}"], cwd=tree, check=True, input=bisect_history.fast_import(made))
    ids = dict(line.split() for line in marks_file.read_text().splitlines())
    first, last = ids[":1"], ids[f":{len(made)}"]
    result, took, code, starts = bisect(options, [first, last, "--work", work / f"{kind}{seed}.work"], ["train.py"], tree, work / f"{kind}{seed}.runs",
                                        work / f"{kind}{seed}.json")
    row = {"kind": kind, "seed": seed, "commits": len(made) - 1, "merges": sum(len(c[1]) > 1 for c in made), "fault": fault, "number": culprit,
           "exit": code, "seconds": round(took, 1), "found": False}
    if result is None:
        return row
    judged, naming = result["runs"]["judged"], result["runs"]["naming"]
    row["found"] = bool(result["first_bad"]) and result["first_bad"]["commit"] == ids[f":{culprit + 1}"]
    left = [s for s in result["suspects"]]
    row |= {"suspects": len(left), "among": ids[f":{culprit + 1}"] in left, "skipped": sum(t["mark"] == "skip" for t in result["tried"]),
            "runs": 1 + judged, "traced": 1, "naming": naming, "starts": starts["guarded"] + starts["traced"],
            "counted": starts["guarded"] + starts["traced"] == 2 + judged + naming}
    pivot = (result["naming"] or {}).get("pivot") or {}
    places = [pivot[side]["file"] for side in "ab" if pivot.get(side)]
    row["file"] = bool(places) and all(p == bisect_history.FILE_OF.get(fault, "train.py") for p in places)
    row["text"] = next((pivot[side]["text"] for side in "ba" if pivot.get(side)), "")
    return row


def first_by_digest(options, package, releases, folder, program):
    """The first release whose bare run prints another digest than the first one's; None where one does not run."""
    digests = []
    for release in releases:
        env = {**environment("/dev/null"), "PYTHONPATH": str(folder / f"{package}-{release}")}
        if not (folder / f"{package}-{release}.ready").is_file():
            target = folder / f"{package}-{release}"
            subprocess.run([options.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", target,
                            f"{package}=={release}", "einops", "beartype"], check=True, capture_output=True)
        done = subprocess.run([options.python, program], env=env, capture_output=True, text=True)
        digests.append(next((line for line in done.stdout.splitlines() if line.startswith("digest")), None))
    return digests


def run_package(options, package, good, bad, text, work):
    tree = work / package
    tree.mkdir()
    (tree / "run.py").write_text(text)
    kept, out = work / f"{package}.work", work / f"{package}.json"
    result, took, code, _ = bisect(options, ["--package", package, f"{good}..{bad}", "--work", kept], ["run.py"], tree, work / f"{package}.runs", out)
    row = {"package": package, "good": good, "bad": bad, "exit": code, "seconds": round(took, 1), "found": False}
    if result is None:
        return row
    releases = [good, *json.loads((kept / "bisect.json").read_text())["releases"]]
    (work / "bare").mkdir(exist_ok=True)
    digests = first_by_digest(options, package, releases, work / "bare", tree / "run.py")
    first = next((r for r, d in zip(releases, digests) if d is not None and d != digests[0]), None)
    named = result["first_bad"]["release"] if result["first_bad"] else None
    pivot = (result["naming"] or {}).get("pivot") or {}
    row |= {"releases": len(releases), "do_not_run": sum(d is None for d in digests), "by_digest": first, "named": named, "found": named == first and first is not None,
            "runs": 1 + result["runs"]["judged"], "naming": result["runs"]["naming"], "skipped": sum(t["mark"] == "skip" for t in result["tried"]),
            "pivot": next((f"{pivot[s]['file']}:{pivot[s]['line']} {pivot[s]['text']}" for s in "ba" if pivot.get(s)), "")}
    return row


def table(data):
    lines = ["| history | fault in | its number | runs | skipped | preflight | to name it | found | file named | s |", "|---|---|---|---|---|---|---|---|---|---|"]
    yes = {True: "yes", False: "no"}
    for r in data["histories"]:
        found = yes[r["found"]] if r["found"] or not r.get("among") else f"one of {r['suspects']}"
        lines.append(f"| {r['kind']} {r['seed']} | {r['fault']} | {r['number']} of {r['commits']} | {r.get('runs', '-')} | {r.get('skipped', '-')} | 1 | "
                     f"{r.get('naming', '-')} | {found} | {yes[r.get('file', False)]} | {r['seconds']:.0f} |")
    lines += ["", "| package | releases | first that differs, by digest | named | runs | skipped | found | s |", "|---|---|---|---|---|---|---|---|"]
    for r in data["packages"]:
        lines.append(f"| {r['package']} {r['good']} to {r['bad']} | {r.get('releases', '-')} | {r.get('by_digest', '-')} | {r.get('named', '-')} | {r.get('runs', '-')} | "
                     f"{r.get('skipped', '-')} | {yes[r['found']]} | {r['seconds']:.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--only", default="", help="part of a row's name: line, merges, broken, lion")
    parser.add_argument("--all", action="store_true", help="four more histories")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        marks.put(options.table, "bisect", table(json.loads(options.json.read_text())))
        return 0
    data = {"histories": [], "packages": []}
    with tempfile.TemporaryDirectory(prefix="opguard-bench-bisect-") as folder:
        work = options.keep or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        for kind, seed, settings in HISTORIES + (MORE if options.all else []):
            if options.only in f"{kind}{seed}":
                data["histories"].append(run_history(options, kind, seed, settings, work))
                print(json.dumps(data["histories"][-1]), flush=True)
        for package, good, bad, text in PACKAGES:
            if options.only in package:
                data["packages"].append(run_package(options, package, good, bad, text, work))
                print(json.dumps(data["packages"][-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    rows = data["histories"] + data["packages"]
    # Broken commits may leave several; the fault must be among them.
    wrong = [r for r in rows if not (r["found"] or r.get("among"))] + [r for r in data["histories"] if not r.get("skipped", 0) and r.get("runs", 99) > GOAL]
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
