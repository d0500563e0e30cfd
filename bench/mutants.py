"""Random mutants of library code: how often `opguard diff` names the mutated statement, when the truth is known by construction.

  mutants.py --venv DIR --seed 1 --count 40 --controls 15 --work DIR [--jobs 1] [--programs NAME,...] [--operators NAME,...] [--json FILE] [--keep DIR]
  mutants.py --rejudge DIR                     align the kept logs anew with this build, and judge again: seconds
  mutants.py --tables FILE ... --out FILE.md   results files as one document

A mutant is one statement of a library (or of the program) that a small training program executes, changed by one of mutants/operators.py, with 0, 3 or 10
refactorings of mutants/refactorings.py beside it. It counts where bare runs show that the refactorings alone change no bit of losses, parameters, optimizer
state and buffers, and the mutation does; else it is drawn again. A control has refactorings alone. --venv: made by bench/mutants_env.sh.
Draws depend on the seed alone. Seeds 1 to 9 are for looking at; seeds from 100 on are first tries, of which only the counts are printed and written.
Seeds 101 to 113 have been asked: bench/results holds their first tries (all but 102 and 112 were stopped; those of 110 were lost). Take another.
"""
import argparse
import concurrent.futures
import difflib
import json
import signal
import sys
import threading
from pathlib import Path

from accuracy import ROOT, describe, tool_digest
from mutants.answers import ask, ask_again, kept_logs, result_of, stop
from mutants.draw import Places, draw_control, draw_mutant, generator
from mutants.judge import truth_of
from mutants.operators import OPERATORS
from mutants.programs import PROGRAMS, Base, Runner
from mutants.tables import markdown, row, summary

FIRST_TRY = 100  # seeds from here on are never looked at


class Bases:
    """The programs' trees, made where they are missing."""

    def __init__(self, folder, venv, runner):
        self.folder, self.venv, self.runner, self.made = folder, venv, runner, {}

    def __call__(self, name):
        if name not in self.made:
            self.made[name] = Base(PROGRAMS[name], self.folder / name, self.venv, self.runner)
        return self.made[name]


def difference(draw, base):
    """The pair as a diff."""
    out = []
    for file in sorted({*draw.files["a"], *draw.files["b"]}):
        texts = [draw.files[s][file].data if file in draw.files[s] else base.source(file).data for s in "ab"]
        lines = [t.decode(errors="replace").splitlines(keepends=True) for t in texts]
        out += difflib.unified_diff(*lines, f"a/{file}", f"b/{file}", n=2)
    return "".join(out)


def keep_draw(folder, name, draw, base):
    """Writes what is known of a drawn pair, and returns it."""
    (folder / "pair.diff").write_text(difference(draw, base))
    entry = {"name": name, "program": draw.program, "operator": draw.operator, "note": draw.note, "refactorings": len(draw.refactorings),
             "refactored": draw.refactorings, "beside": draw.beside, "truth": truth_of(draw, base), "equivalent": draw.equivalent, "failed": draw.failed,
             "undone": draw.undone}  # fmt: skip
    (folder / "draw.json").write_text(json.dumps(entry, indent=1))
    return entry


def draw_entry(options, name, number, tools):
    """The kept draw of a name, or a new one; None where none was found."""
    folder = options.keep / name
    kept = folder / "draw.json"
    if kept.is_file():
        return json.loads(kept.read_text())
    bases, places, runner = tools()
    rng = generator(options.seed, name[0], number)
    if name[0] == "c":
        found = draw_control(rng, options.programs, bases, folder, runner)
    else:
        order = list(options.operators)
        generator(options.seed, "operators", number // len(order)).shuffle(order)
        operator = order[number % len(order)]
        programs = [p for p in options.programs if PROGRAMS[p].ranks > 1] if operator == "rank_only" else options.programs
        found = draw_mutant(rng, programs or options.programs, places, bases, folder, runner, operator)
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(None))
        return None
    return keep_draw(folder, name, found[0], bases(found[0].program))


def answer_entry(options, entry, digest):
    folder = options.keep / entry["name"]
    kept = folder / "result.json"
    if kept.is_file():
        result = json.loads(kept.read_text())
        if result.get("tool") == digest and result["class"] != "time_limit":
            return result
    answer, code, seconds = ask(options.opguard, PROGRAMS[entry["program"]], folder, options.venv, options.timeout, options.option)
    result = {**result_of(entry, answer, code, seconds), "tool": digest}
    kept.write_text(json.dumps(result, indent=1))
    return result


def run_seed(options):
    names = [(f"m{i:03}", i) for i in range(options.count)] + [(f"c{i:03}", i) for i in range(options.controls)]
    # Controls among the mutants: a run that is stopped has some of both.
    names.sort(key=lambda n: (n[1] / max(options.count if n[0][0] == "m" else options.controls, 1), n[0]))
    digest, drawn, lock = tool_digest(options.opguard), [], threading.Lock()
    made = {}

    def tools():
        if not made:
            runner = Runner(options.venv, options.timeout)
            bases = Bases(options.work / "programs", options.venv, runner)
            for program in options.programs:  # one that fails here is found out before anything is drawn
                bases(program)
            made["tools"] = bases, Places(bases), runner
        return made["tools"]

    def finish(entry):
        result = answer_entry(options, entry, digest)
        with lock:
            if options.seed < FIRST_TRY:
                print(row(result), flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = []
        for name, number in names:
            entry = draw_entry(options, name, number, tools)
            if entry is None:
                print(f"{name}: nothing was found to draw", flush=True)
                continue
            drawn.append(entry)
            waiting.append(pool.submit(finish, entry))
            write_results(options, drawn, [w.result() for w in waiting if w.done()])
        results = [w.result() for w in waiting]
    if made:
        made["tools"][2].close()
    return write_results(options, drawn, results, made_with(options))


def write_results(options, drawn, results, tool=None):
    """The results so far, and as a file with --json. tool: what made them, where they are whole."""
    data = {"seed": options.seed, "first_try": options.seed >= FIRST_TRY, "tool": tool or {}, "equivalent": sum(d["equivalent"] for d in drawn),
            "failed": sum(d["failed"] for d in drawn), "undone": sum(d["undone"] for d in drawn),
            "results": sorted(results, key=lambda r: r["name"])}  # fmt: skip
    if options.json:
        kept = dict(data)
        if options.seed >= FIRST_TRY:  # counts, not places
            keys = ("name", "program", "operator", "refactorings", "class", "verdict", "proof", "seconds")
            kept["results"] = [{k: r[k] for k in keys} for r in data["results"]]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(kept, indent=1) + "\n")
    return data


def made_with(options):
    python = options.venv / "bin" / "python"
    return describe(options.opguard, python if python.exists() else sys.executable)


def rejudge(options):
    """Judges all kept logs of a seed again."""
    folders = sorted(p.parent for p in options.rejudge.glob("*/draw.json"))
    entries = [(f, json.loads((f / "draw.json").read_text())) for f in folders]
    missing = [f.name for f, e in entries if e and not kept_logs(f)]
    if missing:
        print(f"without logs, left out: {', '.join(missing)}")
    entries = [(f, e) for f, e in entries if e and kept_logs(f)]

    def one(item):
        folder, entry = item
        result = result_of(entry, *ask_again(options.opguard, folder, options.timeout))
        (folder / "rejudged.json").write_text(json.dumps(result, indent=1))
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for result in pool.map(one, entries):
            results.append(result)
            if options.seed < FIRST_TRY:
                print(row(result), flush=True)
    return write_results(options, [e for _, e in entries], results, made_with(options))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--venv", type=Path, default=ROOT / "build" / "venvs" / "mutants")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="the programs' trees")
    p.add_argument("--keep", type=Path, help="trees, logs and answers of every pair (default: WORK/SEED)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--controls", type=int, default=15)
    p.add_argument("--programs", default="", help="names, separated by commas")
    p.add_argument("--operators", default="", help="names, separated by commas")
    p.add_argument("--option", action="append", default=[], help="an option for opguard diff")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--rejudge", type=Path, metavar="DIR", help="a folder made by --keep")
    p.add_argument("--tables", type=Path, nargs="+", help="results files to be made one document")
    p.add_argument("--json", type=Path, help="the results")
    p.add_argument("--out", type=Path, help="the document, with --tables")
    o = p.parse_args()
    o.opguard, o.venv, o.work = o.opguard.resolve(), o.venv.absolute(), o.work.resolve()
    if o.tables:
        text = markdown([json.loads(t.read_text()) for t in o.tables])
        o.out.write_text(text) if o.out else print(text)
        return
    for given, known in (("programs", PROGRAMS), ("operators", OPERATORS)):
        names = [n for n in getattr(o, given).split(",") if n] or list(known)
        if unknown := set(names) - set(known):
            sys.exit(f"mutants.py: error: no {given} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        setattr(o, given, names)
    if not o.opguard.is_file():
        sys.exit(f"mutants.py: error: no program {o.opguard}; build it, or name it with --opguard")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if o.rejudge:
        o.rejudge = o.rejudge.resolve()
        data = rejudge(o)
    else:
        o.keep = (o.keep or o.work / f"seed{o.seed}").resolve()
        if not (o.venv / "bin" / "python").exists():
            sys.exit(f"mutants.py: error: no environment {o.venv}; make it with bench/mutants_env.sh")
        data = run_seed(o)
    for line in summary(data["results"]):
        print(line)


if __name__ == "__main__":
    main()
