#!/usr/bin/env python3
"""Is every file that CPython parses parsed? The Python files of 40 packages of the ML world, as PyPI has them today.

  bench/parses.py [--packages NAME ...] [--work DIR] [--json FILE]

Each package's wheel (or source archive) is downloaded alone and its .py files laid out; those that this CPython parses are given to
`opguard plan --static`, which names what it skips. Ends with 1 if it skips one."""

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = """transformers timm diffusers accelerate peft trl datasets tokenizers safetensors huggingface_hub megatron-core deepspeed
lightning pytorch-lightning torchmetrics pytorch-ignite torchtitan torchtune torchao tensordict torchrl torch-geometric kornia evaluate
monai speechbrain open-clip-torch sentence-transformers einops x-transformers captum gpytorch botorch pyro-ppl fastai ultralytics
liger-kernel optimum flax keras""".split()


def files_of(package, work):
    """{name: text} of its Python files; None where it cannot be had."""
    folder = work / "downloads" / package
    for more in (("--only-binary", ":all:", "--python-version", "3.12"), ("--only-binary", ":all:"), ("--no-binary", ":all:", "--no-build-isolation")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", folder, *more, package]
        if subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            break
    archives = list(folder.glob("*")) if folder.exists() else []
    if not archives:
        return None, None
    unpacked = work / "unpacked" / package
    shutil.unpack_archive(archives[0], unpacked, "zip" if archives[0].suffix in (".whl", ".zip") else None)
    return archives[0].name, {f.relative_to(unpacked): f.read_bytes() for f in unpacked.rglob("*.py") if f.is_file()}


def parses(data):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def check(package, work, opguard):
    archive, files = files_of(package, work)
    if archive is None:
        return {"package": package, "archive": None}
    tree = work / "tree" / package
    valid = [name for name, data in files.items() if parses(data)]
    for name in valid:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(files[name])
    row = {"package": package, "archive": archive, "files": len(files), "valid": len(valid), "skipped": []}
    if valid:
        done = subprocess.run([opguard, "plan", "--static", tree, "-o", work / "plan.json"], capture_output=True, text=True)
        row["skipped"] = [line for line in done.stderr.splitlines() if "the file is skipped" in line]
        row["exit_code"] = done.returncode
    shutil.rmtree(work / "unpacked" / package, ignore_errors=True)
    shutil.rmtree(tree, ignore_errors=True)
    return row


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--packages", nargs="+", default=PACKAGES)
    options.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    options.add_argument("--work", type=Path)
    options.add_argument("--json", type=Path)
    options = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="parses-", dir=options.work) as work:
        for package in options.packages:
            rows.append(check(package, Path(work), options.build / "src" / "cli" / "opguard"))
            print(json.dumps(rows[-1]), flush=True)
    had = [r for r in rows if r["archive"]]
    result = {"packages": len(had), "files": sum(r["valid"] for r in had), "skipped": sum(len(r["skipped"]) for r in had), "not_to_be_had": [r["package"] for r in rows if not r["archive"]]}
    print(json.dumps(result))
    if options.json:
        options.json.write_text(json.dumps({**result, "rows": rows}, indent=1) + "\n")
    return 1 if result["skipped"] or any(r.get("exit_code", 0) for r in had) else 0


if __name__ == "__main__":
    sys.exit(main())
