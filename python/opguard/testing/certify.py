"""The fixture opguard_certify: `opguard certify` of the repository under test, and its report as the failure.

    opguard_certify("default path", against="main")      yes: what --json says; no, or could not tell: the test fails

The command runs as a process of its own, so that nothing of the test session's state comes into its runs."""

import json
import os
import subprocess
import tempfile

import pytest

from opguard import command


class Certify:
    """root: the folder whose opguard.toml (or pyproject.toml) names the checks."""

    def __init__(self, root):
        self.root = str(root)

    def __call__(self, *names, against=None, options=(), cwd=None, timeout=None):
        """names: checks of opguard.toml, all if none is named. Gives what `--json` says; the test fails where that is not yes.

        options: further arguments of the command. timeout: seconds."""
        __tracebackhide__ = True
        program = command.program()
        if program is None:
            pytest.fail("opguard_certify: this package has no program opguard with it", pytrace=False)
        with tempfile.TemporaryDirectory(prefix="opguard-certify-") as folder:
            answer = os.path.join(folder, "certify.json")
            arguments = [program, "certify", *names, *(("--against", against) if against else ()), *map(str, options), "--json", answer]
            ran = subprocess.run(arguments, cwd=cwd or self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", timeout=timeout)  # fmt: skip
            if ran.returncode != 0:
                told = {1: "a check does not hold", 2: "could not tell"}.get(ran.returncode, "opguard ended with %d" % ran.returncode)
                pytest.fail("opguard certify: %s\n%s" % (told, ran.stdout.rstrip()), pytrace=False)
            with open(answer, encoding="utf-8") as file:
                return json.load(file)
