"""Runs of the programs under opguard, each kept: the same program with the same tool runs once.

A program runs in a copy of its folder whose path tells nothing: not its name, not which side of a pair it is.
Kept in WORK/KEY/: log, out.txt, done.json; KEY is the digest of the sources, the tool, seed and steps.
"""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

LIMIT = 300  # seconds a run may take


class Harness:
    def __init__(self, opguard, python, work, tool):
        self.opguard, self.python, self.work, self.tool = opguard, python, work, tool

    def tree(self, program):
        """The copy that runs. Made under another name first: two threads may ask for the same."""
        tree = self.work / "trees" / program.digest()[:16]
        if not tree.exists():
            fresh = tree.with_name(f"{tree.name}.{os.getpid()}.{threading.get_ident()}")
            for path in program.files():
                to = fresh / path.relative_to(program.folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to)
            try:
                fresh.rename(tree)
            except OSError:
                shutil.rmtree(fresh)
        return tree

    def key(self, *parts):
        return hashlib.sha256("\0".join([self.tool, *map(str, parts)]).encode()).hexdigest()[:24]

    def run(self, words, cwd, out, seed=0, steps=8):
        """The exit code; None where it took too long. What it starts ends with it."""
        # An installed package's own bytecode is as before; the trees stay without any.
        env = {**os.environ, "SEED": str(seed), "STEPS": str(steps), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        with out.open("w") as file:
            process = subprocess.Popen([str(w) for w in words], cwd=cwd, env=env, stdout=file, stderr=subprocess.STDOUT,
                                       start_new_session=True)  # fmt: skip
            try:
                return process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None

    def kept(self, key, make):
        """What make(folder) returned when it was last called with this key; a folder that was left half made is made anew."""
        folder = self.work / key
        done = folder / "done.json"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            done.write_text(json.dumps(make(folder)))
        return json.loads(done.read_text()), folder

    def record(self, program, seed, steps):
        """The log of a run without probes; None where the program failed."""

        def make(folder):
            words = [self.opguard, "run", "-q", "--observe", "--log", folder / "log", "--", self.python, "train.py"]
            return self.run(words, self.tree(program), folder / "out.txt", seed, steps)

        rc, folder = self.kept(self.key("log", program.digest(), seed, steps), make)
        return folder / "log" if rc == 0 else None

    def infer(self, logs, extra=()):
        """A file of rules from [(program's name, log)]; None where it could not."""
        words = [self.opguard, "infer", "-q", *(log for _, log in logs)]
        for name, log in logs:
            words += ["--program", f"{name}={log}"]

        def make(folder):
            return self.run([*words, *extra, "-o", folder / "rules.json"], folder, folder / "out.txt")

        rc, folder = self.kept(self.key("infer", *(f"{n}={log}" for n, log in logs), *extra), make)
        return folder / "rules.json" if rc == 0 else None

    def check(self, rules, program, seed=0, steps=8, probes=True):
        """opguard's answer as JSON, and the program's error where it gave none. probes: it runs anew, with them."""
        log = None if probes else self.record(program, seed, steps)
        if not probes and log is None:
            return None, "the program failed while it was recorded"
        digest = rules if rules == "builtin" else hashlib.sha256(Path(rules).read_bytes()).hexdigest()

        def make(folder):
            words = [self.opguard, "check", "-q", "--invariants", rules, "--json", folder / "found.json"]
            tree = self.tree(program)
            words += ["--", self.python, "train.py"] if probes else [log]
            return self.run(words, tree, folder / "out.txt", seed, steps)

        rc, folder = self.kept(self.key("check", digest, program.digest(), seed, steps, probes), make)
        found = folder / "found.json"
        if not found.exists():
            last = (folder / "out.txt").read_text(errors="replace").strip().splitlines()[-1:]
            return None, f"exit code {rc}: {' '.join(last)}"
        return json.loads(found.read_text()), None
