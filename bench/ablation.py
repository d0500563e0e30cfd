"""What each heuristic of the judgement is worth: kept logs judged without it, one by one.

  ablation.py DIR [DIR ...] [--build DIR] [--jobs 2] [--json FILE] [--before FILE]
  ablation.py --json bench/results/ablation.json --table docs/design/judgement.md      # what FILE holds into the document; runs nothing

A DIR is searched for pairs of log folders as `opguard diff --work` leaves them: `run_a/log` beside `run_b/log`. Each pair is read once and judged by
bench/judge_without.cc, as it is and without each heuristic (src/align/judge/heuristics.h), as `opguard align --without NAME` would. A pair counts as changed
if its verdict or its pivot's places on the two sides are others. A heuristic that changes none, or its own case alone, can go.
--before: what another build wrote with --json; the pairs that this build judges otherwise are printed.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]


def pairs_of_logs(folders):
    """(name, log of a, log of b) of every comparison kept under the folders."""
    found = []
    for folder in folders:
        for log in sorted(Path(folder).rglob("run_a/log")):
            other = log.parents[1] / "run_b" / "log"
            if other.is_dir():
                found.append((f"{folder.name}/{log.parents[1].relative_to(folder)}", log, other))
    return found


def answers(program, pairs):
    """What judge_without.cc says of each pair, in their order."""
    lines = "".join(f"{a}\t{b}\n" for _, a, b in pairs)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def below(folders, pivot):
    """A pivot's places with paths below the folders, which stand elsewhere on another machine."""
    if isinstance(pivot, list):
        return [below(folders, part) for part in pivot]
    if isinstance(pivot, str):
        for folder in folders:
            pivot = pivot.removeprefix(f"{folder.resolve()}/")
    return pivot


def write_table(document, found):
    rows = [[f"`{name}`", str(of["shaped"]), str(len(of["changed"]))] for name, of in found["heuristics"].items()]
    marks.put(document, "ablation", marks.table(("heuristic", f"shaped the pivot, of {found['pairs']} pairs", "judged otherwise without it"), rows))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="*", type=Path)
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--json", type=Path)
    p.add_argument("--before", type=Path)
    p.add_argument("--table", type=Path)
    o = p.parse_args()
    if o.table:
        return write_table(o.table, json.loads(o.json.read_text()))
    pairs = pairs_of_logs([folder.resolve() for folder in o.folders])
    if not pairs:
        sys.exit("ablation.py: error: no run_a/log beside run_b/log below " + ", ".join(map(str, o.folders)))
    subprocess.run(["ninja", "-C", o.build, "judge_without"], check=True, stdout=subprocess.DEVNULL)
    shares = [pairs[i :: o.jobs] for i in range(o.jobs)]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        judged = list(pool.map(lambda share: list(zip(share, answers(o.build / "bench" / "judge_without", share), strict=True)), shares))
    known = sorted(((pair[0], told) for share in judged for pair, told in share), key=lambda item: item[0])
    told = [(name, answer) for name, answer in known if "error" not in answer]
    result = {}
    for heuristic in dict.fromkeys(h for _, answer in told for h in answer["without"]):
        changed = [name for name, answer in told if answer["without"][heuristic]]
        result[heuristic] = {"shaped": sum(heuristic in answer["heuristics"] for _, answer in told), "changed": changed}
    print(f"{len(told)} of {len(pairs)} pairs of logs judged, {sum(answer['verdict'] == 'diverged' for _, answer in told)} of them diverged")
    print(f"{'heuristic':20} {'shaped':>6} {'changed':>7}")
    for heuristic, found in result.items():
        shown = ", ".join(found["changed"][:3]) + (", ..." if len(found["changed"]) > 3 else "")
        print(f"{heuristic:20} {found['shaped']:6} {len(found['changed']):7}  {shown}")
    verdicts = {name: [answer["verdict"], below(o.folders, answer["pivot"])] for name, answer in told}
    if o.before:
        before = json.loads(o.before.read_text())["verdicts"]
        both = [name for name in verdicts if name in before]
        others = [name for name in both if verdicts[name] != before[name]]
        print(f"{len(others)} of {len(both)} pairs judged otherwise than in {o.before}")
        for name in others:
            print(f"{name}\n  before {before[name]}\n  now    {verdicts[name]}")
    if o.json:
        o.json.write_text(json.dumps({"pairs": len(told), "heuristics": result, "verdicts": verdicts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
