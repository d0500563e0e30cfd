"""Shared by the checks of this folder: programs that record on the GPU, and their logs.

OPGUARD_BUILD names the build folder (its python/opguard is used). Each check prints one JSON object on stdout:
{"check": name, "passed": bool, "why": [sentence, ...], ...figures}, and exits 0 if it passed, else 1."""

import contextlib
import json
import os
import sys
import tempfile
import traceback
import types
from pathlib import Path

try:
    import pytest  # noqa: F401
except ImportError:  # the readers of tests/python want its decorators only

    def decorator(*given, **_):
        return given[0] if given and callable(given[0]) else lambda function: function

    sys.modules["pytest"] = types.SimpleNamespace(fixture=decorator, hookimpl=decorator)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from runtime_log import UNREADABLE, logs_in, run_program  # noqa: E402, F401


def record(source, **env):
    """-> (stdout's lines, Log, its path) of a program that runs with `og` and with `torch` imported."""
    folder = tempfile.mkdtemp(prefix="opguard-gpu-")
    result = run_program("import torch\n" + source, folder, env={key: str(value) for key, value in env.items()})
    sys.stderr.write(result.stderr)
    (log,) = logs_in(folder)
    return result.stdout.splitlines(), log, log.path


class Check:
    """with Check(name) as check: check(condition, sentence) ...; check.figures[name] = value; with check.part(name): ..."""

    def __init__(self, name):
        self.name, self.why, self.figures = name, [], {}

    def __call__(self, condition, sentence):
        if not condition:
            self.why.append(sentence)
        return condition

    @contextlib.contextmanager
    def part(self, name):
        """What fails within it fails the check, and the parts after it are tried."""
        try:
            yield
        except Exception as error:
            self.failed(name, error)

    def failed(self, name, error):
        traceback.print_exc()
        said = getattr(error, "stderr", None) or str(error)  # of a program that was ended for its time
        self.why.append(f"{name}: {type(error).__name__}: {(said if isinstance(said, str) else said.decode(errors='replace'))[-1500:]}")

    def sound(self, log, name):
        """What every log on a GPU is."""
        slots = [s for e in log.events for s in e.slots]
        on_gpu = [s for s in slots if s.device.startswith("cuda")]
        unreadable = sum(bool(s.flags & UNREADABLE) for s in on_gpu)
        self(log.closed and not log.gaps, f"{name}: the log is closed and has no gap (lost {log.lost})")
        self(on_gpu and not unreadable, f"{name}: all of {len(on_gpu)} tensors on the GPU have values ({unreadable} have none)")
        self(log.settings.get("device.cuda") == "values", f"{name}: device.cuda is {log.settings.get('device.cuda')}")
        self("opguard_faults" not in log.settings, f"{name}: no fault of the runtime ({log.settings.get('opguard_faults')})")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is not None and isinstance(error, Exception):
            self.failed(self.name, error)
        print(json.dumps({"check": self.name, "passed": not self.why, "why": self.why, **self.figures}))
        sys.stdout.flush()
        os._exit(1 if self.why else 0)
