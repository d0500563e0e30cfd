"""Runs both sides of every shared case once, every site recorded, and holds each log against itself.

  single.py --cases DIR --venvs DIR [--only NAME,...] [--races N] [--json FILE]

What is counted is `opguard align --single`'s check for overwritten memory: a side with a race (by the case's expect.json)
must be told, its producer and consumer in the files of that case; all others must stay silent. A race depends on timing: such a case is run
--races times. Finished entries are kept under --work while the tool stays the same. Exit code 1 where a goal is missed.
"""
import argparse
import json
import shutil
import sys
from pathlib import Path

from accuracy import ROOT, environment, run, tool_digest
from cases import argument_control, make_environment, make_trees, read_entries


def overwritten(opguard, log, out, env):
    """The findings of the check in one run's log, or None where there is no log to read."""
    code, _ = run([str(opguard), "align", "--single", str(log), "--json", str(out)], ROOT, env, 600)
    if code not in (0, 1) or not out.is_file():
        return None
    answer = json.loads(out.read_text())
    found = [f for f in answer["findings"] if f["check"] == "overwritten"]
    place = "{file}:{line} {operator}".format
    return {"reads": answer["reads"], "compared": answer["reads_compared"],
            "findings": [{"producer": place(**f["a"]), "consumer": place(**f["b"]), "times": f["times"],
                          "threads": sorted({o["thread"] for o in f["window"]["operators"]})} for f in found]}


def check(entry, opguard, venvs, folder, timeout):
    """One run of each side and what its log says of itself."""
    make_environment(entry.case, venvs)
    make_trees(entry)
    env, work = environment(entry), folder / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(opguard), "diff", str(entry.tree_a), str(entry.tree_b)]
    for package in entry.packages:
        command += ["--with", package]
    command += ["--run-a", entry.run_a, "--run-b", entry.run_b, "--work", str(work), "--no-prove"]
    code, report = run(command, folder, env, timeout)
    (folder / "report.txt").write_text(report)
    sides = {s: overwritten(opguard, work / f"run_{s}" / "log", folder / f"single_{s}.json", env) for s in "ab"}
    return {"case": entry.name, "racing": "b" if "race" in entry.expect["kinds"] else "", "sides": sides}


def judged(result):
    """(side, verdict) of both sides: found, missed, silent, alarm, or blind (no log, or nothing in it to compare)."""
    for side, answer in result["sides"].items():
        racing = side in result["racing"]
        if answer is None or answer["compared"] == 0:
            yield side, "blind"
        elif answer["findings"]:
            yield side, "found" if racing else "alarm"
        else:
            yield side, "missed" if racing else "silent"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    p.add_argument("--venvs", type=Path, default=ROOT / "build" / "venvs")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "single")
    p.add_argument("--only", default="", help="names, or their beginnings, separated by commas")
    p.add_argument("--races", type=int, default=5, help="runs of a case with a race")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--fresh", action="store_true", help="repeat finished entries")
    p.add_argument("--json", type=Path, help="every answer")
    o = p.parse_args()
    o.cases, o.venvs, o.work, o.opguard = (x.resolve() for x in (o.cases, o.venvs, o.work, o.opguard))
    if not (o.cases / "INDEX.md").is_file():
        sys.exit(f"single.py: error: no cases in {o.cases}; name their folder with --cases")
    if not o.opguard.is_file():
        sys.exit(f"single.py: error: no program {o.opguard}; build it, or name it with --opguard")

    # Both sides of an entry run once here already; a side against itself adds nothing.
    entries = [e for e in read_entries(o.cases, o.venvs, o.work) if ".self_" not in e.name]
    if any(e.name == "ds_clip_default" for e in entries):
        entries.append(argument_control(entries, "ds_clip_default='' --clip 0"))
    if o.only:
        entries = [e for e in entries if e.name.startswith(tuple(o.only.split(",")))]
    digest, results = tool_digest(o.opguard), []
    for entry in entries:
        for number in range(o.races if "race" in entry.expect["kinds"] else 1):
            path = o.work / "results" / f"{entry.name}.{number}.json"
            kept = json.loads(path.read_text()) if path.is_file() and not o.fresh else {}
            if kept.get("tool") != digest:
                kept = {**check(entry, o.opguard, o.venvs, o.work / "runs" / entry.name, o.timeout), "tool": digest}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(kept, indent=1))
            results.append(kept)
            for side, verdict in judged(kept):
                answer = kept["sides"][side] or {"compared": 0, "reads": 0, "findings": []}
                print(f"{verdict:7} {kept['case']:36} {side}  {answer['compared']} of {answer['reads']} reads compared", flush=True)
                for f in answer["findings"]:
                    print(f"        {f['producer']} -> {f['consumer']}, {f['times']} times, threads {f['threads']}", flush=True)
    verdicts = [v for r in results for _, v in judged(r)]
    count = {v: verdicts.count(v) for v in ("found", "missed", "silent", "alarm", "blind")}
    print(f"races: {count['found']} of {count['found'] + count['missed']} runs found (goal: all)")
    print(f"others: {count['silent']} of {count['silent'] + count['alarm'] + count['blind']} runs silent (goal: all)")
    if o.json:
        o.json.write_text(json.dumps({"counts": count, "results": results}, indent=1))
    sys.exit(1 if count["missed"] or count["alarm"] or count["blind"] else 0)


if __name__ == "__main__":
    main()
