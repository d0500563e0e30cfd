"""Runs the checks of this folder and writes down what came of each as soon as it is known (tests/gpu/run.sh).

run_checks.py --out DIR --seconds N [--limit N] [--jobs N] [CHECK...]. OPGUARD_BUILD names the build. A check is a file here that prints one JSON object on stdout and exits
0 (passed), 1 (failed), 2 (could not tell) or 77 (not tried). Each has a time of its own, after which it and all it has started are killed; those that measure
times run alone, after the others, which run side by side."""

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ["OPGUARD_BUILD"]).resolve()
PLUGIN = str(BUILD / "tests" / "gpu" / "cuda_plugin.so")
TOOL = next((str(p) for p in (BUILD / "bin" / "opguard", BUILD / "src" / "cli" / "opguard") if p.is_file()), None)
# Seconds that a check may take; the longest begin first.
LIMITS = {"check_product": 300, "coverage": 240, "check_compiled": 240, "check_driver_calls": 300, "check_eager": 200, "check_graphs": 200, "check_streams": 150,
          "check_fingerprint": 150, "bandwidth": 150, "overhead": 400}  # fmt: skip
ALONE = ("bandwidth", "overhead")
TABLES = ("bandwidth", "overhead")
WORDS = {0: "passed", 1: "FAILED", 2: "could not tell", 77: "not tried"}
KEPT = 200_000  # bytes of what a check says


def command(name):
    words = [sys.executable, str(HERE / (name + ".py"))]
    if name in ("check_fingerprint", "bandwidth"):
        words += ["--plugin", PLUGIN]
    if name == "coverage":
        words += ["--opguard", TOOL, "--python", sys.executable]
    return words


def tail(path):
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - KEPT))
        return file.read().decode(errors="replace")


def said_by(words):
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)
        return (ran.stdout + ran.stderr).strip().splitlines()
    except (OSError, subprocess.TimeoutExpired) as error:
        return ["%s: %s" % (words[0], error)]


class Run:
    def __init__(self, out, seconds, limit=float("inf")):
        self.limit, self.out, self.end, self.lock = limit, Path(out), time.monotonic() + seconds, threading.Lock()
        self.began = time.monotonic()
        self.text, self.log, self.checks, self.machine = [], [], [], []

    def left(self):
        return self.end - time.monotonic()

    def write(self):
        """Whole files each time: a run that is killed leaves what it knew."""
        found = {"machine": self.machine, "checks": self.checks, "seconds": round(time.monotonic() - self.began)}
        for name, text in (("gpu.json", json.dumps(found, indent=1)), ("gpu.txt", "\n".join(self.text) + "\n"), ("gpu.log", "\n".join(self.log) + "\n")):
            new = self.out / (name + ".new")
            new.write_text(text)
            new.replace(self.out / name)

    def say(self, *lines):
        self.text += lines
        print("\n".join(lines), flush=True)

    def describe(self):
        commit = BUILD / "commit"
        self.machine = said_by(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,mig.mode.current", "--format=csv,noheader"])
        self.machine += said_by([sys.executable, "-c", "import sys, torch; print('Python', sys.version.split()[0], 'torch', torch.__version__, 'CUDA', torch.version.cuda)"])
        self.machine.append("commit " + (commit.read_text().strip() if commit.exists() else "".join(said_by(["git", "-C", str(HERE), "describe", "--always", "--dirty"])[:1])))
        self.say(*self.machine)
        self.write()
        if TOOL:
            self.say(*said_by([TOOL, "doctor", "--", sys.executable]))
        self.write()

    def check(self, name):
        limit = min(LIMITS.get(name, 120), self.limit, self.left())
        begin = time.monotonic()
        code, found, error, output = 77, {}, "", ""
        if name == "coverage" and not TOOL:
            why = "this build has no tools: LLVM was not there"
        elif self.left() < 10:
            why = "the time is up"
        else:
            with tempfile.TemporaryDirectory(prefix="opguard-gpu-") as folder:
                with open(folder + "/out", "wb") as out, open(folder + "/err", "wb") as err:
                    # Its temporary files go with it; a group of its own, so that all it has started can be ended.
                    ran = subprocess.Popen(command(name), cwd=HERE, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                           env={**os.environ, "TMPDIR": folder})  # fmt: skip
                    try:
                        code, why = ran.wait(timeout=limit), ""
                    except subprocess.TimeoutExpired:
                        code, why = 1, "it was ended after %d s" % limit
                    finally:
                        try:
                            os.killpg(ran.pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                        ran.wait()
                output, error = tail(folder + "/out"), tail(folder + "/err")
            try:
                found = json.loads(output[output.index("{") :])
            except ValueError:
                found = {"output": output[-2000:]}
            if code == 77:
                why = output.strip().splitlines()[-1] if output.strip() else ""
        seconds = round(time.monotonic() - begin)
        with self.lock:
            self.checks.append({**found, "name": name, "exit": code, "seconds": seconds, **({"ended": why} if why else {})})
            self.say("%s: %s%s, %d s" % (name, WORDS.get(code, "FAILED (exit %d)" % code), ": " + why if why else "", seconds))
            if name in TABLES:
                self.say(*error.splitlines()[-60:])
            elif code != 0:
                self.say(*["  " + line[:1500] for line in found.get("why", [])[:20]] or ["  " + line[:500] for line in error.splitlines()[-15:]])
            self.log += ["==== %s: exit %d, %d s" % (name, code, seconds), output, "---- stderr", error]
            self.write()
        return code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds that any check may take")
    parser.add_argument("--jobs", type=int, default=max(1, min(4, (os.cpu_count() or 2) // 2)))
    parser.add_argument("checks", nargs="*")
    asked = parser.parse_args()
    run = Run(asked.out, asked.seconds, asked.limit)
    run.describe()
    names = asked.checks or sorted(p.stem for p in HERE.glob("check_*.py")) + ["bandwidth", "coverage", "overhead"]
    names.sort(key=lambda name: -LIMITS.get(name, 0))
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        codes = list(pool.map(run.check, [name for name in names if name not in ALONE]))
    codes += [run.check(name) for name in ALONE if name in names]
    run.say("tests/gpu: %d s; %s" % (time.monotonic() - run.began, asked.out))
    run.write()
    return 1 if any(code not in (0, 2, 77) for code in codes) else 2 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
