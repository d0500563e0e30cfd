#!/usr/bin/env python3
"""One build, every minor version of torch: what is named, kept and recorded there, eager and compiled.

  bench/torch_versions.py --venvs DIR [--versions 2.1 2.2 ...] [--keep] [--json FILE]
  bench/torch_versions.py --json FILE --table docs/results/torch-versions.md      # puts what FILE holds into the document; runs nothing

For each version an environment DIR/2.x is made (`pip install torch==2.x.y`, numpy, nothing of opguard's) unless it is there, and removed behind its
rows unless --keep: one takes up to 6 GB. In it the programs of bench/torch_versions/ run, a copy with one operator changed beside each:

  bare           the program
  diff           `opguard diff --no-prove`: preflights, plan, import hook, two runs of mode full, the verdict
  default        `opguard run --mode default` under the hook that diff kept; eager of both, and `opguard align` of the two

Then all of it once more compiled. A version's pivot is right if every verdict names the changed statement; where compiled code holds no probes, all
that can be named is what reads the compiled function's result. Its bits are kept if each probed run printed the losses and the digest of all parameters,
gradients, buffers and optimizer state of the bare one. The rows of --json hold, for each log, the events by kind and what was lost; features.py tells
which ways into torch are used. --json FILE that is there is added to: what was not measured this time stays."""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "bench" / "torch_versions"
# The last release of each minor version.
RELEASES = {"2.1": "2.1.2", "2.2": "2.2.2", "2.3": "2.3.1", "2.4": "2.4.1", "2.5": "2.5.1", "2.6": "2.6.0", "2.7": "2.7.1",
            "2.8": "2.8.0", "2.9": "2.9.1", "2.10": "2.10.0", "2.11": "2.11.0", "2.12": "2.12.1", "2.13": "2.13.0"}  # fmt: skip
OLD_NUMPY = ("2.1", "2.2")  # built against numpy 1: with a later one they cannot make arrays
# Program -> the statement that the other copy has changed, eager and compiled: (old, new).
CHANGES = {
    "transformer": (("F.gelu(self.up(self.norm2(x)))", 'F.gelu(self.up(self.norm2(x)), approximate="tanh")'),) * 2,
    "convnet": (("torch.relu(self.norm(self.conv(x)))", "F.leaky_relu(self.norm(self.conv(x)))"),) * 2,
    "forms": (("return 2 * x * gradient", "return 2.125 * x * gradient"), ("torch.tanh(h * self.gain)", "torch.sin(h * self.gain)")),
}
# The backend and what reads the compiled function's result first.
BACKENDS = {"transformer": "inductor", "convnet": "aot_eager", "forms": "aot_eager"}
READERS = {"transformer": "F.cross_entropy(logits", "convnet": "F.cross_entropy(scores", "forms": "guess - y"}
SECONDS = 900  # of a command


class Versions:
    def __init__(self, options):
        self.options = options
        self.tool = options.build / "src" / "cli" / "opguard"

    def make(self, version):
        """The environment of a version; was it there before?"""
        folder = self.options.venvs / version
        done = folder / "made.txt"
        if done.exists():
            return folder, True
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([self.options.python, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "--no-compile"]
        subprocess.run([*pip, "torch==" + RELEASES[version], "numpy<2" if version in OLD_NUMPY else "numpy"], check=True)
        done.write_text(RELEASES[version] + "\n")
        return folder, False

    def measure(self, version, folder):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="torch-versions-", dir=self.options.work) as work:
            self.folder, self.work = folder, Path(work)
            self.environment = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
            self.environment.update(OMP_NUM_THREADS="1", PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1", TORCHINDUCTOR_CACHE_DIR=str(self.work / "inductor"),
                                    TORCHINDUCTOR_COMPILE_THREADS="1")  # fmt: skip
            self.environment["PATH"] = os.pathsep.join([str(folder / "bin"), self.environment["PATH"]])
            row = {"version": version, **self.features()}
            row["programs"] = [self.program(name, kind) for name in self.options.programs for kind in self.options.kinds]
        row["seconds"] = round(time.monotonic() - began)
        return without_paths(row, {folder: "VENV", ROOT: "TREE"})

    def run(self, command, cwd, **environment):
        """-> exit code, all it printed."""
        try:
            done = subprocess.run([*map(str, command)], cwd=cwd, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, "no end in %d s" % SECONDS
        return done.returncode, done.stdout

    def features(self):
        """What of opguard is at work, as the program itself, its log and `opguard doctor` say."""
        log = self.work / "features"
        code, text = self.run([self.tool, "run", "--mode", "full", "--log", log, "--", "python", "features.py"], PARTS)
        said = [line for line in text.splitlines() if line.startswith("torch-versions:")]
        if not said:
            return {"error": "features.py: exit code %s: %s" % (code, text[-800:])}
        found = json.loads(said[0].partition(":")[2])
        found["log"] = self.counted(log)
        found["doctor"] = [line for line in self.run([self.tool, "doctor", "--", "python"], self.work)[1].splitlines() if line[4:].startswith(("torch", "probe"))]
        return found

    def counted(self, log):
        """A log folder's events by kind, those made in compiled graphs, tensors with a storage's number, and what was lost."""
        events = collections.Counter()
        numbered = 0
        code, text = self.run([self.tool, "dump", log, "--format", "json"], self.work)
        seen = set()
        for line in text.splitlines() if code == 0 else ():
            record = json.loads(line)
            if "opguard" in record:  # the first line says what printed the others
                continue
            numbered += bool(record.get("storage"))
            if (key := (record["process"], record["event"])) not in seen:
                seen.add(key)
                events[record["kind"]] += 1
        head = self.run([self.tool, "dump", log, "--limit", "1"], self.work)[1].splitlines()
        heads = [line for line in head if line.startswith("log ")]
        unprobed = [line.partition(" = ")[2] for line in head if line.startswith("setting opguard_compiled_unprobed")]
        lost = [int(part.split()[0]) for line in heads for part in line.split(", ") if part.endswith(" lost")]
        return {"with_records": dict(events), "numbered": numbered, "written": written(heads), "lost": sum(lost), "closed": all(h.endswith("closed") for h in heads) and bool(heads),
                "unprobed": unprobed}  # fmt: skip

    def program(self, name, kind):
        """One program, bare and under every mode, beside its copy with one operator changed."""
        compiled = kind == "compiled"
        old, new = CHANGES[name][compiled]
        place = self.work / (name + "-" + kind)
        a, b, kept = place / "a", place / "b", place / "kept"
        for tree in (a, b):
            shutil.copytree(PARTS, tree, ignore=lambda folder, files: [f for f in files if f not in (name + ".py", "ending.py")])
        text = (a / (name + ".py")).read_text()
        assert text.count(old) == 1, (name, old)
        (b / (name + ".py")).write_text(text.replace(old, new))
        lines = text.splitlines()
        right = [i for i, line in enumerate(lines, 1) if old in line]
        readers = [i for i, line in enumerate(lines, 1) if compiled and READERS[name] in line]
        command = ["python", name + ".py", *(["--compile", BACKENDS[name]] if compiled else [])]
        row = {"program": name, "kind": kind, "right": right, "readers": readers}
        bare = self.run(command, a)
        if bare[0] != 0:
            return {**row, "error": "bare: exit code %s: %s" % (bare[0], bare[1][-800:])}
        verdict = place / "verdict.json"
        code, output = self.run([self.tool, "diff", a, b, "--no-prove", "--work", kept, "--json", verdict, "--", *command], place)
        if not verdict.exists():
            return {**row, "error": "diff: exit code %s: %s" % (code, output[-800:])}
        probed = {"full": (kept / "run_a" / "output.txt").read_text(errors="replace")}
        row["pivot"] = {"full": pivot(verdict)}
        row["events"] = {"full": self.counted(kept / "run_a" / "log")}
        for side in "a" if compiled else "ab":
            hook = kept / ("run_" + side) / "hook" / "hook.json"
            code, output = self.run([self.tool, "run", "--mode", "default", "--log", place / side / "log", "--", *command], place / side, OPGUARD_HOOK=str(hook), OPGUARD_TREE=str(place / side))
            if side == "a":
                probed["default"] = output
        if not compiled:
            self.run([self.tool, "align", "--no-prove", a / "log", b / "log", "--json", verdict], place)
            row["pivot"]["default"] = pivot(verdict)
        row["events"]["default"] = self.counted(a / "log")
        row["bits"] = {mode: told(text) == told(bare[1]) != [] for mode, text in probed.items()}
        return row


def without_paths(row, names):
    """A row as any machine would write it: folders of this one by their names."""
    text = json.dumps(row)
    for folder, name in names.items():
        text = text.replace(str(folder), name)
    return json.loads(text)


def written(heads):
    return sum(int(part.split()[0]) for line in heads for part in line.split(", ") if part.endswith(" events"))


def told(text):
    """What a program said of its losses and its model, in order."""
    return [line for line in text.splitlines() if line.startswith(("step ", "model "))]


def pivot(verdict):
    """[kind, file:line] that a verdict names; its word where it names none."""
    found = json.loads(verdict.read_text())
    at = found["pivot"] or {}
    place = at.get("a") or at.get("b") or {}
    verdict.unlink()
    return {"verdict": found["verdict"], "kind": at.get("kind"), "phase": at.get("phase"), "file": Path(place.get("file") or "none").name, "line": place.get("line"), "why": found["why"]}


def answer(row, mode):
    """`yes`: the changed statement; `its reader`: what reads the compiled function's result first; else what was said."""
    at = row["pivot"][mode]
    if at["file"] == row["program"] + ".py" and at["line"] in row["right"]:
        return "yes"
    if at["file"] == row["program"] + ".py" and at["line"] in row["readers"]:
        return "its reader"
    return "%s %s:%s" % (at["verdict"], at["file"], at["line"])


def answers(row, kind):
    """How the programs of a kind answered, the same answers together."""
    found = collections.Counter()
    for program in row["programs"]:
        if program["kind"] == kind:
            found.update(["failed"] if "error" in program else [answer(program, mode) for mode in program["pivot"]])
    return ", ".join("%d of %d %s" % (n, sum(found.values()), what) for what, n in sorted(found.items(), key=lambda f: -f[1]))


def bits(row, kind):
    ran = [p for p in row["programs"] if p["kind"] == kind and "error" not in p]
    kept = sum(sum(p["bits"].values()) for p in ran)
    unlike = ["%s (%s)" % (p["program"], m) for p in ran for m, same in p["bits"].items() if not same]
    return "%d of %d" % (kept, 2 * len(ran)) + (": not " + ", ".join(unlike) if unlike else "")


def lost(row):
    return sum(e["lost"] + (not e["closed"]) for p in row["programs"] if "error" not in p for e in p["events"].values())


def events(row, kind):
    ran = [p for p in row["programs"] if p["kind"] == kind and "error" not in p]
    return "{:,}".format(sum(e["written"] for p in ran for e in p["events"].values()))


def compiled_probes(row):
    if not row["handlers"]:
        return "recorded"
    return "the identity" if row["graph_breaks"] == 0 else "the identity, a graph break each"


HEADINGS = ("torch", "eager: changed statement named", "losses and model bit-equal", "compiled: named", "losses and model bit-equal", "events eager, compiled, lost",
            "probes in graphs", "torch's own functions", "tensors' struct", "DLPack table", "storages")  # fmt: skip


def cells(row):
    if "error" in row:
        return [row["version"], row["error"].splitlines()[0][:80]] + [""] * (len(HEADINGS) - 2)
    return [row["torch"], answers(row, "eager"), bits(row, "eager"), answers(row, "compiled"), bits(row, "compiled"),
            "%s, %s, %d" % (events(row, "eager"), events(row, "compiled"), lost(row)), compiled_probes(row), "used" if row["native"] else "through Python",
            {True: "read", False: "asked", None: "not tried"}[row.get("layout")], "used" if row["dlpack_table"] else "none there", "told apart" if row["log"]["numbered"] else "not told apart"]  # fmt: skip


def passes(row):
    """Eager: all that is promised. Compiled: the same bits, and the statement, or its reader where graphs hold no probes."""
    ran = [] if "error" in row else row["programs"]
    good = [p for p in ran if "error" not in p and all(p["bits"].values()) and
            all(answer(p, m) in (("yes", "its reader") if p["kind"] == "compiled" and row["handlers"] else ("yes",)) for m in p["pivot"])]  # fmt: skip
    return bool(ran) and len(good) == len(ran) and lost(row) == 0


def with_earlier(programs, earlier):
    """The measured programs, and those of earlier runs that were not measured this time."""
    known = {(p["program"], p["kind"]) for p in programs}
    both = programs + [p for p in earlier if (p["program"], p["kind"]) not in known]
    return sorted(both, key=lambda p: (p["kind"] == "compiled", list(CHANGES).index(p["program"])))


def write_table(path, rows):
    """Puts the rows between the marks of a document."""
    begin, end = "<!-- torch-versions -->", "<!-- /torch-versions -->"
    head, rest = path.read_text().split(begin)
    tail = rest.split(end)[1]
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS), *("| " + " | ".join(cells(row)) + " |" for row in rows)]
    lines += ["", "%d of %d versions: the statement named wherever it is eager, the same bits everywhere, nothing lost." % (sum(map(passes, rows)), len(rows))]
    path.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path, help="folder of the environments, outside of the repository")
    parser.add_argument("--versions", nargs="+", default=list(RELEASES), choices=list(RELEASES))
    parser.add_argument("--programs", nargs="+", default=list(CHANGES), choices=list(CHANGES))
    parser.add_argument("--kinds", nargs="*", default=["eager", "compiled"], help="eager, compiled [both]; none: the features alone")
    parser.add_argument("--python", default="python3.11", help="interpreter of the environments")
    parser.add_argument("--keep", action="store_true", help="leave the environments that were made")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="FILE", help="put what --json FILE holds into a document between its marks; runs nothing")
    options = parser.parse_args()
    rows = {row["version"]: row for row in (json.loads(options.json.read_text()) if options.json and options.json.exists() else [])}
    if options.table:
        write_table(options.table, list(rows.values()))
        return 0
    if options.venvs is None:
        parser.error("--venvs is needed")
    if unknown := set(options.kinds) - {"eager", "compiled"}:
        parser.error("no such kind: " + ", ".join(unknown))
    options.venvs, options.build = options.venvs.absolute(), options.build.absolute()
    options.venvs.mkdir(parents=True, exist_ok=True)
    versions = Versions(options)
    for version in options.versions:
        folder, was_there = versions.make(version)
        row = versions.measure(version, folder)
        if "error" not in row:
            row["programs"] = with_earlier(row["programs"], rows.get(version, {}).get("programs", []))
        rows[version] = row
        if not (was_there or options.keep):
            shutil.rmtree(folder)
        print(" | ".join(cells(row)) + " | %d s" % row["seconds"], flush=True)
        for program in row.get("programs", []):
            if "error" in program:
                print("  %s %s: %s" % (program["program"], program["kind"], program["error"]), flush=True)
        if options.json:
            ordered = [rows[v] for v in RELEASES if v in rows]
            options.json.write_text(json.dumps(ordered, indent=1) + "\n")
    measured = [rows[v] for v in options.versions]
    print("%d of %d right" % (sum(map(passes, measured)), len(measured)))
    return 0 if all(map(passes, measured)) else 1


if __name__ == "__main__":
    sys.exit(main())
