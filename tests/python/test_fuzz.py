"""The fuzz targets in short: inputs made from good files by a fixed generator (tests/fuzz/short_form.cc). At length: `make torture`."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, build_dir

SEEDS = {"patch": "*.py", "match": "*.py", "template": "*.json", "plan": "*.json", "trace": "*.json", "sites": "*.json"}
COUNTS = {"log": 20_000, "plan": 20_000, "trace": 20_000, "template": 10_000, "sites": 10_000, "patch": 10_000, "match": 5_000}


def seeds(name, folder):
    folder.mkdir()
    if name == "log":
        for events in (1, 20, 300):
            made = subprocess.run([build_dir() / "tests/torture/log_torture", "write", folder.parent / f"log{events}", str(events)], capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
            (log,) = Path(folder.parent / f"log{events}").glob("*.log")
            shutil.copy(log, folder / f"seed{events}")
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
