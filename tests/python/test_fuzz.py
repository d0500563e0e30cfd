"""The fuzz targets in short: inputs made from good files by a fixed generator (tests/fuzz/short_form.cc). At length: `make torture`."""

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, build_dir

SEEDS = {"patch": "*.py", "match": "*.py", "template": "*.json", "plan": "*.json", "trace": "*.json", "sites": "*.json"}
# What is read of a log that was written for it.
LOGS = {"log": [".log"], "segments": [".log", ".segment"], "steps": [".steps", ".groups"]}
COUNTS = {"log": 20_000, "segments": 3_000, "steps": 5_000, "plan": 20_000, "trace": 20_000, "template": 10_000, "sites": 10_000, "patch": 10_000, "match": 5_000}


def seeds(name, folder):
    folder.mkdir()
    if name in LOGS:
        for events in (1, 20, 300):
            written = folder.parent / f"log{events}"
            words = ["write", written, events, 0, 500 if name == "segments" else 0]
            made = subprocess.run([build_dir() / "tests/torture/log_torture", *map(str, words)], capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
            pieces = [path.read_bytes() for ending in LOGS[name] for path in sorted(written.glob("*" + ending))]
            assert name != "segments" or events < 300 or len(pieces) > 3
            # All but the last with their length: tests/fuzz/segments_fuzz.cc. A log alone has none.
            (folder / f"seed{events}").write_bytes(b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces[:-1]) + pieces[-1])
    else:
        found = [p for place in ("tests/fixtures", "templates") for p in sorted((ROOT / place).rglob(SEEDS[name])) if p.stat().st_size < 20_000]
        for i, path in enumerate(found):
            shutil.copy(path, folder / f"seed{i}")
    assert len(list(folder.iterdir())) >= 3
    return folder


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_hostile_bytes(name, tmp_path):
    ran = subprocess.run([build_dir() / "tests/fuzz" / f"{name}_fuzz_short", str(COUNTS[name]), "1", seeds(name, tmp_path / "seeds")], capture_output=True, text=True, errors="replace", timeout=300)  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-1500:]
    figures = json.loads(ran.stdout.splitlines()[-1])
    # A second alone on this machine; tests have company.
    assert figures["inputs"] == COUNTS[name] and figures["slowest_ms"] < 10_000
