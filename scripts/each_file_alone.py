#!/usr/bin/env python3
"""Compiles every C++ file of the build on its own, without code: each must include what it uses.

The release preset compiles several files as one unit, where one file's missing #include is made good by its neighbour.
Example: ids.cc used llvm::ArrayRef through names.cc, and the build of single files failed on a user's machine.
Three minutes on two cores; exit 1 names each file that fails.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commands(folder):
    """(file, command without output) of each C++ file of ours, as the preset `dev` compiles it."""
    subprocess.run(["cmake", "--preset", "dev", "-B", folder, f"-DPython3_EXECUTABLE={sys.executable}",
                    "-DOPGUARD_FILES_ALONE=ON"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # The headers that the build makes.
    subprocess.run(["cmake", "--build", folder, "--target", "opguard_commit", "opguard_operator_table"], check=True,
                   stdout=subprocess.DEVNULL)
    for entry in json.loads((Path(folder) / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        if file.suffix != ".cc" or not file.is_relative_to(ROOT) or file.is_relative_to(folder):
            continue
        words = shlex.split(entry["command"])
        while Path(words[0]).name not in ("c++", "g++", "clang++"):  # a launcher and its settings
            words.pop(0)
        at = words.index("-o")
        yield file.relative_to(ROOT), entry["directory"], words[:at] + words[at + 2:] + ["-fsyntax-only", "-w"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="those below these paths (default: all)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        todo = [c for c in commands(folder) if not args.files or any(c[0].is_relative_to(f) for f in args.files)]
        with ThreadPoolExecutor(args.jobs) as pool:
            done = list(pool.map(lambda c: subprocess.run(c[2], cwd=c[1], capture_output=True, text=True), todo))
    bad = [(file, run.stderr) for (file, _, _), run in zip(todo, done) if run.returncode]
    for file, said in bad:
        print(f"{file}:\n{said}", file=sys.stderr)
    print(f"{len(todo)} files compiled alone, {len(bad)} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
