"""What each heuristic of the judgement is worth: kept logs judged without it, one by one.

  ablation.py DIR [DIR ...] [--opguard FILE] [--only NAME,...] [--jobs 2] [--json FILE]

A DIR is searched for pairs of log folders as `opguard diff --work` leaves them: `run_a/log` beside `run_b/log`. For each
heuristic (src/align/judge/heuristics.h) every pair is judged again with `opguard align --without NAME`. A pair counts as changed if
its verdict or its pivot's places on the two sides are others. A heuristic that changes none, or its own case alone, can go.
"""
import argparse
import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def pairs_of_logs(folders):
    """(name, log of a, log of b) of every comparison kept under the folders."""
    found = []
    for folder in folders:
        for log in sorted(Path(folder).rglob("run_a/log")):
            other = log.parents[1] / "run_b" / "log"
            if other.is_dir():
                found.append((str(log.parents[1].relative_to(folder)), log, other))
    return found


def heuristics(opguard):
    """Their names, as the program lists them for a wrong one."""
    done = subprocess.run([opguard, "align", "--without", "?", ".", "."], capture_output=True, text=True)
    names = re.search(r"there are: ([a-z, -]+)", done.stderr + done.stdout)
    if not names:
        sys.exit(f"ablation.py: error: {opguard} lists no heuristics: {(done.stderr or done.stdout).strip()}")
    return names.group(1).strip().split(", ")


def place(side):
    return None if side is None else (side["file"], side["line"], side["column"])


def answer(opguard, log_a, log_b, without=None):
    """What a verdict says: (verdict, kind, place in a, place in b, heuristics by name); None where it gave none."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.json"
        command = [opguard, "align", log_a, log_b, "--json", out] + (["--without", without] if without else [])
        subprocess.run(command, capture_output=True)
        if not out.is_file():
            return None
        told = json.loads(out.read_text())
    pivot = told.get("pivot")
    if not pivot:
        return (told["verdict"], None, None, None, ())
    return (told["verdict"], pivot["kind"], place(pivot["a"]), place(pivot["b"]), tuple(pivot["heuristics"]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+", type=Path)
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--only", default="", help="these heuristics")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--json", type=Path)
    o = p.parse_args()
    pairs = pairs_of_logs([folder.resolve() for folder in o.folders])
    if not pairs:
        sys.exit("ablation.py: error: no run_a/log beside run_b/log below " + ", ".join(map(str, o.folders)))
    names = heuristics(o.opguard)
    if unknown := set(filter(None, o.only.split(","))) - set(names):
        sys.exit(f"ablation.py: error: no heuristic {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    names = [name for name in names if not o.only or name in o.only.split(",")]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        judged = list(pool.map(lambda pair: answer(o.opguard, *pair[1:]), pairs))
        kept = [(pair, told) for pair, told in zip(pairs, judged) if told]
        print(f"{len(kept)} of {len(pairs)} pairs of logs judged")
        result = {}
        for name in names:
            others = pool.map(lambda item, name=name: answer(o.opguard, *item[0][1:], without=name), kept)
            changed = [pair[0] for (pair, told), other in zip(kept, others) if other is None or other[:4] != told[:4]]
            result[name] = {"shaped": sum(name in told[4] for _, told in kept), "changed": changed}
    print(f"{'heuristic':20} {'shaped':>6} {'changed':>7}")
    for name, found in result.items():
        shown = ", ".join(found["changed"][:3]) + (", ..." if len(found["changed"]) > 3 else "")
        print(f"{name:20} {found['shaped']:6} {len(found['changed']):7}  {shown}")
    if o.json:
        o.json.write_text(json.dumps({"pairs": len(kept), "heuristics": result}, indent=1))


if __name__ == "__main__":
    main()
