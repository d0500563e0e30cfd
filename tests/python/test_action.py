"""The GitHub Action: its file against the schema, its steps one by one (action_steps.py) in a repository of their own."""
import json
import os
import subprocess
import textwrap
import zipfile

import pytest
import yaml

from action_steps import Job
from conftest import ROOT, clean_environment

ACTION = ROOT / "action.yml"

# What the wheel of the test installs: `certify` as the action calls it, an exit code by the check that is asked for.
PROGRAM = """import json, sys
words = sys.argv[1:]
assert words.pop(0) == "certify"
files = {name: words[words.index(name) + 1] for name in ("--md", "--json", "--sarif")}
code = 1 if "resume" in words else 2 if "broken" in words else 0
if "crash" in words:
    sys.exit("opguard: error: no opguard.toml")
open(files["--md"], "w").write("| resume | %d |\\n" % code)
json.dump({"asked": words[: words.index("--md")]}, open(files["--json"], "w"))
json.dump({}, open(files["--sarif"], "w"))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel") / "opguard_instrument-0.0.1-py3-none-any.whl"
    info = "opguard_instrument-0.0.1.dist-info/"
    texts = {
        "opguard_stub.py": "def main():\n" + textwrap.indent(PROGRAM, "    "),
        info + "entry_points.txt": "[console_scripts]\nopguard = opguard_stub:main\n",
        info + "METADATA": "Metadata-Version: 2.1\nName: opguard-instrument\nVersion: 0.0.1\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts[info + "RECORD"] = "".join(f"{name},,\n" for name in [*texts, info + "RECORD"])
    with zipfile.ZipFile(path, "w") as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return path


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A repository of two commits, and the first one's number."""
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q")
    for number in range(2):
        (folder / "train.py").write_text(f"print({number})\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", str(number))
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    return folder, git(folder, "rev-parse", "HEAD~1")


def git(folder, *words):
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def job(tmp_path, origin, wheel):
    """job(against=, **inputs) -> the Job, in a checkout as deep as actions/checkout makes it: one commit."""

    def make(against="", **inputs):
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin[0]}", "work tree")
        environment = {**clean_environment(), "PIP_NO_INDEX": "1"}
        inputs = {name.replace("_", "-"): value for name, value in inputs.items()}
        return Job(ACTION, tmp_path / "work tree", tmp_path / "runner temp", {"wheel": str(wheel), **inputs},
                   {"event.pull_request.base.sha": against}, environment)  # fmt: skip

    return make


def test_a_pull_request_that_holds(job, origin):
    run = job(against=origin[1])
    install, certify, upload = run.run()
    assert install.code == 0 and certify.code == 0 and upload.code is None, (install, certify)
    outputs = run.outputs()
    assert outputs["exit-code"] == "0" and json.load(open(outputs["report"]))["asked"] == ["--against", origin[1]]
    assert run.summary() == "| resume | 0 |\n" and os.path.exists(outputs["sarif"])
    assert (run.temp / "github_path").read_text() == f"{run.temp / 'opguard' / 'bin'}\n"
    assert git(run.workspace, "status", "--porcelain") == ""


def test_one_that_does_not(job):
    run = job(checks="resume 'default", upload_sarif="yes")
    _, certify, upload = run.run()
    assert certify.code == 1 and upload.code == 0
    assert json.load(open(run.outputs()["report"]))["asked"] == ["resume", "'default"]  # words, and no shell's
    assert run.used == [("github/codeql-action/upload-sarif@v3", {"sarif_file": run.outputs()["sarif"], "category": "opguard"})]
    assert run.summary() == "| resume | 1 |\n"


@pytest.mark.parametrize("inconclusive, code", [("yes", 2), ("no", 0)])
def test_one_that_cannot_be_told(job, inconclusive, code):
    run = job(checks="broken", inconclusive=inconclusive)
    _, certify, _ = run.run()
    assert certify.code == code and run.outputs()["exit-code"] == "2"
    assert ("::warning::" in certify.output) == (code == 0)


def test_what_goes_wrong_is_told(job):
    run = job(against="0" * 40)
    _, certify, upload = run.run()
    assert certify.code == 2 and "::error::opguard: the revision 0000" in certify.output and "fetch-depth: 0" in certify.output
    assert run.outputs() == {"exit-code": "2", "report": "", "sarif": ""}
    run = Job(ACTION, run.workspace, run.temp, {"wheel": "nothing.whl"}, environment={**clean_environment(), "PIP_NO_INDEX": "1"})
    install, certify, upload = run.run()
    assert install.code == 1 and "nothing.whl" in install.output and certify.code is None and upload.code is None


def test_a_crash_leaves_no_report(job):
    run = job(checks="crash", upload_sarif="yes")
    _, certify, upload = run.run()
    assert certify.code == 1 and "no opguard.toml" in certify.output and upload.code is None
    assert run.outputs() == {"exit-code": "1", "report": "", "sarif": ""}


def test_its_file_is_an_action():
    check = ROOT / "build" / "venv-ci" / "bin" / "check-jsonschema"
    if not check.exists():
        pytest.skip("no check-jsonschema here: scripts/ci_tools.sh makes build/venv-ci")
    done = subprocess.run([check, "--builtin-schema", "vendor.github-actions", ACTION], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_inputs_and_outputs_are_in_the_guide():
    guide = (ROOT / "docs" / "guide" / "ci.md").read_text()
    action = yaml.safe_load(ACTION.read_text())
    for name in [*action["inputs"], *action["outputs"]]:
        assert f"| `{name}` |" in guide, name
