"""Lays the pairs of releases out: table.json, run/NAME.py and expect.json -> OUT/cases and OUT/venvs.

  make.py OUT [--shared DIR] [--only NAME,...]
  ../accuracy.py --cases OUT/cases --venvs OUT/venvs --no-self      # with OPGUARD_TORCH_BASE as printed

A side is a folder with an interpreter and a list of paths (.pth): one torch base that all share, and one folder for each
release. So sixty pairs take one torch and some megabytes. What is there already is left as it is.
"""
import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUN = """#!/bin/bash
# run_{side}.sh DIR [DUMP [ARGS...]]: run {side} of the pair; DIR: the case's environments
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec "$1/{side}/bin/python" run.py{args} ${{2:+--dump "$2"}} "${{@:3}}"
"""


def python_path(folder):
    return next((folder / "lib").glob("python3*")) / "site-packages"


def make_base(base, wanted):
    """The environment that all sides share: torch, and what the libraries need beside it."""
    if not (base / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
    done = base / "wanted.txt"
    if not done.exists() or done.read_text() != "\n".join(wanted):
        subprocess.run([base / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
        done.write_text("\n".join(wanted))


def make_release(base, folder, spec):
    """One release in a folder of its own, without what it needs."""
    if folder.is_dir():
        return
    # Written beside its name and renamed: a folder that is there is whole.
    part = folder.with_name(folder.name + ".tmp")
    command = [base / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    subprocess.run([*command, "--target", part, spec], check=True)
    part.rename(folder)


def make_side(base, folder, releases):
    """An interpreter that sees the releases first and then the base."""
    if not (folder / "bin" / "python").exists():
        subprocess.run([base / "bin" / "python", "-m", "venv", "--without-pip", folder], check=True)
    paths = [*map(str, releases), str(python_path(base))]
    (python_path(folder) / "_releases.pth").write_text("\n".join(paths) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--shared", type=Path, default=HERE.parents[1].parent / "shared" / "cases", help="for _common")
    p.add_argument("--only", default="", help="names, separated by commas")
    o = p.parse_args()
    out, common = o.out.resolve(), o.shared.resolve() / "_common"
    base, cases, venvs, packages = out / "torchbase", out / "cases", out / "venvs", out / "pkgs"
    for folder in (cases, venvs, packages):
        folder.mkdir(parents=True, exist_ok=True)
    (cases / "INDEX.md").write_text("Laid out by bench/release_pairs/make.py.\n")
    if not (cases / "_common").exists():
        (cases / "_common").symlink_to(common)
    table = json.loads((HERE / "table.json").read_text())
    expected = json.loads((HERE / "expect.json").read_text()) if (HERE / "expect.json").exists() else {}
    entries = table["cases"]
    if o.only:
        entries = {name: entries[name] for name in o.only.split(",")}
    make_base(base, table["base"])
    specs = {spec for entry in entries.values() for side in "ab" for spec in entry[side].split()}
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda spec: make_release(base, packages / spec.replace("==", "-"), spec), sorted(specs)))
    for name, entry in entries.items():
        case = cases / name
        case.mkdir(exist_ok=True)
        (case / "run.py").write_text((HERE / "run" / f"{entry.get('run', name)}.py").read_text())
        (case / "setup.sh").write_text("exit 0  # by make.py\n")
        expect = {"case": name, "run_a": "bash run_a.sh DIR", "run_b": "bash run_b.sh DIR",
                  "with": entry.get("with", []), **expected.get(name, {})}
        (case / "expect.json").write_text(json.dumps(expect, indent=1))
        for side in "ab":
            args = f"{entry.get('args', '')} {entry.get(f'args_{side}', '')}".strip()
            (case / f"run_{side}.sh").write_text(RUN.format(side=side, args=" " + args if args else ""))
            make_side(base, venvs / name / side, [packages / s.replace("==", "-") for s in entry[side].split()])
    print(f"export OPGUARD_TORCH_BASE={base}")


if __name__ == "__main__":
    main()
