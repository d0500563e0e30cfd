"""`certify`: a repository's checks, each with its tier; what is unchanged runs once, what is accepted is told apart."""
import json
import subprocess
import xml.etree.ElementTree

import pytest

pytest.importorskip("torch")

TRAIN = """
import argparse
import os
import torch
from model import scale

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--save")
parser.add_argument("--resume")
args = parser.parse_args()
if "RUNS" in os.environ:
    with open(os.environ["RUNS"], "a") as file:
        print("run", file=file)
torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
start = 0
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    start = state["step"]
for step in range(start, args.steps):
    optimizer.zero_grad()
    scale(model(torch.randn(4, 8))).square().mean().backward()
    optimizer.step()
if args.save:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": args.steps,
                "random": torch.get_rng_state()}, args.save)
"""
MODEL = """
def scale(x):
    return x * 0.5
"""
CHECKS = """
[certify]
command = "python train.py"

[certify.default-path]
[certify.resume]
first = "python train.py --steps 1 --save {work}/state.pt"
then = "python train.py --resume {work}/state.pt"
[certify.canaries]
"""


def git(tree, *words):
    subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words], cwd=tree, check=True,
                   capture_output=True)


@pytest.fixture
def repo(tmp_path):
    tree = tmp_path / "a repo"
    tree.mkdir()
    for name, text in {"train.py": TRAIN, "model.py": MODEL, "opguard.toml": CHECKS}.items():
        (tree / name).write_text(text)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "one")
    return tree


@pytest.fixture
def certify(opguard, repo, tmp_path):
    def run(*words):
        table = tmp_path / "results.json"
        table.unlink(missing_ok=True)
        done = opguard("certify", "--quiet", "--json", table, *words, cwd=repo)
        checks = json.loads(table.read_text())["checks"] if table.exists() else []
        return done, {check["name"]: check for check in checks}

    return run


def test_certified_once_and_run_again_where_something_changed(certify, repo):
    done, _ = certify("--update", "canaries", "--reason", "the beginning")
    assert done.returncode == 0, done.stderr
    assert json.loads((repo / "opguard-certified.json").read_text())["canaries"]["canaries"]["reason"] == "the beginning"
    done, checks = certify()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {check["result"] for check in checks.values()} == {"certified"}
    assert not any(check["reused"] for check in checks.values())
    assert not (repo / "state.pt").exists()

    (repo / "README.md").write_text("what nobody runs\n")
    done, checks = certify("default-path", "resume")
    assert done.returncode == 0 and all(check["reused"] for check in checks.values()), done.stdout
    (repo / "model.py").write_text(MODEL + "\n\nUNUSED = 1\n")
    done, checks = certify("default-path")
    assert done.returncode == 0 and not checks["default-path"]["reused"]


def test_a_drift_is_named_accepted_and_no_other_is(certify, repo, tmp_path, monkeypatch):
    runs = tmp_path / "runs.txt"
    monkeypatch.setenv("RUNS", str(runs))
    (repo / "model.py").write_text(MODEL.replace("0.5", "0.25"))
    files = [tmp_path / name for name in ("junit.xml", "report.md", "report.sarif")]
    done, checks = certify("default-path", "--junit", files[0], "--md", files[1], "--sarif", files[2])
    assert done.returncode == 1, done.stderr
    assert (checks["default-path"]["file"], checks["default-path"]["line"]) == ("model.py", 3)
    assert "diverged, proven" in done.stdout and "return x * 0.25" in done.stdout
    case, = xml.etree.ElementTree.parse(files[0]).getroot()
    assert case.get("file") == "model.py" and case[0].tag == "failure"
    assert "| default-path | bit-exact | not certified |" in files[1].read_text()
    result = json.loads(files[2].read_text())["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "model.py"

    assert certify("--update", "default-path")[0].returncode == 2  # without a reason
    done, _ = certify("--update", "default-path", "--reason", "a smaller scale, #412")
    assert done.returncode == 0, done.stderr
    runs.unlink()
    done, checks = certify("default-path")
    assert done.returncode == 0 and checks["default-path"]["result"] == "accepted", done.stdout
    assert len(runs.read_text().split()) == 2  # traced, and recorded: what is accepted is not proven again
    assert "a smaller scale, #412" in done.stdout
    (repo / "model.py").write_text(MODEL.replace("0.5", "0.125"))
    assert certify("default-path")[0].returncode == 1
    accepted = repo / "opguard-certified.json"
    (repo / "model.py").write_text(MODEL.replace("0.5", "0.25"))
    text = json.loads(accepted.read_text())
    text["accepted"][0]["until"] = "2020-01-01"
    accepted.write_text(json.dumps(text))
    done, _ = certify("default-path")
    assert done.returncode == 1 and "accepted until 2020-01-01" in done.stdout


def test_a_resume_names_what_was_not_restored(certify, repo):
    (repo / "train.py").write_text(TRAIN.replace('torch.set_rng_state(state["random"])', "pass"))
    done, _ = certify("resume")
    assert done.returncode == 1 and "the random state of torch.cpu differs" in done.stdout
    assert "torch.randn" in done.stdout
    (repo / "train.py").write_text(TRAIN.replace('optimizer.load_state_dict(state["optimizer"])', "pass"))
    done, _ = certify("resume")
    assert done.returncode == 1 and "momentum" in done.stdout, done.stdout


RANKS = """
import os
import torch
import torch.distributed as dist

world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
assert os.environ.get("OPGUARD_DETERMINISTIC", "7") == "7"  # the check's seed
if world > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(2):
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(step)).chunk(world)[rank]
    optimizer.zero_grad()
    model(x).square().mean().backward()
    for p in model.parameters() if world > 1 else ():
        dist.all_reduce(p.grad)
        p.grad /= world
    optimizer.step()
if world > 1:
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("right", [True, False])
def test_ranks_are_compared_within_rounding(certify, repo, right):
    (repo / "train.py").write_text(RANKS if right else RANKS.replace("p.grad /= world", "pass"))
    (repo / "opguard.toml").write_text('[certify]\ncommand = "python train.py"\n[certify.ranks]\n'
                                       'many = "torchrun --nproc-per-node 2 train.py"\ndeterministic = true\nseed = 7\n')
    done, checks = certify()
    assert done.returncode == (0 if right else 1), done.stdout + done.stderr
    assert checks["ranks"]["tier"] == "tolerance"
    if not right:
        assert "it is run a's times 2" in done.stdout
        assert checks["ranks"]["file"] == "train.py" and "all_reduce" in RANKS.splitlines()[checks["ranks"]["line"] - 1]


@pytest.mark.parametrize("text, said", [
    ("[certify.foo]\n", "opguard.toml:1:10: error: 'foo' is no kind of check"),
    ("[certify.replay]\nagianst = 'x'\n", "did you mean 'against'?"),
    ("[certify.replay]\n", "needs 'command'"),
    ("[certify]\nsteps = 2\n", "certify has no option 'steps'"),
    ("[diff.more]\nx = 2\n", "diff has no option 'more'"),
])
def test_faults_in_the_file_are_named_by_place(certify, repo, text, said):
    (repo / "opguard.toml").write_text(text)
    done, _ = certify()
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_what_cannot_be_run_is_undecided(certify, repo):
    (repo / "train.py").write_text("raise SystemExit(3)\n")
    done, checks = certify("default-path", "resume")
    assert done.returncode == 2, done.stdout
    assert {check["result"] for check in checks.values()} == {"could not tell"}
    assert "exit code 3" in done.stdout
    assert "no check 'nope'; there are default-path, resume, canaries" in certify("nope")[0].stderr
    assert "no revision 'nope'" in certify("default-path", "--against", "nope")[0].stdout
