"""Runs `opguard diff` on every shared case and writes docs/results/accuracy.md: what was expected, what was said.

  accuracy.py --cases DIR --venvs DIR [--only NAME,...] [--json bench/results/accuracy.json]

Finished entries are kept under --work and taken over while the tool stays the same, so that a run can be stopped and
started again. Environments of the cases are made by their own setup.sh under --venvs where they are missing.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from cases import argument_control, make_environment, make_trees, read_entries
from judging import judge, kind_is_right, losses_equal
from table import goals, print_row, write_markdown

ROOT = Path(__file__).resolve().parents[1]


def environment(entry):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
    env["PATH"] = os.pathsep.join(filter(None, [entry.path, env["PATH"]]))
    env["OMP_NUM_THREADS"] = "1"
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def run(command, cwd, env, timeout):
    """(exit code, or None after the time limit; stdout and stderr together). Nothing is left running."""
    process = subprocess.Popen(command, cwd=cwd, env=env, text=True, errors="replace", start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def bare_runs_equal(entry, side, recorded, env, timeout):
    """True, False, or None where the program prints no loss or two bare runs already differ."""
    tree = entry.tree_a if side == "a" else entry.tree_b
    command = shlex.split(entry.run_a if side == "a" else entry.run_b)
    _, first = run(command, tree, env, timeout)
    equal = losses_equal(first, recorded)
    if equal is False:
        _, second = run(command, tree, env, timeout)
        if not losses_equal(first, second):
            return None
    return equal


def check(entry, opguard, venvs, folder, timeout):
    """The result of one entry, as it is kept in its JSON file."""
    make_environment(entry.case, venvs)
    make_trees(entry)
    return answer_of(entry, opguard, folder, timeout)


def answer_of(entry, opguard, folder, timeout):
    """The same of an entry whose environment and trees are there."""
    env, work, out = environment(entry), folder / "work", folder / "answer.json"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(opguard), "diff", str(entry.tree_a), str(entry.tree_b)]
    for package in entry.packages:
        command += ["--with", package]
    command += ["--run-a", entry.run_a, "--run-b", entry.run_b, "--json", str(out), "--work", str(work)]
    start = time.monotonic()
    code, report = run(command, folder, env, timeout)
    seconds = time.monotonic() - start
    (folder / "report.txt").write_text(report)
    answer = json.loads(out.read_text()) if out.is_file() else None
    losses = []
    for side in "ab":
        output = work / f"run_{side}" / "output.txt"
        recorded = output.read_text(errors="replace") if output.is_file() else ""
        losses.append(bare_runs_equal(entry, side, recorded, env, timeout))
    return {
        "case": entry.name,
        "suite": entry.suite,
        "expected": {k: entry.expect[k] for k in ("verdict", "kinds", "statements")},
        "exit": code,
        "answer": answer,
        "class": judge(entry.expect, answer),
        "kind_right": kind_is_right(entry.expect, answer),
        "losses_equal": False if False in losses else None if None in losses else True,
        "seconds": round(seconds, 1),
        "message": "" if answer else report[-2000:],
    }


def kept(result):
    """Of a result what bench/table.py says of it: no path of this machine, and no answer of 40 kB."""
    def place(location):
        if not location:
            return None
        small = {"file": "/".join(location["file"].split("/")[-2:]), "line": location["line"]}
        return {**small, "operator_at": place(location["operator_at"])} if location.get("operator_at") else small

    found = {k: v for k, v in result.items() if k != "tool"}
    found["expected"] = {"verdict": result["expected"]["verdict"],
                         "statements": [{k: s[k] for k in ("side", "file", "first_line")} for s in result["expected"]["statements"]]}  # fmt: skip
    if answer := result["answer"]:
        found["answer"] = {k: answer[k] for k in ("verdict", "why") if k in answer}
        if pivot := answer.get("pivot"):
            found["answer"]["pivot"] = {**{k: pivot.get(k) for k in ("kind", "operator", "phase", "step", "why")},
                                        "a": place(pivot.get("a")), "b": place(pivot.get("b"))}  # fmt: skip
    return found


def tool_digest(opguard):
    """What an answer depends on: the program, and the package of the same build."""
    digest = hashlib.sha256(opguard.read_bytes())
    package = opguard.parents[2] / "python" / "opguard"
    for path in sorted(package.rglob("*.py")) + sorted(package.glob("*.so")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def describe(opguard, base):
    """Versions for the head of the table. The commit is that of the build: the tree may have gone on since."""
    def line(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        return done.stdout.strip() if done.returncode == 0 else "unknown"

    python = line(base, "-c", "import platform, torch; print(platform.python_version(), 'torch', torch.__version__)")
    version, _, commit = line(opguard, "--version").partition(" (")
    return {"opguard": version, "commit": commit.rstrip(")") or "unknown",
            "python": python, "machine": f"{os.cpu_count()} cores, {platform.machine()}, no GPU used"}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    p.add_argument("--venvs", type=Path, default=ROOT / "build" / "venvs")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "accuracy")
    p.add_argument("--only", default="", help="names, or their beginnings, separated by commas")
    p.add_argument("--no-self", action="store_true", help="leave out every case against itself")
    p.add_argument("--control", action="append", default=["ds_clip_default='' --clip 0"],
                   help="CASE=ARGS: with these arguments side b must equal side a")
    p.add_argument("--jobs", type=int, default=1, help="more than one makes races and time limits likelier")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--fresh", action="store_true", help="repeat finished entries")
    p.add_argument("--json", type=Path, help="of every answer what the table says")
    o = p.parse_args()
    o.cases, o.venvs, o.work, o.opguard = (x.resolve() for x in (o.cases, o.venvs, o.work, o.opguard))
    if not (o.cases / "INDEX.md").is_file():
        sys.exit(f"accuracy.py: error: no cases in {o.cases}; name their folder with --cases")
    if not o.opguard.is_file():
        sys.exit(f"accuracy.py: error: no program {o.opguard}; build it, or name it with --opguard")

    entries = read_entries(o.cases, o.venvs, o.work)
    names = {e.name for e in entries}
    entries += [argument_control(entries, text) for text in o.control if text.partition("=")[0] in names]
    if o.no_self:
        entries = [e for e in entries if ".self_" not in e.name]
    if o.only:
        wanted = tuple(o.only.split(","))
        entries = [e for e in entries if e.name.startswith(wanted)]
    digest = tool_digest(o.opguard)

    def result(entry):
        path = o.work / "results" / f"{entry.name}.json"
        if path.is_file() and not o.fresh:
            kept = json.loads(path.read_text())
            if kept.get("tool") == digest:
                return kept
        found = {**check(entry, o.opguard, o.venvs, o.work / "runs" / entry.name, o.timeout), "tool": digest}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1))
        return found

    results = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for found in pool.map(result, entries):
            results.append(found)
            print_row(found)
    for line in goals(results):
        print(line)
    base = make_environment(entries[0].case, o.venvs) / "bin" / "python" if entries else sys.executable
    head = describe(o.opguard, base)
    if o.json:
        o.json.write_text(json.dumps({**head, "results": [kept(r) for r in results]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
