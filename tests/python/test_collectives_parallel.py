"""Collectives that the framework makes: DistributedDataParallel's buckets, fully_shard, tensor parallelism."""

import pytest

from distributed import assert_matched, rank_logs, record_ranks, run_ranks
from runtime_log import MODEL_VALUE

pytest.importorskip("torch.distributed")

# Every way in which the reducer divides: the answers are bits, and must be those of the bare program.
DDP = """
import contextlib, hashlib
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = torch.nn.Linear(16, 32), torch.nn.Linear(32, 32), torch.nn.Linear(32, 5)
        self.n, self.d = torch.nn.BatchNorm1d(32), torch.nn.Linear(3, 3)
    def forward(self, x, extra):
        y = self.c(self.n(torch.relu(self.b(torch.relu(self.a(x))))))
        return y + self.d(x[:, :3]).sum() if extra else y
def train(name, hook=None, late=None, accumulate=1, keep=False, extra=lambda step: True, dtype=torch.float32, join=False, **options):
    torch.manual_seed(7)
    ddp = DistributedDataParallel(Net().to(dtype), bucket_cap_mb=0.002, **options)
    if hook: ddp.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=.1, momentum=.9)
    with ddp.join(divide_by_initial_world_size=False) if join else contextlib.nullcontext():
        for step in range(3 + (rank if join else 0)):
            torch.manual_seed(100 * rank + step)
            for micro in range(accumulate):
                with contextlib.nullcontext() if micro == accumulate - 1 else ddp.no_sync():
                    x = torch.randn(6, 16).to(dtype)
                    loss = og(name, ddp)(x, extra(step)).float().pow(2).mean()
                    og(name + ".backward", loss.backward)()
            if late and step == 0: ddp.register_comm_hook(None, late)
            og(name + ".step", optimizer.step)()
            optimizer.zero_grad(set_to_none=not keep)
    digest = hashlib.sha256()
    for p in ddp.parameters(): digest.update(p.detach().double().numpy().tobytes())
    say(name, loss.item().hex(), digest.hexdigest())
def own(state, bucket):
    t = bucket.buffer().div_(world)
    return dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0])
%s
"""
WAYS = {
    "plain": "", "view": "gradient_as_bucket_view=True", "view_kept": "gradient_as_bucket_view=True, keep=True",
    "accumulated": "accumulate=2", "view_accumulated": "accumulate=2, gradient_as_bucket_view=True, keep=True",
    "unused": "find_unused_parameters=True, extra=lambda step: step % 2 == rank % 2", "static": "static_graph=True, keep=True",
    "half": "dtype=torch.bfloat16", "compressed": "hook=default_hooks.fp16_compress_hook", "own": "hook=own",
    "late": "late=default_hooks.allreduce_hook", "joined": "join=True",
}  # fmt: skip


@pytest.mark.parametrize("world", [2, 3])
def test_buckets_leave_every_bit_alone(tmp_path, world):
    source = DDP % "\n".join(f"train({name!r}, {options})" for name, options in WAYS.items())
    bare = run_ranks(source, world)
    assert run_ranks(source, world, tmp_path / "one", recording={1}) == bare
    assert run_ranks(source, world, tmp_path) == bare
    logs = rank_logs(tmp_path, world)
    assert assert_matched(logs) == {f"0-{world - 1}"}
    for log in logs:
        assert "ddp_buckets" not in log.settings
        buckets = [e for e in log.events if e.boundary == "<ddp.bucket>"]
        assert {e.phase for e in buckets} <= {"backward", "forward"} and all(e.kind == "collective" for e in buckets)
        for e in buckets:
            assert all(s.flags & MODEL_VALUE for s in e.slots if s.kind == "out")


def test_buckets_tell_the_gradients_by_name(tmp_path):
    logs = record_ranks(DDP % "train('plain')\ntrain('view', gradient_as_bucket_view=True)", 2, tmp_path)
    for log in logs:
        buckets = [e for e in log.events if e.boundary == "<ddp.bucket>"]
        names = [n for e in buckets if e.step == 1 for n in e.names("out")]
        assert sorted(names) == sorted(f"grad:{m}.{p}" for m in "abcdn" for p in ("weight", "bias"))
        assert len([e for e in buckets if e.step == 1]) > 1  # the reducer has rebuilt them
        last = [e for e in buckets if e.step == 1][-1]
        assert "is_last=True" in last.scalars and "bucket=%d" % (len([e for e in buckets if e.step == 1]) - 1) in last.scalars
        accumulated = {s.value for e in log.events if e.kind == "accumulate" for s in e.slots if s.kind == "out"}
        stepped = {s.value for e in log.events if e.kind == "optimizer" for s in e.slots if s.name.startswith("grad")}
        for e in buckets:
            # What autograd accumulated goes in, what the optimizer reads comes out.
            assert {s.value for s in e.slots if s.kind == "in"} <= accumulated, e
            assert {s.value for s in e.slots if s.kind == "out"} <= stepped
    for a, b in zip(*[[e for e in log.events if e.boundary == "<ddp.bucket>"] for log in logs]):
        assert a.scalars == b.scalars
        assert [s.value for s in a.slots if s.kind == "out"] == [s.value for s in b.slots if s.kind == "out"]


SHARDED = """
import hashlib
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
    def forward(self, x):
        return x + og("down", self.down)(torch.relu(og("up", self.up)(x)))
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = torch.nn.ModuleList([Block(), Block()]), torch.nn.Linear(16, 4)
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return self.head(x)
def train(name, prepare):
    torch.manual_seed(0)
    net = Net()
    prepare(net)
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=.01)
    for step in range(2):
        torch.manual_seed(10 * step + (rank if name != "tensor" else 0))
        loss = og("model", net)(torch.randn(4, 16)).float().pow(2).mean()
        og("backward", loss.backward)()
        if name != "tensor": torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        og("step", optimizer.step)()
        optimizer.zero_grad()
    digest = hashlib.sha256()
    for p in net.parameters():
        digest.update((p.full_tensor() if isinstance(p, DTensor) else p).detach().numpy().tobytes())
    say(name, loss.item().hex(), digest.hexdigest())
def sharded(net, **options):
    for layer in net.layers: fully_shard(layer, **options)
    fully_shard(net, **options)
def mixed(net):
    sharded(net, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32), reshard_after_forward=False)
def tensor(net):
    mesh = init_device_mesh("cpu", (world,))
    for layer in net.layers: parallelize_module(layer, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    net.head.requires_grad_(False)
%s
"""


def test_fully_shard_tells_its_parameters(tmp_path):
    logs = record_ranks(SHARDED % "train('sharded', sharded)", 2, tmp_path)
    assert assert_matched(logs) == {"0-1"}
    for log in logs:
        gathered = [e for e in log.events if e.boundary == "<fsdp.all_gather layers.0>"]
        assert [e.phase for e in gathered] == ["forward", "backward"] * 2
        for e in gathered:
            assert e.names("in") == e.names("out") and "param:layers.0.up.weight" in e.names("in")
        up = log.of("up")[0]
        assert up.get("in", "param:weight").value == gathered[0].get("out", "param:layers.0.up.weight").value
        reduced = [e for e in log.events if e.boundary == "<fsdp.reduce layers.1>"]
        assert len(reduced) == 2 and reduced[0].get("out", "grad:layers.1.down.bias").flags & MODEL_VALUE
        # After the step this rank's shards are what it gathers from.
        (step, _) = log.of("step", "optimizer")
        left = {s.value for s in step.slots if s.kind == "out"}
        assert {s.value for s in gathered[2].slots if s.kind == "in"} <= left
        assert "collectives_not_waited" not in log.settings
    whole = [[e.get("out", "param:layers.0.up.weight").value for e in log.events if e.boundary == "<fsdp.all_gather layers.0>"] for log in logs]
    assert whole[0] == whole[1]


def test_mixed_precision_and_tensor_parallelism(tmp_path):
    logs = record_ranks(SHARDED % "train('mixed', mixed)\ntrain('tensor', tensor)", 2, tmp_path)
    assert assert_matched(logs) == {"0-1"}
    for log in logs:
        assert any(e.boundary.startswith("<funcol.") for e in log.events)
