#!/usr/bin/env python3
"""Programs that run bare run probed: a corpus of documentation examples and model tests, bare against probed.

  bench/corpus.py [--packages torch ... | --families timm ... [--tests DIR] | --repository DIR ...] [--venv DIR] [--count N] [--seed S] [--modes eager compile] [--sites plan all] [--work DIR] [--json FILE]

Programs (bench/corpus/): every docstring with `>>>` examples of the packages (documented.py), each as a script and, for mode `compile`, as one
function under torch.compile(backend="eager"); or with --families one training run of a model of every family and a package's own tests (families.py,
in the environment of bench/coverage_env.sh); or with --repository the programs of examples.py and the tutorials that a checkout or git directory holds (repository.py, in
the environment of bench/corpus/environment.sh). A batch of them runs in one process bare, bare again, and probed (import hook, mode `full`) under an
ordinary plan from a preflight (`plan`) and with every site wrapped (`all`). A program agrees if what it printed, the bytes of every tensor it left,
the random generators' states and the way it ended are the same; one whose two bare runs differ is not judged. A batch that does not reach its end is
run again program by program. Ends with 1 if a program differs."""

import argparse
import contextlib
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARTS = Path(__file__).resolve().parent / "corpus"
sys.path.insert(0, str(PARTS))

import marks  # noqa: E402
import repository  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 900  # of a batch
ASKED_FOR = {"ModuleNotFoundError": "a package", "URLError": "a download", "ConnectionError": "a download", "FileNotFoundError": "data", "Ended": "time", "two bare runs differ": "steadiness"}


class Corpus:
    def __init__(self, options):
        self.options, self.python = options, options.venv / "bin" / "python"
        self.work = Path(tempfile.mkdtemp(prefix="corpus-", dir=options.work))
        self.tree = self.work / "tree"
        self.tree.mkdir()
        shutil.copy(PARTS / "driver.py", self.tree)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
        self.environment.update(OMP_NUM_THREADS="1", PYTHONHASHSEED="0", HF_HUB_OFFLINE="1", MPLBACKEND="Agg")
        self.environment["PATH"] = os.pathsep.join([str(options.venv / "bin"), str(options.build / "src" / "cli"), self.environment["PATH"]])
        self.runs = 0
        self.late = False  # whether the process that ended last was ended by us
        self.seconds = {}  # by what was done: bare, preflight, instrument, probed
        self.slowest = {}  # by program, of all its runs

    @contextlib.contextmanager
    def timed(self, what):
        began = time.monotonic()
        yield
        self.seconds[what] = self.seconds.get(what, 0) + time.monotonic() - began

    def slow_ones(self):
        return dict(sorted(self.slowest.items(), key=lambda item: -item[1])[:10])

    def vendored(self):
        """The sources of the families' packages and the tests lie in the tree: what stands there is probed."""
        where = "import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]).submodule_search_locations[0])"
        for package in self.options.families:
            found = subprocess.run([self.python, "-c", where, package], check=True, capture_output=True, text=True, env=self.environment, cwd=self.work)
            shutil.copytree(found.stdout.strip(), self.tree / package, ignore=shutil.ignore_patterns("__pycache__"))
        if self.options.tests:
            shutil.copytree(self.options.tests, self.tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([self.python, PARTS / "families.py", *self.options.families, "--tree", self.tree, "--tests", str(self.options.tests_of_file), "--seed", str(self.options.seed)], check=True, stderr=subprocess.DEVNULL, env=self.environment, cwd=self.tree)

    def programs(self):
        if self.options.families:
            self.vendored()
        elif self.options.packages:
            self.documented()
        return sorted(p.stem for p in (self.tree / "programs").glob("p*.py") if not p.stem.endswith("_compiled"))

    def drawn(self, names):
        names = [n for n in names if not self.options.only or any(o in n for o in self.options.only)]
        random.Random(self.options.seed).shuffle(names)
        return names[: self.options.count] if self.options.count else names

    def documented(self):
        subprocess.run([self.python, PARTS / "documented.py", *self.options.packages, "--out", self.tree], check=True, stderr=subprocess.DEVNULL, env=self.environment)

    def driver(self, mode, names, before=(), environment=()):
        """One process over the programs; what it says of each, by name."""
        self.runs += 1
        results = self.work / ("results-%d" % self.runs)
        command = [*before, self.python, "driver.py", results, "--compile", "eager" if mode == "compile" else "", *names]
        with open(self.work / ("output-%d" % self.runs), "w") as output:
            process = subprocess.Popen([*map(str, command)], cwd=self.tree, env={**self.environment, **dict(environment)}, stdout=output, stderr=output, start_new_session=True)
            with self.timed("probed" if before else "bare"):
                self.ended(process)
        lines = results.read_text().splitlines() if results.exists() else []
        said = {r["name"]: r for r in map(json.loads, lines)}
        for result in said.values():  # the time a program took is not what it did
            self.slowest[result["name"]] = max(result.pop("seconds"), self.slowest.get(result["name"], 0))
        for name in names:
            said.setdefault(name, {"name": name, "error": ["Ended", "with the process (%s)" % process.returncode]})
        said[""] = {"exit": process.returncode, "output": output.name}
        return said

    def hook(self, mode, names, sites):
        """The import hook's map of the programs, instrumented; None where that failed."""
        copy, ending = self.work / ("probed-%d" % self.runs), "_compiled.py" if mode == "compile" else ".py"
        wanted = {n + ending for n in names if (self.tree / "programs" / (n + ending)).exists()} or {n + ".py" for n in names}

        def others(folder, files):
            programs = Path(folder).name == "programs" and Path(folder).parent == self.tree
            return [f for f in files if (f not in wanted if programs and f != "__init__.py" else "." in f and not f.endswith(".py"))]

        shutil.copytree(self.tree, copy, ignore=others)
        chosen = ["--all-sites"]
        if sites == "plan":
            plan = self.work / ("plan-%d" % self.runs)
            command = ["opguard", "preflight", "--quiet", "--tree", self.tree, "-o", plan, "--", self.python, "driver.py", os.devnull, "--compile", "eager" if mode == "compile" else "", *names]
            said = self.tool("preflight", command)
            if not plan.exists():
                return self.failed("preflight", said)
            chosen = ["--plan", plan]
        said = self.tool("instrument", ["opguard-instrument", copy, *chosen, "--apply"])
        if said[0] not in (0, 1):
            return self.failed("opguard-instrument", said)
        texts = {str(self.tree / f.relative_to(copy)): str(f) for f in copy.rglob("*.py") if f.name != "driver.py" and f.read_bytes() != (self.tree / f.relative_to(copy)).read_bytes()}
        path = self.work / ("hook-%d.json" % self.runs)
        path.write_text(json.dumps({"files": texts}))
        return path

    def tool(self, what, command):
        """(exit code, what it complained of) of one of opguard's commands."""
        with self.timed(what), tempfile.TemporaryFile("w+", dir=self.work) as told:
            process = subprocess.Popen([*map(str, command)], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told, start_new_session=True)
            code = self.ended(process)
            told.seek(0)
            return code, told.read()

    def ended(self, process):
        """Its exit code; one that takes too long is ended with all that it started."""
        self.late = False
        try:
            process.wait(self.options.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.late = True
        return process.returncode

    def failed(self, what, said):
        print("%s failed (%s): %s" % (what, said[0], said[1][-600:]), flush=True)
        return None

    def probed(self, mode, names, hook):
        log = self.work / ("log-%d" % self.runs)
        before = ["opguard", "run", "--mode", "full", "--log", log, "--"]
        said = self.driver(mode, names, before, [("OPGUARD_HOOK", str(hook)), ("OPGUARD_TREE", str(self.tree))])
        said[""]["bytes"] = sum(f.stat().st_size for f in log.rglob("*") if f.is_file())
        shutil.rmtree(log, ignore_errors=True)
        return said

    def batch(self, mode, names):
        """Judged programs of a batch: {name: {"bare":, sites: probed or None if the same}}."""
        # The second run finds other bytes in fresh memory: what reads memory that nobody wrote is not steady.
        bare, again = self.driver(mode, names), self.driver(mode, names, environment=[("MALLOC_PERTURB_", "165")])
        steady = [n for n in names if bare[n] == again[n] and not left_out(bare[n]["error"])]
        verdicts = {n: {"bare": bare[n]} for n in steady}
        for sites in self.options.sites:
            hook = self.hook(mode, names, sites)
            probed = self.probed(mode, names, hook) if hook else {n: {"error": ["opguard", "made no plan or patch"]} for n in names}
            unlike = [n for n in steady if probed[n] != bare[n]]
            for name in unlike[:12] if len(unlike) > 1 else []:
                # Alone: one program's failure may have changed the next one's start.
                alone, probed_alone = self.driver(mode, [name]), self.probed(mode, [name], hook) if hook else probed
                bare[name], probed[name] = alone[name], probed_alone[name]
            for name in steady:
                verdicts[name][sites] = None if probed[name] == bare[name] else probed[name]
            if hook and probed[""]["bytes"] == 0:
                raise SystemExit("no probe wrote anything: %s" % probed[""]["output"])
        return verdicts


def left_out(error):
    """Whether a program ended for the corpus' own reasons: its time, the size of its model."""
    return error is not None and (error[0] == "TimeoutError" or error[1].startswith("too large"))


def where_unlike(bare, probed):
    """Of two values what differs: of texts the lines, of tables the entries."""
    if isinstance(bare, dict) and isinstance(probed, dict):
        return {k: where_unlike(bare.get(k), probed.get(k)) for k in {**bare, **probed} if bare.get(k) != probed.get(k)}
    if isinstance(bare, str) and isinstance(probed, str):
        return [line for line in difflib.ndiff(bare.splitlines(), probed.splitlines()) if line[0] in "-+"]
    return [bare, probed]


def differences(bare, probed):
    """What a person wants to see of a program that differs."""
    return {k: where_unlike(bare.get(k), probed.get(k)) for k in ("error", "exit", "stdout", "values", "rng", "said", "files") if bare.get(k) != probed.get(k)}


def summary(mode, verdicts, names, sites):
    ran = [v for v in verdicts.values() if v["bare"]["error"] is None]
    row = {"mode": mode, "programs": len(names), "judged": len(verdicts), "to_the_end": len(ran), "ended_in_an_error": len(verdicts) - len(ran)}
    for kind in sites:
        row["differ_" + kind] = sum(v[kind] is not None for v in verdicts.values())
    return row


def write_table(path, key, results):
    """Puts the rows between the marks <!-- corpus:KEY --> and <!-- /corpus:KEY --> of a document; rows of a mode are added up."""
    modes = {}
    for row in (row for result in results for row in result["rows"]):
        sum_of = modes.setdefault(row["mode"], {})
        for name, value in row.items():
            if isinstance(value, int):
                sum_of[name] = sum_of.get(name, 0) + value
    sites = [k[len("differ_") :] for k in results[0]["rows"][0] if k.startswith("differ_")]
    headings = ["mode", "programs", "judged", "of them end in an error", *("differ, `%s`" % s for s in sites)]
    text = marks.table(headings, [[mode, *(str(row[k]) for k in ("programs", "judged", "ended_in_an_error")), *(str(row["differ_" + s]) for s in sites)] for mode, row in modes.items()])
    names = sorted({d["program"].split("_", 1)[1] for result in results for d in result["differ"]})
    seeds = sorted({seed for r in results for seed in (r["seed"] if isinstance(r["seed"], list) else [r["seed"]])})
    text += "\nDrawn with `--seed %s`%s." % (" ".join(map(str, seeds)), "; they differ: " + ", ".join("`%s`" % n for n in names) if names else "")
    text += "\n" * 2 if any("left" in r for r in results) else ""
    marks.put(path, "corpus:" + key, text + not_judged(results))


def not_judged(results):
    """Why programs of a repository were not judged, counted; the names stand in the results."""
    found = {}
    for result in results:
        for name, why in result.get("left", {}).items():
            kind = why.partition(":")[0]
            reason = ASKED_FOR.get(kind, "a download" if "download" in why else "a GPU" if "CUDA" in why else kind)
            found.setdefault(reason, []).append(name.split()[1])
    said = ["- %s: %d, %s" % (reason, len(names), ", ".join("`%s`" % n for n in sorted(names))) for reason, names in sorted(found.items())]
    return marks.wrapped("Not judged, by what they want:\n\n" + "\n".join(said)) if said else ""


def population(options):
    return options.families or [r.parent.name if r.name == "repo" else r.name for r in options.repository] or options.packages


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--packages", nargs="+", default=["torch"])
    options.add_argument("--families", nargs="+", default=[], choices=["transformers", "timm", "torchvision"], help="models of these instead of documentation")
    options.add_argument("--repository", nargs="+", type=Path, default=[], help="checkouts or git directories with programs of bench/corpus/examples.py, or tutorials")
    options.add_argument("--tests", type=Path, help="folder with test_*.py of a package, run by pytest beside the families")
    options.add_argument("--tests-of-file", type=int, default=0, help="of each such file so many tests, drawn by --seed [0: all]")
    options.add_argument("--venv", type=Path, default=Path(sys.executable).parent.parent)
    options.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    options.add_argument("--count", type=int, default=0, help="as many programs, drawn by --seed [0: all]")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--modes", nargs="+", default=["eager", "compile"], choices=["eager", "compile"])
    options.add_argument("--sites", nargs="+", default=["plan", "all"], choices=["plan", "all"])
    options.add_argument("--batch", type=int, default=40)
    options.add_argument("--minutes", type=float, default=0, help="no batch of a mode begins later than this [0: all of them]")
    options.add_argument("--seconds", type=float, default=SECONDS, help="most that one process may take [%d]" % SECONDS)
    options.add_argument("--only", nargs="+", default=[], help="programs whose names contain one of these")
    options.add_argument("--work", type=Path)
    options.add_argument("--json", type=Path)
    options.add_argument("--table", nargs="+", metavar="KEY FILE JSON...", help="put what --json wrote into a document FILE between its marks; runs nothing")
    options = options.parse_args()
    if options.table:
        key, document, *results = options.table
        return write_table(Path(document), key, [json.loads(Path(r).read_text()) for r in results])
    options.venv = options.venv.absolute()
    corpus, began = Corpus(options), time.time()
    whole = repository.Programs(corpus, options.repository) if options.repository else None
    names = corpus.drawn(list(whole.all) if whole else corpus.programs())
    rows, differ = [], []
    for mode in options.modes:
        # What cannot stand in a function (`from x import *`) has no compiled form.
        of_mode = [n for n in names if mode == "eager" or options.families or whole or (corpus.tree / "programs" / (n + "_compiled.py")).exists()]
        of_mode = [n for n in names if n in whole.names(mode)] if whole else of_mode
        verdicts, tried, started = {}, [], time.time()
        for first in range(0, len(of_mode), options.batch):
            if options.minutes and time.time() - started > 60 * options.minutes:
                break
            found = (whole or corpus).batch(mode, of_mode[first : first + options.batch])
            tried += of_mode[first : first + options.batch]
            verdicts.update(found)
            for name, verdict in found.items():
                for sites in options.sites:
                    if verdict[sites] is not None:
                        differ.append({"program": name, "mode": mode, "sites": sites, "differs": differences(verdict["bare"], verdict[sites])})
                        print("%s %s %s: %s" % (mode, sites, name, json.dumps(differ[-1]["differs"])[:600]), flush=True)
            row = {**summary(mode, verdicts, tried, options.sites), "seconds": {k: round(v) for k, v in corpus.seconds.items()}}
            if options.json:  # after each batch: a run that is ended has told what it knows
                told = {"packages": population(options), "seed": options.seed, "seconds": round(time.time() - began), "rows": [*rows, row], "slowest": corpus.slow_ones(), "differ": differ, **({"left": whole.left} if whole else {})}
                options.json.write_text(json.dumps(told, indent=1) + "\n")
        rows.append(row)
        corpus.seconds = {}
        print(json.dumps(rows[-1]), flush=True)
    print("kept: %s" % corpus.work if differ else "no program differs")
    if not differ:
        shutil.rmtree(corpus.work)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
