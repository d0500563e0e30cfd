"""Runs `opguard diff --simulate` on parallel programs, right ones and wrongly configured ones, and scores the answers.

  simulate.py --python PY [--cases DIR] [--only NAME ...] [--seeds N] [--minutes M] [--json FILE]
  simulate.py --json FILE --table DOCUMENT      # the document's part, from what was kept; runs nothing

NAME is a case or the beginning of one: `plan`, `core.padded`, `tinyllama`, `mcore`. Cases are those of
bench/simulate/simulate_cases.py and DIR's, by their own faults.py. PY has what their programs import
(bench/tolerance_env.sh). What differs in DIR's candidates is arithmetic or refused: ANSWERS says which. A case that is
held out was not looked at while the tool was written: its first answer stays.

right: what was to be said, and every rank bit-equal where that is `arithmetic`. place: `configuration`, at a line that
is right to name. wrong: another answer. failed: no answer where one was due. limit: the time limit. All are counted.
"""

import argparse
import json
import os
import re
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import answers
import marks
import tolerance
from accuracy import run, tool_digest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "simulate"))
from simulate_cases import CASES  # noqa: E402

# Of the shared table: what a simulation can say.
# Its context parallelism is made by hand; two data ranks are no single process.
ANSWERS = {
    "tinyllama.cp_loss_scale": ("refused", "by hand"),
    "tinyllama.cp_positions": ("refused", "by hand"),
    "tinyllama.control_cp": ("refused", "by hand"),
    "tinyllama.dp_mean_of_means": ("refused", "divided among 2"),
    "tinyllama.control_fused": ("configuration", "F.scaled_dot_product_attention("),
}
SETS = (
    ("own, looked at", lambda r: r["set"] == "own" and not r["held_out"]),
    ("own, held out", lambda r: r["held_out"]),
    ("shared table", lambda r: r["set"] == "shared"),
)


def torchrun(python, ranks):
    return python if ranks == 1 else f"{python} -m torch.distributed.run --standalone --nproc-per-node {ranks}"


def make_own(case, folder, faulty):
    here = ROOT / "bench" / "simulate"
    folder.mkdir(parents=True)
    text = (here / f"{case['program']}.py").read_text()
    for old, new in case["edits"] if faulty else ():
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is there {text.count(old)} times")
        text = text.replace(old, new)
    (folder / "train.py").write_text(text)
    if case["program"] == "core":
        shutil.copy(here / "cpu.py", folder)
    if "megatron.training" in text:
        place = folder / "megatron" / "training" / "tokenizer"
        place.mkdir(parents=True)
        shutil.copy(here / "tokenizer.py", place)


def shared(o):
    found = {}
    for name, case in tolerance.shared_cases(o.cases, o.python).items():
        says, word = ANSWERS.get(name, ("arithmetic", ""))
        found[name] = {
            **case,
            "a": case["ref"],
            "a_ranks": 1,
            "b": case["args"],
            "says": says,
            "at": [word] if word else [],
            "seeds": 1,
            "set": "shared",
            "held_out": False,
        }
    return found


def answer_of(name, case, seed, o):
    folder = o.work / "runs" / f"{name}.{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if case["set"] == "shared":
        good, faulty, _ = tolerance.make_trees(case, folder, o.python)
    else:
        good, faulty = folder / "good", folder / "faulty"
        make_own(case, good, False)
        make_own(case, faulty, True)
    more = f" --seed {seed}" if case["set"] == "own" else ""
    commands = [
        f"{torchrun(o.python, case[ranks])} {{tree}}/train.py {case[args]}{more}"
        for ranks, args in (("a_ranks", "a"), ("ranks", "b"))
    ]
    out = folder / "answer.json"
    command = [
        str(o.opguard),
        "diff",
        "--simulate",
        str(good),
        str(faulty),
        "--run-a",
        commands[0],
        "--run-b",
        commands[1],
    ]
    if case["set"] == "own" and case["program"] == "core":
        command += ["--with", "megatron.core"]
    start = time.monotonic()
    code, said = run(
        [*command, "--json", str(out), "--work", str(folder / "work")],
        folder,
        tolerance.environment(o.python),
        o.timeout,
    )
    seconds = time.monotonic() - start
    answer = json.loads(out.read_text()) if out.is_file() else None
    told = (answer or {}).get("simulate") or {}
    (folder / "report.txt").write_text(said)
    shutil.rmtree(folder / "work", ignore_errors=True)
    found = {
        "case": name,
        "set": case["set"],
        "seed": seed,
        "held_out": case["held_out"],
        "says": case["says"],
        "class": judge(case, told, code, said, (answer or {}), faulty),
        "answer": told.get("answer", ""),
        "text": without_folders(told.get("text") or last_words(said)),
        "exit": code,
        "ranks": len(told.get("ranks", [])),
        "seconds": round(seconds, 1),
    }
    return found


def last_words(said):
    lines = [line for line in said.splitlines() if line.startswith("opguard:")]
    errors = [line for line in lines if "error: " in line]
    return (errors or lines or [said])[-1].removeprefix("opguard: ").removeprefix("error: ")[-400:]


def judge(case, told, code, said, answer, tree):
    """See the head of this file."""
    if code is None:
        return "limit"
    if case["says"] == "refused":
        return (
            "right"
            if code == 2 and not told and all(word in last_words(said) or word in said for word in case["at"])
            else "wrong"
        )
    if not told:
        return "failed"
    if told["answer"] != case["says"]:
        return "wrong"
    if case["says"] == "arithmetic":
        whole = len(told["ranks"]) == case["ranks"] and all(rank["verdict"] == "identical" for rank in told["ranks"])
        return "right" if whole and code == 0 else "wrong"
    location = (answer.get("pivot") or {}).get("b") or (answer.get("pivot") or {}).get("a")
    return "place" if names(location, case["at"], tree) else "right"


def names(location, texts, tree):
    if not location or not location["file"]:
        return False
    path = Path(location.get("path") or tree / location["file"])
    path = path if path.is_file() else tree / location["file"]
    if not path.is_file():
        return False
    first, last = tolerance.statement(path, location["line"])
    text = "\n".join(path.read_text().splitlines()[first - 1 : last])
    return any(one in text for one in texts)


def counted(rows, says):
    of = [r for r in rows if r["says"] == says]
    good = sum(r["class"] in ("right", "place") for r in of)
    return f"{good} of {len(of)}" if of else "-"


def tables(results):
    rows = []
    groups = [(name, [r for r in results if which(r)]) for name, which in SETS]
    groups.insert(2, ("held out, first tries", [{**r, **r["first"]} for r in results if "first" in r]))
    for name, of in groups:
        placed = [r for r in of if r["says"] == "configuration"]
        at = f"{sum(r['class'] == 'place' for r in placed)} of {len(placed)}" if placed else "-"
        seconds = sorted(r["seconds"] for r in of)
        rows.append(
            (
                name,
                str(len(of)),
                counted(of, "arithmetic"),
                counted(of, "configuration"),
                at,
                counted(of, "refused"),
                f"{seconds[len(seconds) // 2]:.0f}" if seconds else "-",
            )
        )
    text = marks.table(
        (
            "programs",
            "runs",
            "arithmetic: all ranks bit-equal",
            "configuration said",
            "at a right line",
            "refused as it should be",
            "median seconds",
        ),
        rows,
    )
    lines = []
    for r in results:
        if r["says"] != "arithmetic" or r["class"] not in ("right", "place"):
            seed = f", seed {r['seed']}" if r["seed"] else ""
            lines.append((r["case"] + seed, r["says"], r["class"], shortened(r["text"])))
    return text + "\n" + marks.table(("case", "to be said", "class", "said"), lines)


def without_folders(text):
    """Of a place in a tree or a package what lies below it: what is kept names no machine."""
    text = text.replace(f"{ROOT}/", "").replace("opguard: ", "")
    return re.sub(r"\S*/(?:faulty|good|site-packages)/", "", text)


def shortened(text):
    text = text.replace("|", "/")
    return text if len(text) <= 150 else text[:147] + "..."


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", default=str(ROOT / "build" / "venv-tolerance" / "bin" / "python"))
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases" / "parallel")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "simulate")
    p.add_argument("--only", nargs="+", metavar="NAME")
    p.add_argument("--seeds", type=int, default=3, help="of controls")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--minutes", type=float, help="start no further case after that")
    p.add_argument("--fresh", action="store_true", help="repeat finished cases")
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = p.parse_args()
    if o.table:
        marks.put(o.table, "simulate", tables(json.loads(o.json.read_text())["results"]))
        return
    o.opguard, o.work, o.cases = o.opguard.resolve(), o.work.resolve(), o.cases.resolve()
    for needed in (o.opguard, Path(o.python)):
        if not needed.is_file():
            sys.exit(f"simulate.py: error: no {needed}")
    digest = tool_digest(o.opguard)
    commit = answers.commit_of(o.opguard)
    start, results, left = time.monotonic(), [], 0
    for name, case in {**CASES, **shared(o)}.items():
        if o.only and not any(name.startswith(n) for n in o.only):
            continue
        for seed in range(min(case["seeds"], o.seeds)):
            if o.minutes and time.monotonic() - start > o.minutes * 60:
                left += 1
                continue
            path = o.work / "results" / f"{name}.{seed}.json"
            results.append(r := answers.result(path, digest, o.fresh, partial(answer_of, name, case, seed, o)))
            print(
                f"{name:24} {seed} {r['says']:14} {r['class']:7} {r['seconds']:5.0f} s  {shortened(r['text'])}",
                flush=True,
            )
            if o.json:
                answers.keep(o.json, r, commit, ("class", "answer", "text"))
    print(tables(results))
    if left:
        print(f"not run: {left}, for --minutes")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
