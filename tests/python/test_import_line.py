"""The generated diff's import line: ruff and isort accept it wherever they accepted the file before."""
import shutil
import subprocess
import sys

import pytest

TEXT = {
    "plain.py": "import math\nimport os\n\nimport torch\nfrom torch import nn\n\nprint(math.pi, os.sep, torch.ones(2) + nn.Linear(2, 2).weight)\n",
    "doc.py": '"""A module."""\n\nfrom __future__ import annotations\n\nimport torch\n\nx = torch.ones(2)\nprint(x * 2)\n',
    "taken.py": "import torch\n\nog = torch.ones(2)\nprint(og * 2)\n",
}


@pytest.fixture
def probed(opguard, tmp_path):
    for name, text in TEXT.items():
        (tmp_path / name).write_text(text)
    done = opguard(tmp_path, "--all-sites", "--apply", program="opguard-instrument")
    assert done.returncode == 0, done.stderr
    for name in TEXT:
        assert "from opguard import og" in (tmp_path / name).read_text()
    return tmp_path


def test_ruff_and_isort_accept_it(probed):
    tools = {
        "ruff": ["check", "--isolated", "--no-cache", "--select", "I001,E402,F404", "."],
        "isort": ["--check", "--profile", "black", "."],
    }
    found = 0
    for tool, words in tools.items():
        command = [shutil.which(tool) or shutil.which(tool, path=sys.prefix + "/bin")]
        if command[0] is None:
            continue
        found += 1
        done = subprocess.run([*command, *words], cwd=probed, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    if not found:
        pytest.skip("neither ruff nor isort is installed (pip install ruff isort)")


def test_a_line_of_an_earlier_version_is_taken_out_too(opguard, probed):
    path = probed / "plain.py"
    path.write_text(path.read_text().replace(", isort: skip", ""))
    done = opguard(probed, "--strip", "--apply", program="opguard-instrument")
    assert done.returncode == 0, done.stderr
    assert {name: (probed / name).read_text() for name in TEXT} == TEXT
