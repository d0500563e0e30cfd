"""`--simulate`: parallel programs computed unsharded. Controls are bit-equal; what is configured otherwise is said."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT, binary, build_dir, clean_environment

torch = pytest.importorskip("torch")
KNOWN = torch.__version__.partition("+")[0] == "2.13.0"
pytestmark = pytest.mark.skipif(not KNOWN, reason="the seams of torch %s are not known" % torch.__version__)
PROGRAMS = ROOT / "bench" / "simulate"
sys.path.insert(0, str(PROGRAMS))
from simulate_cases import CASES  # noqa: E402

needs_megatron = pytest.mark.skipif(
    importlib.util.find_spec("megatron") is None,
    reason="megatron-core is not installed beside this Python (bench/tolerance_env.sh)",
)


def tree_of(folder, program, edits=()):
    text = (PROGRAMS / f"{program}.py").read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    folder.mkdir()
    (folder / "train.py").write_text(text)
    if program == "core":
        (folder / "cpu.py").write_text((PROGRAMS / "cpu.py").read_text())
    return folder


def torchrun(ranks):
    return f"python -m torch.distributed.run --standalone --nproc-per-node {ranks}" if ranks > 1 else "python"


def ask(opguard, tmp_path, name, seed=0):
    """(the answer, what was printed, the exit code) of a case of bench/simulate/simulate_cases.py."""
    case = CASES[name]
    good, other = tree_of(tmp_path / "good", case["program"]), tree_of(
        tmp_path / "other", case["program"], case["edits"]
    )
    a, b = (
        f"{torchrun(case[ranks])} {{tree}}/train.py {case[args]} --seed {seed}"
        for ranks, args in (("a_ranks", "a"), ("ranks", "b"))
    )
    out = tmp_path / "answer.json"
    more = ["--with", "megatron.core"] if case["program"] == "core" else []
    done = opguard("diff", "--simulate", good, other, "--run-a", a, "--run-b", b, "--json", out, *more)
    return (json.loads(out.read_text()) if out.is_file() else None), done.stdout + done.stderr, done.returncode


@pytest.mark.parametrize(
    "name, seed",
    [
        ("plan.control_dropout", 0),
        ("plan.control_dropout", 1),
        ("plan.control_dropout", 2),
        ("plan.control_tp_fsdp", 0),
        ("plan.control_cp", 0),
    ],
)
def test_controls_are_bit_equal(opguard, tmp_path, name, seed):
    answer, said, code = ask(opguard, tmp_path, name, seed)
    assert code == 0, said
    assert answer["simulate"]["answer"] == "arithmetic"
    ranks = answer["simulate"]["ranks"]
    assert [rank["verdict"] for rank in ranks] == ["identical"] * CASES[name]["ranks"]
    assert said.count("The arithmetic: simulated, all") == 1
    # Not for want of records. What differs are the generators' first states, and the mesh's size.
    assert answer["pairs"] > 300 and answer["unequal_pairs"] <= 4


@pytest.mark.parametrize(
    "name, rank, line",
    [
        ("plan.padded", 0, "8 * o.tp"),
        ("plan.data_order", 1, "batch(step, rank)"),
        ("plan.dropout_streams", 1, "1000 + rank"),
    ],
)
def test_a_configuration_is_said_with_its_line(opguard, tmp_path, name, rank, line):
    answer, said, code = ask(opguard, tmp_path, name)
    assert code == 1, said
    assert answer["simulate"]["answer"] == "configuration"
    assert answer["simulate"]["rank"] == rank
    assert f"The configuration or the data: rank {rank} differs with unsharded arithmetic too, at " in said
    place = answer["pivot"]["b"] or answer["pivot"]["a"]
    assert place["file"].endswith("train.py")


def test_data_ranks_must_be_as_many(opguard, tmp_path):
    answer, said, code = ask(opguard, tmp_path, "plan.other_data_ranks")
    assert (answer, code) == (None, 2)
    assert "run a has 1 rank, and the data of run b are divided among 2" in said


def simulated(opguard, folder, text, ranks=2, env=None):
    program = folder / "program.py"
    program.write_text(text)
    return opguard(
        "run",
        "--simulate",
        "--log",
        folder / "log",
        "--",
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        ranks,
        program,
        cwd=folder,
        env=env,
    )


BY_HAND = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rows = torch.nn.Linear(4, 4)
{sum}
optimizer = torch.optim.SGD(rows.parameters(), lr=0.1)
loss = rows(torch.ones(2, 4)).sum()
loss.backward()
{step}
optimizer.step()
print("went on")
"""


@pytest.mark.parametrize(
    "parts, said",
    [
        (
            {"step": "dist.all_reduce(rows.weight.grad)"},
            "this program parallelises by hand: no seam of a known library",
        ),
        (
            {"sum": "rows.register_forward_hook(lambda module, given, y: dist.all_reduce(y.detach()))"},
            "the collective (allreduce) at program.py",
        ),
        (
            {"step": "dist.send(loss.detach(), 1) if dist.get_rank() == 0 else dist.recv(torch.zeros(()), 0)"},
            "the message (",
        ),
    ],
)
def test_arithmetic_by_hand_is_refused(opguard, tmp_path, parts, said):
    done = simulated(opguard, tmp_path, BY_HAND.format(**{"sum": "", "step": "", **parts}))
    assert done.returncode != 0
    assert "opguard: --simulate: " in done.stderr and said in done.stderr
    assert "went on" not in done.stdout


SHARED = """
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, parallelize_module

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
rank = dist.get_rank()
torch.manual_seed(rank)
rows = torch.nn.Linear(4, 8)
{before}
parallelize_module(rows, mesh, ColwiseParallel())
{after}
"""


@pytest.mark.parametrize(
    "parts, said",
    [
        (
            {"after": "DTensor.from_local(torch.ones(4, 4), mesh, [Shard(0)])"},
            "DTensor.from_local of a piece, called at program.py",
        ),
        (
            {
                "before": (
                    "class Own(ParallelStyle):\n"
                    "    def _apply(self, module, mesh):\n"
                    "        return module\n"
                    "parallelize_module(rows, mesh, Own())"
                )
            },
            "with the style __main__.Own",
        ),
        (
            {
                "after": (
                    "from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy\n"
                    "fully_shard(rows, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))"
                )
            },
            "fully_shard with param_dtype",
        ),
        (
            {"after": "from torch.distributed.fsdp import FullyShardedDataParallel\nFullyShardedDataParallel(rows)"},
            "FullyShardedDataParallel, called at program.py",
        ),
        (
            {"after": "dist.all_reduce(rows.weight.detach(), group=mesh.get_group())"},
            "adds up gradients or parameters of ranks that each have them whole",
        ),
    ],
)
def test_what_no_seam_stands_for_is_refused(opguard, tmp_path, parts, said):
    done = simulated(opguard, tmp_path, SHARED.format(**{"before": "", "after": "", **parts}))
    assert done.returncode != 0
    assert said in done.stderr, done.stderr


def test_parameters_stay_whole_and_answer_as_if_distributed(opguard, tmp_path):
    after = """
assert type(rows.weight) is torch.nn.Parameter and rows.weight.shape == (8, 4)
assert rows.weight.full_tensor() is rows.weight and rows.weight.placements == (Replicate(),)
assert rows.weight.device_mesh is mesh
assert not hasattr(torch.nn.Linear(2, 2).weight, "placements")
assert (mesh.size(), mesh.get_local_rank(), dist.get_world_size()) == (2, rank, 2)
ones = torch.ones(2, 4)
assert distribute_tensor(ones, mesh, [Shard(0)]) is ones
torch.manual_seed(0)
assert torch.equal(rows.weight, torch.nn.Linear(4, 8).weight)  # of rank 0, as torch itself takes them
logged = torch.tensor([1.0])
dist.all_reduce(logged)  # for a log: goes on
assert logged.item() == 2
print(f"whole {rank}\\n", end="", flush=True)
"""
    done = simulated(opguard, tmp_path, SHARED.format(before="", after=after))
    assert done.returncode == 0, done.stderr
    assert {"whole 0", "whole 1"} <= set(done.stdout.split("\n"))


def test_gradients_are_averaged_in_the_order_of_ranks(opguard, tmp_path):
    """Of three ranks: with context parallel ranks counted once, without those that synchronise later."""
    text = """
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = init_device_mesh("cpu", (3,))
model = torch.nn.Linear(2, 1, bias=False)
fully_shard(model, mesh=mesh)
assert isinstance(model, FSDPModule) and isinstance(model, torch.nn.Linear)
values = [torch.tensor([[1e8, 1.0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([[-1e8, 1.0]])]
model.set_requires_gradient_sync(False)
model(values[rank]).sum().backward()
assert torch.equal(model.weight.grad, values[rank])
model.set_requires_gradient_sync(True)
model(torch.zeros(1, 2)).sum().backward()
mean = (values[0] + values[1] + values[2]) / 3
assert torch.equal(model.weight.grad, mean), model.weight.grad
model(values[rank]).sum().backward()
assert torch.equal(model.weight.grad, mean + mean)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
optimizer.step()
print("averaged\\n", end="", flush=True)
"""
    done = simulated(opguard, tmp_path, text, ranks=3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("averaged") == 3


def test_another_version_of_torch_is_refused(opguard, tmp_path):
    fake = tmp_path / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text('__version__ = "2.99.0+cpu"\n')
    program = tmp_path / "program.py"
    program.write_text("import torch\nprint('went on')\n")
    done = opguard(
        "run",
        "--simulate",
        "--log",
        tmp_path / "log",
        "--",
        sys.executable,
        program,
        env={"PYTHONPATH": str(tmp_path / "fake")},
    )
    assert done.returncode == 2
    assert "opguard: --simulate: the seams of torch 2.99.0+cpu are not known; known are: 2.13.0" in done.stderr
    assert "went on" not in done.stdout


def test_a_seam_that_is_not_as_it_was_known_is_refused(opguard, tmp_path):
    fake = tmp_path / "fake" / "torch" / "distributed" / "tensor" / "parallel"
    fake.mkdir(parents=True)
    for folder in (fake, *list(fake.parents)[:3]):
        (folder / "__init__.py").write_text("")
    (fake / "api.py").write_text("parallelize = None\n")
    (tmp_path / "fake" / "torch" / "__init__.py").write_text(
        '__version__ = "2.13.0"\nfrom torch.distributed.tensor.parallel import api\n'
    )
    program = tmp_path / "program.py"
    program.write_text("import torch\nprint('went on')\n")
    done = opguard(
        "run",
        "--simulate",
        "--log",
        tmp_path / "log",
        "--",
        sys.executable,
        program,
        env={"PYTHONPATH": str(tmp_path / "fake")},
    )
    assert done.returncode == 2
    assert "the seam in torch.distributed.tensor.parallel.api is not as it was known" in done.stderr


def test_without_the_option_nothing_is_replaced(opguard, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\nimport torch.distributed.tensor.parallel as p, torch.distributed.fsdp as f\n"
        "for seam in (p.parallelize_module, f.fully_shard):\n    print(seam.__code__.co_filename)\n"
        "print([m for m in sys.modules if 'simulate' in m])\n"
    )
    plain = opguard(
        "run", "--log", tmp_path / "log", "--", sys.executable, program, env={"OPGUARD_SIMULATE": "1"}
    ).stdout
    assert plain.count("site-packages/torch/") == 2 and plain.rstrip().endswith("[]")
    replaced = opguard("run", "--simulate", "--log", tmp_path / "log2", "--", sys.executable, program).stdout
    assert "opguard/simulate/dtensor.py" in replaced and "opguard/simulate/fsdp.py" in replaced


def test_simulate_and_tolerance_are_two_questions(opguard, tmp_path):
    done = opguard("diff", "--simulate", "--tolerance", tmp_path, tmp_path, "--", "python", "train.py")
    assert done.returncode == 2 and "excludes" in done.stderr


@needs_megatron
@pytest.mark.parametrize("name", ["core.control_tp_sp", "core.control_pp", "core.control_ep"])
def test_megatron_controls_are_bit_equal(opguard, tmp_path, name):
    answer, said, code = ask(opguard, tmp_path, name)
    assert code == 0, said
    assert [rank["verdict"] for rank in answer["simulate"]["ranks"]] == ["identical"] * CASES[name]["ranks"]


@needs_megatron
@pytest.mark.parametrize("name, rank", [("core.padded", 0), ("core.data_order", 1), ("core.dropout_streams", 1)])
def test_megatron_configurations_are_said(opguard, tmp_path, name, rank):
    answer, said, code = ask(opguard, tmp_path, name)
    assert code == 1, said
    assert (answer["simulate"]["answer"], answer["simulate"]["rank"]) == ("configuration", rank)


@needs_megatron
def test_megatron_tells_program_and_library_apart(tmp_path):
    """The program's tensor parallel place, and the layers'; a weight is whole, and its mark says so."""
    program = tmp_path / "program.py"
    program.write_text("""
import cpu
import torch
import torch.distributed as dist
from megatron.core import parallel_state as mpu, tensor_parallel
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.core.tensor_parallel import ColumnParallelLinear

dist.init_process_group("gloo")
mpu.initialize_model_parallel(tensor_model_parallel_size=2)
rank = dist.get_rank()
assert (mpu.get_tensor_model_parallel_world_size(), mpu.get_tensor_model_parallel_rank()) == (2, rank)
assert dist.get_process_group_ranks(mpu.get_tensor_model_parallel_group()) == [0, 1]
assert (mpu.get_data_parallel_world_size(), mpu.get_data_parallel_rank()) == (1, 0)
config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=2, tensor_model_parallel_size=2,
                           sequence_parallel=True, use_cpu_initialization=True)
assert (config.tensor_model_parallel_size, config.sequence_parallel) == (1, False)
layer = ColumnParallelLinear(8, 12, config=config, init_method=torch.nn.init.ones_, bias=False, gather_output=False)
assert layer.weight.shape == (12, 8) and not layer.weight.tensor_model_parallel
tensor_parallel.model_parallel_cuda_manual_seed(5, tp_rank=rank)
with tensor_parallel.get_cuda_rng_tracker().fork():
    drawn = torch.rand(1).item()
assert drawn == torch.rand(1, generator=torch.Generator().manual_seed(5 + 2718)).item()
print(f"apart {rank}\\n", end="", flush=True)
""")
    (tmp_path / "cpu.py").write_text((PROGRAMS / "cpu.py").read_text())
    command = [
        binary("opguard"),
        "run",
        "--simulate",
        "--log",
        tmp_path / "log",
        "--",
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        program,
    ]
    done = subprocess.run(list(map(str, command)), env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert {"apart 0", "apart 1"} <= set(done.stdout.split("\n"))


def test_replicas_and_notes_by_identity(monkeypatch):
    monkeypatch.syspath_prepend(str(build_dir() / "python"))
    from opguard.simulate import exchange, seams

    notes = seams.ByIdentity()
    first, second = torch.ones(2), torch.ones(2)
    notes.put(first, "first")
    assert (notes.get(first), notes.get(second)) == ("first", None)
    monkeypatch.setattr(seams, "_replicas", [])
    seams.replicate([1, 0])
    seams.replicate([3])
    seams.replicate([0, 1])
    assert seams.replicas() == [(0, 1)] and seams.settings()["simulate"] == "0,1"
    parts = [torch.tensor([1e8]), torch.tensor([1.0]), torch.tensor([-1e8])]
    assert exchange.mean(parts, 2).item() == 0.0  # the 1 is lost as in that order it must be
    assert os.environ.get("OPGUARD_SIMULATE") is None
