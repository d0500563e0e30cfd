"""Lays the library cases out for bench/accuracy.py: table.json, run/NAME.py and expect.json -> OUT/cases and OUT/venvs.

  make.py OUT [--shared DIR] [--torch-base DIR]
  accuracy.py --cases OUT/cases --venvs OUT/venvs          # with OPGUARD_TORCH_BASE as printed

Environments that are there are left as they are; the first time takes about ten minutes. Nothing here is the libraries'.
"""
import argparse
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUN = """#!/bin/bash
# run_{side}.sh DIR [DUMP [ARGS...]]: run {side} of the pair; DIR: the case's environments
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec "$1/{side}/bin/python" run.py{args} ${{2:+--dump "$2"}} "${{@:3}}"
"""


def environment(folder, wanted, mkvenv, base):
    """One side's virtual environment. wanted: pip's arguments, those behind '--no-deps:' without what they need."""
    if (folder / "bin" / "python").exists():
        return
    env = {**os.environ, "OPGUARD_TORCH_BASE": str(base)}
    plain, _, alone = wanted.partition("--no-deps:")
    subprocess.run(["bash", mkvenv, folder, *plain.split()], check=True, env=env)
    if alone:
        subprocess.run(["bash", mkvenv, folder, "--no-deps", *alone.split()], check=True, env=env)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--shared", type=Path, default=HERE.parents[1].parent / "shared" / "cases", help="for _common")
    p.add_argument("--torch-base", type=Path, help="made at OUT/venvs/torchbase if not given")
    o = p.parse_args()
    out, common = o.out.resolve(), o.shared.resolve() / "_common"
    base = (o.torch_base or out / "venvs" / "torchbase").resolve()
    cases, venvs = out / "cases", out / "venvs"
    cases.mkdir(parents=True, exist_ok=True)
    (cases / "INDEX.md").write_text("Laid out by bench/library_cases/make.py.\n")
    if not (cases / "_common").exists():
        (cases / "_common").symlink_to(common)
    expected = json.loads((HERE / "expect.json").read_text())
    table = json.loads((HERE / "table.json").read_text())["cases"]
    for name, entry in table.items():
        case = cases / name
        case.mkdir(exist_ok=True)
        (case / "run.py").write_text((HERE / "run" / f"{entry.get('run', name)}.py").read_text())
        (case / "setup.sh").write_text("exit 0  # by make.py\n")
        expect = {"case": name, "run_a": "bash run_a.sh DIR", "run_b": "bash run_b.sh DIR", **expected[name]}
        (case / "expect.json").write_text(json.dumps(expect, indent=1))
        for side in "ab":
            args = f"{entry.get('args', '')} {entry.get(f'args_{side}', '')}".strip()
            (case / f"run_{side}.sh").write_text(RUN.format(side=side, args=" " + args if args else ""))
            if not entry[side].startswith("="):
                environment(venvs / name / side, entry[side], common / "mkvenv.sh", base)
    for name, entry in table.items():
        for side in "ab":
            link = venvs / name / side
            if entry[side].startswith("=") and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(venvs / entry[side][1:])
    print(f"export OPGUARD_TORCH_BASE={base}")


if __name__ == "__main__":
    main()
