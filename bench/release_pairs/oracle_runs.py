"""Runs both sides of pairs under the oracle (every ATen operator, SHA-1) and prints the first differences.

  OUT/torchbase/bin/python oracle_runs.py OUT [NAME...]     # dumps in OUT/dumps/NAME/a and b

torch is imported once; each side is a forked child with its own releases on sys.path. The answers of expect.json were
checked with these dumps, which know nothing of opguard.
"""
import contextlib
import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy  # noqa: F401
import torch  # noqa: F401

HERE = Path(__file__).resolve().parent


def run_side(out, name, entry, side, dump):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open(f"{dump}.txt", "w") as text:
                os.dup2(text.fileno(), 1)
                os.dup2(text.fileno(), 2)
                case = out / "cases" / name
                sys.path[:0] = [str(out / "pkgs" / s.replace("==", "-")) for s in entry[side].split()]
                sys.argv = ["run.py", *shlex.split(f"{entry.get('args', '')} {entry.get(f'args_{side}', '')}"), "--dump", str(dump)]
                os.chdir(case)
                sys.path.insert(0, str(case))
                with contextlib.suppress(SystemExit):
                    runpy.run_path("run.py", run_name="__main__")
                code = 0
        except BaseException:
            import traceback
            traceback.print_exc(file=open(f"{dump}.txt", "a"))
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitpid(child, 0)[1]


def losses(dump):
    return [line for line in Path(f"{dump}.txt").read_text().splitlines() if "loss" in line]


def main():
    out = Path(sys.argv[1]).resolve()
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    table = json.loads((HERE / "table.json").read_text())["cases"]
    for name in sys.argv[2:] or table:
        folder = out / "dumps" / name
        folder.mkdir(parents=True, exist_ok=True)
        print("===", name, flush=True)
        for side in "ab":
            if run_side(out, name, table[name], side, folder / side):
                print(f"side {side} failed:", *(folder / f"{side}.txt").read_text().splitlines()[-6:], sep="\n  ")
                break
        else:
            same = losses(folder / "a") == losses(folder / "b")
            print("losses equal:" if same else "losses differ:", *losses(folder / "a")[-1:], "|", *losses(folder / "b")[-1:])
            done = subprocess.run([sys.executable, out / "cases" / "_common" / "compare.py", folder / "a", folder / "b", "-n", "2", "-s", "5"],
                                  capture_output=True, text=True)
            print((done.stdout + done.stderr).replace(str(out / "pkgs") + "/", ""), flush=True)


if __name__ == "__main__":
    main()
