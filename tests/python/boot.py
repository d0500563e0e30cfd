"""Start programs below the boot folder, as the tool does: a copy of the package, with a probe in Python that
only notes what it wraps, so that boot, hook and tracer are tested on any interpreter without the extension."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, OPERATORS = ROOT / "python" / "opguard", ROOT / "src" / "operators"

PROBE = '''
SEEN = []

class _Name:
    def __init__(self, value):
        self.value = value

    def iadd(self, other):
        value = self.value
        value += other
        return value

    def ipow(self, other):
        value = self.value
        value **= other
        return value

class _Og:
    def __call__(self, boundary, value):
        SEEN.append(boundary)
        return _Name(value) if boundary.startswith("augment") else value

    def aug(self, boundary, value):
        SEEN.append(boundary)
        return value

og = _Og()
'''


class Program:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.tree = self.folder / "tree"
        self.tree.mkdir(parents=True)
        self.package = self.folder / "lib" / "opguard"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        (self.package / "__init__.py").write_text(PROBE)
        # As src/operators/CMakeLists.txt makes it.
        table = (OPERATORS / "operators.txt", os.devnull, self.package / "operator_table.py")
        subprocess.run([sys.executable, OPERATORS / "generate.py", *table], check=True)
        self.environment = {}
        self.hooked = {}

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def instrument(self, name, text):
        """`text` is loaded in place of the tree's file `name`."""
        path = self.folder / "instrumented" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.hooked[str(self.tree / name)] = str(path)
        hook = self.folder / "hook.json"
        hook.write_text(json.dumps({"files": self.hooked}))
        self.environment["OPGUARD_HOOK"] = str(hook)

    def run(self, *command, python=sys.executable, environment=(), cwd=None, **options):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
        env.update(PYTHONPATH=str(self.package / "boot"), PYTHONDONTWRITEBYTECODE="1", **self.environment)
        env["OPGUARD_TREE"] = str(self.tree)
        env.update(environment)
        return subprocess.run(
            [python, *map(str, command)],
            cwd=cwd or self.tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=300, **options,
        )  # fmt: skip


def interpreters():
    """This one, and other versions on PATH or in OPGUARD_TEST_PYTHONS (separated by colons)."""
    found = {sys.version_info[:2]: sys.executable}
    named = [p for p in os.environ.get("OPGUARD_TEST_PYTHONS", "").split(":") if p]
    for path in named + [shutil.which("python3.%d" % minor) for minor in range(8, 15)]:
        if not path:
            continue
        asked = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, universal_newlines=True
        )
        if asked.returncode == 0:
            found.setdefault(tuple(map(int, asked.stdout.split())), path)
    return [found[version] for version in sorted(found) if version >= (3, 8)]
