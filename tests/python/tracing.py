"""Run small programs under the tracer and read what it saw."""

import json
import subprocess

import pytest

from boot import Program, interpreters


def with_torch():
    found = []
    for python in interpreters():
        asked = subprocess.run([python, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if asked.returncode == 0:
            found.append(python)
    return found


@pytest.fixture(params=with_torch())
def program(request, tmp_path):
    made = Program(tmp_path)
    made.python = request.param
    version = subprocess.run(
        [made.python, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, universal_newlines=True
    )
    made.has_columns = tuple(map(int, version.stdout.split())) >= (3, 11)
    made.traces = tmp_path / "traces"
    made.traces.mkdir()
    made.environment.update(OPGUARD_TRACE=str(made.traces), TORCHDYNAMO_DISABLE="1")
    return made


def trace(program, *command, count=1, **options):
    """The traces of a run that must succeed, ordered by process id of their file."""
    ran = program.run(*command, python=program.python, **options)
    assert ran.returncode == 0, ran.stderr
    assert "opguard:" not in ran.stderr
    found = [json.loads(p.read_text()) for p in sorted(program.traces.glob("trace-*.json"))]
    assert len(found) == count
    assert not list(program.traces.glob("*.part"))
    return found[0] if count == 1 else found


def text_of(program, use):
    """Source text of a use, one line; the whole line where there are no columns."""
    line = open(use["path"], "rb").read().splitlines()[use["line"] - 1]
    if use["column"] < 0:
        return line.strip().decode()
    assert use["line"] == use["end_line"]
    return line[use["column"] : use["end_column"]].decode()


def by_text(program, document):
    return {text_of(program, use): use for use in document["uses"]}


def counts(use, *maps):
    """Activities of a use without overloads and without detach, united over the maps named: {"aten::add": 2}."""
    found = {}
    for name in maps:
        for activity, count in use[name].items():
            base = activity.partition(".")[0]
            if base == "aten::detach":
                continue
            found[base] = found.get(base, 0) + count
    return found
