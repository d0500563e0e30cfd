"""`make coverage`: preflight, instrumented run and verification of small real programs.

  coverage.py --venv DIR [--only NAME,...] [--json bench/results/coverage.json] [--work DIR]
  coverage.py --venv DIR --sharing [--only NAME,...] [--json ...]       # preflights alone: how many operators share a site
  coverage.py --json bench/results/coverage.json --out docs/results/coverage.md     # the document from what FILE holds; runs nothing

--json FILE that is there is added to: programs and parts that were not measured this time stay.

An operator belongs to a site also where it only is somewhere below the site's call: `self.model(x)` of a library whose sources hold no probes. So
beside the share of operators that belong to a site stands how many of them share one: under one execution of the site (one recorded event), and in a
step, backward included.

Exit code 0 if every program is covered to the goal in every phase and stays bit-equal with the same compiled graphs, without loss in the log.
"""
import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import marks

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "bench" / "programs"
GOAL = 0.99
STEPS = 2  # of every program
PHASES = ("forward", "recompute", "backward", "optimizer")
SHOWN = 12  # places listed for a program


@dataclass
class Program:
    name: str
    about: str
    script: str
    packages: tuple = ()
    tree: Path = PROGRAMS
    launcher: tuple = ()
    arguments: tuple = ()


PROGRAMS_RUN = [
    Program("minitrain", "the example program", "train.py", tree=ROOT / "examples" / "minitrain", arguments=("--steps", "2")),
    Program("llama", "transformers Llama, activation checkpoints", "llama.py", ("transformers",)),
    Program("mixtral", "transformers Mixtral, router loss", "mixtral.py", ("transformers",)),
    Program("gpt_neox", "transformers GPT-NeoX, dropout, foreach SGD", "gpt_neox.py", ("transformers",)),
    Program("qwen2_vl", "transformers Qwen2-VL, images", "qwen2_vl.py", ("transformers",)),
    Program("hf_trainer", "transformers Trainer, accumulation", "hf_trainer.py", ("transformers", "accelerate")),
    Program("vit", "timm ViT, stochastic depth", "vit.py", ("timm",)),
    Program("compiled_gpt", "torch.compile(fullgraph=True)", "compiled_gpt.py"),
    Program("ddp", "DDP over gloo, 2 ranks", "ddp.py", launcher=("-m", "torch.distributed.run", "--nproc-per-node", "2")),
    Program("triton_kernel", "Triton kernel, interpreted", "triton_kernel.py"),
    Program("extension", "C++ extension operators", "extension.py"),
]  # fmt: skip


def environment(venv):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
    env["PATH"] = str(venv / "bin") + os.pathsep + env["PATH"]
    env.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1")
    return env


def run(command, env, output):
    with open(output, "w") as out:
        return subprocess.run([str(c) for c in command], env=env, stdout=out, stderr=subprocess.STDOUT, timeout=1800).returncode


def tail(file, lines=6):
    return "\n".join(file.read_text(errors="replace").splitlines()[-lines:])


def coverage_by_phase(plan):
    """{phase: (attributed, activities)} of activities that compute, with "all"."""
    coverage = plan["coverage"]
    phases = {p: (c["attributed"], c["activities"]) for p, c in coverage.get("phases", {}).items() if p in PHASES}
    return {**phases, "all": (coverage["attributed"], coverage["activities"])}


def quantiles(counts):
    """The median, the 95th percentile and the worst of (operators, site), with the worst's site."""
    counts = sorted(counts)
    at = [counts[min(len(counts) - 1, int(len(counts) * share))] for share in (0.5, 0.95)]
    return {"median": at[0][0], "p95": at[1][0], "worst": counts[-1][0], "site": counts[-1][1]}


def sharing(plan):
    """How many dispatched operators share a site, the tracer's own marks not counted; None if no site has one."""
    executions, steps = [], []
    for b in plan["boundaries"]:
        count = {part: sum(n for name, n in b.get(part, {}).items() if not name.startswith("opguard::")) for part in ("activities", "backward")}
        site = f"{b['file']}:{b['line']} {b['callee']}"
        if b["calls"] and count["activities"]:
            executions.append((count["activities"] / b["calls"], site))
        if sum(count.values()):
            steps.append((sum(count.values()) / STEPS, site))
    return {"sites": len(steps), "execution": quantiles(executions), "step": quantiles(steps)} if steps and executions else None


def measure(program, tools, venv, work, verified=True):
    env = environment(venv)
    command = [venv / "bin" / "python", *program.launcher, program.script, *program.arguments]
    packages = [word for package in program.packages for word in ("--with", package)]
    row = {"name": program.name, "about": program.about, "packages": list(program.packages), "error": None}
    began = time.monotonic()
    plan, found = work / "plan.json", work / "verification.json"
    code = run([tools / "opguard", "preflight", "-o", plan, "--tree", program.tree, *packages, "--", *command], env, work / "preflight.txt")
    if code != 0:
        row["error"] = f"preflight: exit code {code}: {tail(work / 'preflight.txt')}"
        return row
    row["preflight_s"] = time.monotonic() - began
    made = json.loads(plan.read_text())
    row["plan"], row["sharing"] = {k: v for k, v in made.items() if k in ("coverage", "unwrapped", "foreign")}, sharing(made)
    if not verified:
        return row
    verify = [tools / "opguard-instrument", program.tree, "--plan", plan, *packages, "--verify", "--json", found, "--work", work / "runs"]
    row["exit"] = run([*verify, "--", *command], env, work / "verify.txt")
    row["seconds"] = time.monotonic() - began
    if not found.exists():
        row["error"] = f"verify: exit code {row['exit']}: {tail(work / 'verify.txt')}"
        return row
    row["verification"] = json.loads(found.read_text())
    row["notes"] = [line for line in (work / "verify.txt").read_text(errors="replace").splitlines()
                    if ": lost: " in line or ": ambiguous: " in line or " is not wrapped: " in line]  # fmt: skip
    return row


def shares(row):
    return {p: a / n if n else None for p, (a, n) in coverage_by_phase(row["plan"]).items()}


def losses(row):
    """What the log of the instrumented run does not hold, as text; "" if nothing."""
    log = row["verification"]["log"]
    parts = [f"{log[key]} {what}" for key, what in
             (("lost_records", "records lost"), ("faults", "faults"), ("unclosed", "logs cut short")) if log[key]]  # fmt: skip
    return ", ".join(parts + log["unprobed"])


def passes(row):
    if row["error"]:
        return False
    covered = all(s is None or s >= GOAL for s in shares(row).values())
    return covered and row["verification"]["verdict"] == "equal" and not losses(row) and not row["notes"]


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def pair(row, name):
    both = [row["verification"]["compile"][run][name] for run in ("bare", "instrumented")]
    return "-" if both == [None, None] else "/".join("-" if b is None else str(b) for b in both)


def verdict(row):
    found = row["verification"]
    if found["verdict"] == "equal":
        return "yes"
    site = (found["culprit"] or {}).get("site")
    return f"NO: {found['why']}" + (f" ({site['file']}:{site['line']})" if site else "")


def cells(row):
    if row["error"]:
        return [row["name"], "did not run"] + [""] * 9
    share = shares(row)
    return [row["name"], *(percent(share.get(p)) for p in PHASES), percent(share["all"]), verdict(row),
            pair(row, "graphs"), pair(row, "graph_breaks"), pair(row, "recompiles"), losses(row) or "none"]  # fmt: skip


HEADINGS = ("program", *PHASES, "all", "bit-equal", "graphs", "breaks", "recompiles", "log loss")


def rest(row):
    """The activities no boundary has, a line each, the most frequent first."""
    lines = []
    for u in sorted(row["plan"]["unwrapped"], key=lambda u: -u["activities"]):
        where = f"`{u['file']}:{u['line']}`" + (f" ({u['phase']})" if u.get("phase") else "")
        lines.append((u["activities"], f"{where}: {u['what']}"))
    for f in row["plan"].get("foreign", []):
        lines.append((f["count"], f"`{f['activity']}` ({f['phase']}): no source of the tree or of a package named above it"))
    lines.sort(key=lambda line: -line[0])
    text = [f"- {count} in {what}" for count, what in lines[:SHOWN]]
    if len(lines) > SHOWN:
        text.append(f"- {sum(count for count, _ in lines[SHOWN:])} in {len(lines) - SHOWN} further places")
    return text + [f"- {note}" for note in row["notes"]]


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def sharing_cells(row):
    found = row.get("sharing")
    if found is None:
        return [row["name"], "did not run"] + [""] * 4
    of = [" / ".join(number(found[part][key]) for key in ("median", "p95", "worst")) for part in ("execution", "step")]
    return [row["name"], str(found["sites"]), of[0], f"`{found['execution']['site']}`", of[1], f"`{found['step']['site']}`"]


SHARING = ("program", "sites", "an execution: median / 95th / worst", "the worst", "a step: median / 95th / worst", "the worst")
HEAD = """# Coverage

Written by `make results` from `bench/results/coverage.json`, which `make coverage` (bench/coverage.py) measures. Programs
are small ones of real library code (bench/programs), with random weights and two optimizer steps. The preflight runs eager.
Here: {versions}, {machine}, CPU.

- phases: the share of the dispatched operators that compute, by phase, that belongs to a probed boundary
  ([plan-format](../formats/plan-format.md), section Coverage)
- bit-equal: whether the instrumented run's losses, gradients, parameters and optimizer state are the bare run's
  (`opguard-instrument --verify`)
- graphs, breaks, recompiles: those of torch.compile, bare/instrumented
- log loss: what the log of the instrumented run lost

"""
SHARE = """
## How many operators share a site

To belong to a site is not to be told apart there: what a call leads to, below it, is one event. Of an event, all inputs and
outputs are recorded; which operator inside it parted is what `--drill` asks. Counted are dispatched operators, the views
among them, over all sites that have any. One count is under one execution of a site, the other is in a step with the
site's backward operators. Of `ddp` both ranks' count. Measured by `bench/coverage.py --venv DIR --sharing`.

"""


def markdown(found):
    rows = found["rows"]
    text = marks.wrapped(HEAD.format(**found)) + marks.table(HEADINGS, map(cells, rows))
    text += f"\n{sum(map(passes, rows))} of {len(rows)} reach the goal: {percent(GOAL)} in every phase, bit-equal, the same graphs, nothing lost.\n\n"
    text += marks.wrapped(SHARE) + marks.table(SHARING, map(sharing_cells, rows)) + "\n## What belongs to no boundary\n\n"
    for row in rows:
        packages = f", packages {', '.join(row['packages'])}" if row["packages"] else ""
        lines = [f"**{row['name']}** ({row['about']}{packages})"]
        lines += [f"- {row['error']}"] if row["error"] else rest(row) or ["- nothing"]
        text += "\n".join(lines) + "\n\n"
    return text.rstrip() + "\n"


def versions_of(venv):
    return subprocess.run(
        [venv / "bin" / "python", "-c", "import platform; from importlib.metadata import version as v\n"
         "print(', '.join(['Python ' + platform.python_version()] + [n + ' ' + v(n) for n in ('torch', 'transformers', 'accelerate', 'timm', 'triton')]))"],
        capture_output=True, text=True).stdout.strip()  # fmt: skip


def kept(file, versions, rows):
    """What the file held, with these rows in place of those of their names: a row without a part leaves the part that was there."""
    found = json.loads(file.read_text()) if file.exists() else {"rows": []}
    old = {row["name"]: {k: v for k, v in row.items() if k != "measured"} for row in found["rows"]}
    new = {row["name"]: {**old.get(row["name"], {}), **row} for row in rows}
    order = [program.name for program in PROGRAMS_RUN]
    return {"versions": versions, "machine": platform.machine(), "rows": sorted({**old, **new}.values(), key=lambda row: order.index(row["name"]))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, default=ROOT / "build" / "release" / "src" / "cli", help="folder of opguard and opguard-instrument")
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sharing", action="store_true", help="how many operators share a site, and nothing else: preflights alone")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path, help="keep plans, logs and outputs here")
    options = parser.parse_args()
    if options.out:
        options.out.write_text(markdown(json.loads(options.json.read_text())))
        return 0
    if not options.venv:
        parser.error("--venv DIR to measure, or --out FILE to write what --json holds")
    wanted = [name for name in options.only.split(",") if name]
    known = {program.name for program in PROGRAMS_RUN}
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(p.name for p in PROGRAMS_RUN)}")
    venv = Path(os.path.abspath(options.venv))  # a link's target has no packages
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for program in PROGRAMS_RUN:
            if wanted and program.name not in wanted:
                continue
            work = (options.work or Path(temporary)).resolve() / program.name
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            rows.append(measure(program, options.tools.resolve(), venv, work, not options.sharing))
            print(" | ".join((sharing_cells if options.sharing else cells)(rows[-1])), flush=True)
            if rows[-1]["error"]:
                print(rows[-1]["error"], flush=True)
    if options.json:
        options.json.write_text(json.dumps(kept(options.json, versions_of(venv), rows), indent=1) + "\n")
    if options.sharing:
        return 0 if all(row.get("sharing") for row in rows) else 1
    print(f"{sum(map(passes, rows))} of {len(rows)} reach the goal")
    return 0 if all(map(passes, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
