"""Settings from a file: where it is found, what it may say, which value wins, and --show-config."""
import json

import pytest

from conftest import ROOT


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "train").mkdir()
    return tmp_path / "repo"


def options(opguard, command, *words, cwd):
    """Name -> (value, where it comes from: a line of the file, or in words)."""
    out = cwd / "shown.json"
    done = opguard(command, "--show-config", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    shown = {}
    for line in done.stdout.splitlines():
        name, rest = line.split(None, 1)
        shown[name] = tuple(part.strip() for part in rest.rsplit("  ", 1))
    assert not out.exists()
    return shown


def test_the_nearest_file_up_to_the_repository_counts(opguard, repo):
    (repo.parent / "opguard.toml").write_text("steps = 1\n")
    assert options(opguard, "diff", cwd=repo / "train")["--steps"][1] == "default"
    (repo / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.opguard]\nsteps = 2\n')
    assert options(opguard, "diff", cwd=repo / "train")["--steps"] == ("2", "../pyproject.toml:4:1")
    # One that does not speak of opguard is passed over, whatever is wrong with it.
    (repo / "train" / "pyproject.toml").write_text("[tool.ruff\n")
    assert options(opguard, "diff", cwd=repo / "train")["--steps"] == ("2", "../pyproject.toml:4:1")
    (repo / "train" / "opguard.toml").write_text("[diff]\nsteps = 3\n")
    assert options(opguard, "diff", cwd=repo / "train")["--steps"] == ("3", "opguard.toml:2:1")
    assert options(opguard, "noise", cwd=repo / "train")["--steps"][1] == "default"


def test_outside_a_repository_only_the_working_folder_counts(opguard, tmp_path):
    (tmp_path / "opguard.toml").write_text("steps = 1\n")
    (tmp_path / "below").mkdir()
    assert options(opguard, "diff", cwd=tmp_path)["--steps"][1] == "opguard.toml:1:1"
    assert options(opguard, "diff", cwd=tmp_path / "below")["--steps"][1] == "default"


def test_of_two_files_our_own_wins_and_that_is_said(opguard, repo):
    (repo / "pyproject.toml").write_text("[tool.opguard]\nsteps = 2\n")
    (repo / "opguard.toml").write_text("steps = 3\n")
    done = opguard("diff", "--show-config", cwd=repo)
    assert done.stderr == "opguard: note: opguard.toml is read, and pyproject.toml beside it is not\n"
    assert options(opguard, "diff", cwd=repo)["--steps"] == ("3", "opguard.toml:1:1")


def test_the_command_line_wins_then_the_commands_own_table(opguard, repo):
    (repo / "opguard.toml").write_text(
        'command = ["python", "train.py"]\nwith = ["one", "two"]\nseed = 1\nsteps = 4\n[diff]\nsteps = 5\nseed = 6\n')
    shown = options(opguard, "diff", "--seed", "7", "--with", "three", cwd=repo)
    assert shown["command"] == ("python train.py", "opguard.toml:1:1")
    assert shown["--with"] == ("three", "command line")
    assert shown["--seed"] == ("7", "command line") and shown["--steps"] == ("5", "opguard.toml:6:1")
    assert options(opguard, "noise", cwd=repo)["--with"] == ("one, two", "opguard.toml:2:1")
    assert options(opguard, "noise", cwd=repo)["--steps"] == ("4", "opguard.toml:4:1")
    shown = options(opguard, "diff", "--", "python", "other.py", cwd=repo)
    assert shown["command"] == ("python other.py", "command line")


def test_what_is_added_to_exclude(opguard, repo):
    (repo / "opguard.toml").write_text('exclude = ["old"]\n')
    (repo / "old").mkdir()
    for name in ("old/a.py", "new.py", "m.py"):
        (repo / name).write_text("import torch\nx = torch.ones(2) * 2\n")

    def files(*words):
        done = opguard("instrument", ".", "--all-sites", *words, cwd=repo)
        assert done.returncode == 0, done.stderr
        return {line[6:] for line in done.stdout.splitlines() if line.startswith("+++ b/")}

    assert files() == {"m.py", "new.py"}
    assert files("--extend-exclude", "new.py") == {"m.py"} and files("--exclude", "new.py") == {"m.py", "old/a.py"}


def test_a_flag_is_taken_back(opguard, repo):
    (repo / "opguard.toml").write_text("deterministic = true\nquiet = true\n")
    shown = options(opguard, "diff", "--deterministic=false", cwd=repo)
    assert shown["--deterministic"] == ("false", "command line") and shown["--quiet"] == ("true", "opguard.toml:2:1")


def test_paths_are_relative_to_the_file(opguard, repo):
    (repo / "opguard.toml").write_text('ignore-file = "noise.rules"\ntemplates = "/t"\n[match]\njson = "-"\n')
    shown = options(opguard, "diff", cwd=repo / "train")
    assert shown["--ignore-file"][0] == str(repo / "noise.rules") and shown["--templates"][0] == "/t"
    assert options(opguard, "match", cwd=repo / "train")["--json"][0] == "-"


def test_what_one_option_demands_of_another_is_not_asked_of_the_file(opguard, repo):
    (repo / "opguard.toml").write_text("seed = 3\n")
    (repo / "m.py").write_text("x = 1\n")
    done = opguard("instrument", ".", "--strip", cwd=repo)  # --seed needs --verify
    assert done.returncode == 0, done.stderr


def test_the_environment_shows(opguard, repo):
    done = opguard("diff", "--show-config", cwd=repo, env={"NO_COLOR": "1", "OPGUARD_DEVICE_WAIT": "9"})
    lines = {" ".join(line.split()) for line in done.stdout.splitlines()}
    assert {"--color never environment: NO_COLOR", "OPGUARD_DEVICE_WAIT 9 environment: OPGUARD_DEVICE_WAIT"} <= lines


def test_show_config_as_json_and_nothing_else_is_written(opguard, repo):
    (repo / "opguard.toml").write_text('command = "python train.py | tee log"\n[diff]\njson = "verdict.json"\nsteps = 3\n')
    done = opguard("diff", "--show-config", "--json", "-", cwd=repo)
    shown = json.loads(done.stdout)
    assert shown["opguard"]["version"] and shown["schema"] == 1
    by_name = {option["name"]: option for option in shown["options"]}
    assert by_name["command"]["value"] == "python train.py | tee log"
    file = str(repo / "opguard.toml")
    assert by_name["steps"] == {"name": "steps", "value": 3, "from": "file", "file": file, "line": 4, "column": 1}
    assert by_name["json"]["from"] == "command line" and by_name["strict"]["value"] is False
    assert by_name["with"] == {"name": "with", "value": [], "from": "default"}
    assert opguard("diff", "--show-config", cwd=repo).stdout.startswith("command")
    assert sorted(p.name for p in repo.iterdir()) == [".git", "opguard.toml", "train"]


@pytest.mark.parametrize("command", "diff preflight plan match instrument run align noise compare dump export".split())
def test_every_command_shows(opguard, repo, command):
    done = opguard(command, "--show-config", cwd=repo)
    assert done.returncode == 0 and "  default\n" in done.stdout and not done.stderr
    assert "--show-config" not in done.stdout and "--help" not in done.stdout
    assert "--show-config" in opguard(command, "--help").stdout


FAULTS = [
    ('exlude = ["a"]', "1:1: error: no command has an option 'exlude'; did you mean 'exclude'?"),
    ("[dif]\nsteps = 3", "1:2: error: no command 'dif' with settings; did you mean 'diff'?"),
    ("[diff]\nstep = 3", "2:1: error: diff has no option 'step'; did you mean 'steps'?"),
    ('[diff]\n  work = "x"', "2:3: error: 'work' is of one run: give it on the command line"),
    ("[align]\nprove-runs = 3", "2:1: error: 'prove-runs' is of one run: give it on the command line"),
    ('json = "x"', "1:1: error: 'json' is set in the table of a command, as diff"),
    ('strict = "yes"', "1:10: error: 'strict' takes true or false, not string"),
    ("steps = 1.5", "1:9: error: 'steps' takes a whole number, not floating-point"),
    ("steps = -4", "1:9: error: 'steps' is not below 0"),
    ('with = ["a", 3]', "1:14: error: 'with' takes a list of strings, not list with integer"),
    ("command = 3", "1:11: error: 'command' takes a list of strings, or a string for the shell, not integer"),
    ('color = "blue"', "1:9: error: 'color': blue not in {auto,always,never}"),
    ("prove-runs = 99", "1:14: error: 'prove-runs': Value 99 not in range 0 to 64"),
    ("steps = 1\nsteps = 2", "2:9: error: Error while parsing key-value pair: cannot redefine existing integer 'steps'"),
    # A table of another command is read too.
    ("[run]\nmode = 3", "2:8: error: 'mode' takes a string, not integer"),
]


@pytest.mark.parametrize("text, said", FAULTS, ids=[said.split("error: ")[1][:40] for _, said in FAULTS])
def test_a_fault_is_one_error_at_its_place(opguard, repo, text, said):
    (repo / "opguard.toml").write_text(text + "\n")
    (repo / "train.py").write_text("open('ran', 'w')\n")
    done = opguard("diff", ".", ".", "--", "python3", "train.py", cwd=repo)
    assert done.returncode == 2 and not done.stdout
    first, line, caret = done.stderr.splitlines()
    assert first == "opguard.toml:" + said and line in text and caret.lstrip().startswith("^")
    assert not (repo / "ran").exists()
    # Help and what has no settings go on.
    assert opguard("diff", "--help", cwd=repo).returncode == 0 and opguard("help", cwd=repo).returncode == 0


def test_tables_in_the_table_of_certify_are_not_of_other_commands(opguard, repo):
    (repo / "opguard.toml").write_text("[certify]\nseed = 1\n[certify.more]\nx = 2\n")
    assert opguard("diff", "--show-config", cwd=repo).returncode == 0


def test_opguard_instrument_reads_the_table_of_instrument(opguard, repo):
    (repo / "opguard.toml").write_text("[instrument]\nseed = 3\n[diff]\nsteps = 4\n")
    done = opguard("--show-config", program="opguard-instrument", cwd=repo)
    assert done.returncode == 0 and "opguard.toml:2:1" in done.stdout, done.stderr
    (repo / "opguard.toml").write_text("[diff]\nstep = 4\n")
    assert "diff has no option 'step'" in opguard("--show-config", program="opguard-instrument", cwd=repo).stderr


def test_the_program_of_the_file_runs(opguard, repo):
    (repo / "train.py").write_text("import torch\nw = torch.ones(3)\nprint((w * 2).sum())\n")
    (repo / "opguard.toml").write_text('command = ["python", "train.py"]\n')
    done = opguard("preflight", "-o", "plan.json", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert json.loads((repo / "plan.json").read_text())["command"] == ["python", "train.py"]
    (repo / "opguard.toml").write_text('command = "cd train && python ../train.py"\n')
    done = opguard("preflight", "-o", "plan2.json", cwd=repo)
    assert done.returncode == 0 and (repo / "plan2.json").exists(), done.stderr


def test_the_page_names_every_key():
    page = (ROOT / "docs" / "guide" / "settings.md").read_text()
    for key in ("command", "with", "exclude", "ignore-file", "mode", "certify"):
        assert f"`{key}`" in page or f"tool.opguard.{key}" in page, key
