"""The tracer: exact expressions, phases, which files count, and that the program is not disturbed."""

import json
import os
import signal

import pytest

from tracing import by_text, program, text_of, trace  # noqa: F401  (program is a fixture)

pytest.importorskip("torch")


def test_several_operators_on_a_line(program):
    program.write("train.py", "import torch\nx = torch.ones(2, 3)\né = torch.relu(x * 2 + x[0]) @ x.t()\n")
    uses = trace(program, "train.py")["uses"]
    if not program.has_columns:
        assert [(u["line"], u["callee"]) for u in uses][1:] == [(3, "aten::mul"), (3, "aten::select"), (3, "aten::add"), (3, "aten::relu"), (3, "aten::t"), (3, "aten::mm")]
        return
    found = {text_of(program, u): (u["opcode"], u["callee"], list(u["activities"])) for u in uses}
    subscript = found.pop("x[0]")
    assert subscript[0].startswith("BINARY_") and subscript[1:] == ("aten::select", ["aten::select.int"])
    assert found == {
        "torch.ones(2, 3)": ("CALL", "aten::ones", ["aten::ones"]),
        "x * 2": ("BINARY_OP", "aten::mul", ["aten::mul.Tensor"]),
        "x * 2 + x[0]": ("BINARY_OP", "aten::add", ["aten::add.Tensor"]),
        "torch.relu(x * 2 + x[0])": ("CALL", "aten::relu", ["aten::relu"]),
        "x.t()": ("CALL", "aten::t", ["aten::t"]),
        "torch.relu(x * 2 + x[0]) @ x.t()": ("BINARY_OP", "aten::mm", ["aten::mm"]),
    }
    assert [u["order"] for u in uses] == list(range(7))
    assert by_text_dtypes(program, uses)["x * 2"] == ["f32[2,3]"]


def by_text_dtypes(program, uses):
    return {text_of(program, u): u["dtypes"] for u in uses}


TRAIN = """
import torch
from torch.utils.checkpoint import checkpoint

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        return torch.tanh(self.inner(x))

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g + g

torch.manual_seed(0)
block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    optimizer.zero_grad()
    loss = Double.apply(checkpoint(block, torch.ones(2, 4), use_reentrant=False)).square().mean()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
"""


def test_phases_and_marks(program):
    program.write("train.py", TRAIN)
    bare = program.run("train.py", python=program.python, environment={"OPGUARD_TRACE": ""})
    found = trace(program, "train.py")
    assert found["complete"] and found["steps"] == 3 and found["errors"] == 0
    assert found["foreign"] == 0
    lines = {}
    for use in found["uses"]:
        for phase in use["phases"]:
            lines.setdefault(phase, set()).add(TRAIN.splitlines()[use["line"] - 1].strip())
    assert lines["recompute"] == {"return torch.tanh(self.inner(x))"}
    # Python code that runs inside the pass keeps its own place.
    assert {"return g + g", "loss.backward()"} <= lines["backward"]
    assert found["micro_batches"] == {"1": 3}
    assert lines["optimizer"] == {"optimizer.step()"}
    activities = [(k, v) for use in found["uses"] for k, v in use["activities"].items() if k.startswith("opguard::")]
    assert sorted(activities) == [("opguard::backward", 3), ("opguard::optimizer_step", 3), ("opguard::seed", 1)]
    assert bare.stdout == program.run("train.py", python=program.python).stdout != ""


def test_calls_count_executions(program):
    program.write("train.py", "import torch\nlayer = torch.nn.Linear(2, 2)\nx = torch.ones(1, 2)\nfor _ in range(5):\n    x = layer(x)\n")
    uses = by_text(program, trace(program, "train.py"))
    use = uses["layer(x)" if program.has_columns else "x = layer(x)"]
    assert use["calls"] == 5 and sum(use["activities"].values()) >= 10


def test_stops_after_steps(program):
    program.write("train.py", TRAIN)
    program.environment["OPGUARD_STEPS"] = "1"
    found = trace(program, "train.py")
    assert found["steps"] == 1 and found["complete"]
    assert max(n for use in found["uses"] for n in use["activities"].values() if use["path"].endswith("train.py")) < 40
    assert [use["activities"]["opguard::optimizer_step"] for use in found["uses"] if "opguard::optimizer_step" in use["activities"]] == [1]


FORKED = """import torch

@torch.jit.script
def work(x):
    return torch.exp(x)

@torch.jit.script
def train(x):
    return torch.jit.wait(torch.jit.fork(work, x))

train(torch.ones(3))
"""


def test_threads(program):
    program.write("train.py", "import threading, torch\nx = torch.ones(2)\ndef work():\n    x.cos()\nt = threading.Thread(target=work)\nt.start()\nt.join()\n")
    assert any("aten::cos" in use["activities"] for use in trace(program, "train.py")["uses"])


def test_a_thread_without_a_frame_of_pythons(program):
    """As the autograd engine's own for a device: TorchScript forks run in such threads too."""
    program.write("train.py", FORKED)
    found = trace(program, "train.py")
    assert found["errors"] == 0 and found["foreign_compute"] == {"forward": {"aten::exp": 1}}


@pytest.mark.filterwarnings("ignore")
def test_forked_child_has_its_own(program):
    program.write("train.py", "import os, torch\nx = torch.ones(2)\nx.sin()\nif os.fork() == 0:\n    x.cos()\n    os._exit(0)\nos.wait()\n")
    parent, child = sorted(trace(program, "train.py", count=2), key=lambda t: -t["activities"])
    names = lambda t: {n for use in t["uses"] for n in use["activities"]}
    assert names(parent) == {"aten::ones", "aten::sin"} and names(child) == {"aten::cos"}


def test_leaves_at_os_exit(program):
    program.write("train.py", "import os, torch\ntorch.ones(2).exp()\nos._exit(0)\n")
    found = trace(program, "train.py")
    assert found["complete"] and found["activities"] == 2


def test_killed_program_leaves_what_it_had(program):
    program.write("train.py", TRAIN.replace("optimizer.zero_grad()", "optimizer.zero_grad(); import time; time.sleep(1.1)") + "import os\nos.kill(os.getpid(), 9)\n")
    ran = program.run("train.py", python=program.python)
    assert ran.returncode == -signal.SIGKILL
    (path,) = program.traces.glob("trace-*.json")
    found = json.loads(path.read_text())
    assert not found["complete"] and found["steps"] >= 2 and found["uses"]


def test_without_torch_there_is_no_trace(program):
    program.write("train.py", "print(1)\n")
    trace(program, "train.py", count=0)


def test_which_files_are_the_users(program):
    site = "venv/lib/python3.11/site-packages"
    body = "import torch\ndef f(x):\n    return x * 2\n"
    outer = program.folder / "outer"
    for root in (outer, outer / "unused"):
        (root / "space" / "core").mkdir(parents=True)
    (outer / "space" / "core" / "__init__.py").write_text(body)
    (outer / "other.py").write_text(body)
    (outer / "single.py").write_text(body)
    program.write("sub/own.py", body)
    program.write(site + "/vendored.py", body)
    program.write("never.py", body)
    program.write(
        "train.py",
        "import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\nsys.path += [%r, os.path.join(here, %r)]\nos.chdir('/')\n"
        "import torch, other, vendored, single, space.core\nfrom sub import own\nx = torch.ones(2)\n"
        "for m in (other, vendored, single, space.core, own):\n    x = m.f(x)\n" % (str(outer), site),
    )
    program.environment["OPGUARD_WITH"] = "space.core,single,absent"
    found = trace(program, "train.py")
    tree = str(program.tree)
    assert found["files"] == sorted([str(outer / "space/core/__init__.py"), str(outer / "single.py"), tree + "/sub/own.py", tree + "/train.py"])
    assert found["missing_packages"] == ["absent"]
    assert found["roots"] == [
        {"package": "", "dir": tree, "subdir": ""},
        {"package": "space.core", "dir": str(outer), "subdir": "space/core"},
        {"package": "single", "dir": str(outer), "subdir": "single.py"},
    ]
    # What other files do belongs to the user's line that called them.
    assert {use["path"][len(tree) + 1 :]: sum(use["activities"].values()) for use in found["uses"] if use["scope"] == "<module>" and use["line"] == 9} == {"train.py": 2}


def test_package_is_found_without_being_imported(program):
    package = program.folder / "site"
    (package / "lib_a" / "part").mkdir(parents=True)
    (package / "lib_a" / "__init__.py").write_text("raise SystemError('imported')\n")
    program.write("train.py", "import torch\ntorch.ones(1).cos()\n")
    program.environment["OPGUARD_WITH"] = "lib_a,lib_a.part"
    path = os.pathsep.join([str(program.package / "boot"), str(package)])
    found = trace(program, "train.py", environment={"PYTHONPATH": path})
    assert [r["subdir"] for r in found["roots"]] == ["", "lib_a", "lib_a/part"] and found["missing_packages"] == []


UNUSUAL = """
import torch, sys, functools
from torch.utils._python_dispatch import TorchDispatchMode
from torch._subclasses.fake_tensor import FakeTensorMode

class Mine(TorchDispatchMode):
    seen = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Mine.seen += 1
        return func(*args, **(kwargs or {}))

torch.manual_seed(0)
x = torch.randn(3, 4, requires_grad=True)
with Mine():
    y = (x @ x.t()).softmax(-1).sum()
print(Mine.seen, repr(y.item()))
with FakeTensorMode():
    print(torch.empty(1000, 1000) @ torch.empty(1000, 3))
print((torch.empty(5, 5, device="meta") + 1).shape)
print(torch.func.vmap(torch.dot)(torch.ones(3, 4), torch.ones(3, 4)))
print(torch.func.grad(lambda v: (v ** 2).sum())(torch.ones(3)))
(g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
g.sum().backward()
print(x.grad.sum().item() == (6 * x).sum().item())
with torch.inference_mode():
    print(torch.ones(2).add_(1))
from functorch.experimental.control_flow import cond
print(cond(torch.tensor(True), lambda v: v.cos(), lambda v: v.sin(), (torch.zeros(2),)))
print(torch.jit.script(torch.nn.Linear(2, 2))(torch.zeros(1, 2)).shape)
print(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).is_nested)
print(torch.sparse_coo_tensor([[0]], [1.0], (2,)).to_dense())
"""


def test_unusual_programs_are_not_disturbed(program):
    program.write("train.py", UNUSUAL)
    bare = program.run("train.py", python=program.python, environment={"OPGUARD_TRACE": ""})
    traced = program.run("train.py", python=program.python)
    if bare.returncode:  # this torch lacks something the program uses: then it must fail alike
        assert traced.returncode == bare.returncode
    else:
        assert traced.returncode == 0, traced.stderr
    assert traced.stdout == bare.stdout != ""


def test_double_backward_is_no_recompute(program):
    program.write("train.py", "import torch\nx = torch.ones(2, requires_grad=True)\ny = (x ** 3).sum()\n(g,) = torch.autograd.grad(y, x, create_graph=True)\n")
    phases = {phase for use in trace(program, "train.py")["uses"] for phase in use["phases"]}
    assert phases == {"forward", "backward"}


def test_ranks_under_torchrun(program):
    program.write(
        "train.py",
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\nx = torch.ones(2) * dist.get_rank()\ndist.all_reduce(x)\n"
        "assert x[0] == 1\ndist.destroy_process_group()\n",
    )
    command = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    ran = program.run(*command, python=program.python, environment={"OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(p.read_text()) for p in program.traces.glob("trace-*.json")]
    ranks = [t for t in found if t["uses"]]
    assert sorted((t["rank"], t["world"]) for t in ranks) == [(0, 2), (1, 2)]
    for t in ranks:
        assert any(name.startswith("c10d::allreduce_") for use in t["uses"] for name in use["activities"])
