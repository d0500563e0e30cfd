"""Programs for the tolerance tier, each right and with faults: ports of library models, and layouts of one program.

  ports.py --list
  ports.py --good NAME --out DIR           the program, as its authors would ship it
  ports.py --fault NAME.FAULT --out DIR    the same with a fault, and DIR/EXPECT.json: what should be named
  ports.py --check [NAME[.FAULT] ...] [--python PY] [--json FILE]

NAME is a folder of bench/ports (a port, or `plain`) or `parallel`, which is bench/parallel. Its faults.py holds one table, CASES.
A fault is an edit of one place. Its `exact` are the statements that are right to name, as (file, function, text on the line),
`near` its functions. The reference always runs in the good tree.
--check runs them all bare: a control must agree with its reference within rounding, a fault must not.
"""
import argparse
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOSS, NORM = 1e-6, 1e-5  # what rounding may do to a loss and to a gradient's norm, relative
DEFAULTS = {"ranks": 1, "ref": "", "args": "", "reference": "reference.py", "candidate": "port.py", "edits": [], "exact": [], "near": [], "module": "",
            "mirrors": "", "phase": "forward", "note": "", "held_out": False, "rounding": 1, "packages": []}  # fmt: skip


def folders():
    return {f.parent.name: f.parent for f in sorted([*HERE.glob("ports/*/faults.py"), HERE / "parallel" / "faults.py"]) if f.is_file()}


def tables(names=None):
    """{"NAME.CASE": the case}, with its folder and files."""
    found = {}
    for name, folder in folders().items():
        if names and name not in names:
            continue
        table = runpy.run_path(str(folder / "faults.py"))
        for case, fields in table["CASES"].items():
            common = {"packages": table.get("PACKAGES", []), **table.get("COMMON", {})}
            found[f"{name}.{case}"] = {**DEFAULTS, **common, **fields, "folder": folder, "files": table["FILES"]}
    return found


def make(case, out, faulty):
    """The tree of a case; with the fault, its EXPECT.json beside it."""
    for file in case["files"]:
        target = out / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(case["folder"] / file, target)
    if not faulty:
        return
    for file, old, new in case["edits"]:
        text = (out / file).read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file}: {old!r} is there {text.count(old)} times")
        (out / file).write_text(text.replace(old, new))
    for file, function, text in case["exact"]:
        if text not in (out / file).read_text():
            raise ValueError(f"{file}: no line has {text!r}")
    (out / "EXPECT.json").write_text(json.dumps({k: v for k, v in case.items() if k not in ("edits", "folder", "files")}, indent=1) + "\n")


def commands(case, python, good="{tree}", faulty="{tree}"):
    """(the reference's, the candidate's) as shell commands."""
    a = f"{python} {good}/{case['reference']} {case['ref']}".strip()
    launch = python if case["ranks"] == 1 else f"{python} -m torch.distributed.run --standalone --nproc-per-node {case['ranks']}"
    return a, f"{launch} {faulty}/{case['candidate']} {case['args']}".strip()


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "TRANSFORMERS_VERBOSITY": "error"}


def losses(command):
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, env=environment(), timeout=300)
    found = re.findall(r"^step (\d+) loss (\S+) norm (\S+)", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return [(float(loss), float(norm)) for _, loss, norm in found]


def difference(a, b):
    """(of the losses, of the norms): the largest over the steps, relative."""
    def far(x, y):
        return abs(x - y) / abs(x) if y == y else float("inf")  # NaN is as far as can be

    if len(a) != len(b):
        raise RuntimeError(f"{len(a)} steps against {len(b)}")
    return max(far(x[0], y[0]) for x, y in zip(a, b)), max(far(x[1], y[1]) for x, y in zip(a, b))


def check(name, case, python, references):
    """What the case's two bare runs print, and whether that is as its kind says."""
    with tempfile.TemporaryDirectory() as folder:
        good, faulty = Path(folder, "good"), Path(folder, "faulty")
        make(case, good, False)
        make(case, faulty, True)
        a, b = commands(case, python, good, faulty)
        key = (case["folder"], case["reference"], case["ref"])
        if key not in references:
            references[key] = losses(a)
        loss, norm = difference(references[key], losses(b))
    within = loss <= LOSS * case["rounding"] and norm <= NORM * case["rounding"]
    return {"case": name, "kind": case["kind"], "held_out": case["held_out"], "loss": loss, "norm": norm, "right": within == (case["kind"] == "none")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--list", action="store_true")
    p.add_argument("--good", metavar="NAME")
    p.add_argument("--fault", metavar="NAME.FAULT")
    p.add_argument("--out", type=Path)
    p.add_argument("--check", nargs="*", metavar="NAME")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--json", type=Path)
    o = p.parse_args()
    found = tables()
    if o.list:
        for name, case in found.items():
            print(f"{name:26} {case['ranks']} [{case['ref']}] [{case['args']}] {case['kind']:14} {'held out ' if case['held_out'] else ''}{case['note']}")
    elif o.good or o.fault:
        name = o.fault or next((n for n in found if n.startswith(o.good + ".")), o.good)
        if name not in found or not o.out:
            sys.exit(f"ports.py: error: {'no --out DIR' if name in found else f'no case {name}'}; --list names them")
        make(found[name], o.out, bool(o.fault))
    elif o.check is not None:
        results, references = [], {}
        for name, case in found.items():
            if o.check and not any(name == n or name.startswith(n + ".") for n in o.check):
                continue
            results.append(r := check(name, case, o.python, references))
            print(f"{name:26} {r['kind']:14} loss {r['loss']:.1e} norm {r['norm']:.1e} {'' if r['right'] else 'WRONG'}", flush=True)
        if o.json:
            o.json.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{sum(r['right'] for r in results)} of {len(results)} as their kind says")
        return 0 if all(r["right"] for r in results) else 1
    else:
        p.error("one of --list, --good, --fault, --check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
