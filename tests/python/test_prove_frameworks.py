"""`opguard prove` on what frameworks do: DTensor outputs, pipelines, groups of other backends, DDP's buckets, tensors with gaps."""

import json
import subprocess
import sys

import pytest

from conftest import binary
from test_prove_capture import COMMAND, DRIVER, line

pytest.importorskip("torch")
pipelining = pytest.importorskip("torch.distributed.pipelining")
OPGUARD = binary("opguard")

# A table cut over two ranks; its gradient is gathered. `rows`, which has no state's name, stays cut.
TABLE = """import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
DIMS, WORLD = dict(rows=4, width=4), 2
def build(d, w, x, out):
    def step():
        rows = (w * x).sum(1).tanh()
        loss = (rows * rows).sum()
        loss.backward()
        return out(w, rows, loss)
    return dict(state={"w": w, "x": x}, tokens={}, step=step)
def logical(d):
    w, x = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    return build(d, w, x, lambda w, rows, loss: {"grad:w": w.grad, "rows": torch.stack([rows, rows], 1), "loss": loss})
def gathered(w):
    return [Replicate()], w.grad
def plan(rank, d):
    mesh = init_device_mesh("cpu", (2,))
    cut = lambda **how: DTensor.from_local(torch.randn(2, 4, **how), mesh, [Shard(0)], run_check=False)
    w, x = cut().requires_grad_(), cut()
    def out(w, rows, loss):
        where, gradient = gathered(w)
        pairs = torch.stack([rows, rows], 1)
        return {"grad:w": gradient.redistribute(mesh, where), "rows": pairs, "loss": loss.redistribute(mesh, [Replicate()])}
    return build(d, w, x, out)
"""

# Each pair of ranks holds one expert, cut in two: no placements say which expert.
EXPERT = """import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
DIMS, WORLD = dict(width=4), 4
def logical(d):
    w = torch.randn(2, 4, 3)
    return dict(state={"w": w}, tokens={}, step=lambda: {"new:w": w * w})
def plan(rank, d):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("expert", "tensor"))["tensor"]
    w = DTensor.from_local(torch.randn(2, 3), mesh, [Shard(0)], run_check=False)
    def place(name, full):
        return full[rank // 2].chunk(2)[rank % 2]
    return dict(state={"w": w}, tokens={}, step=lambda: {"new:w": w * w}, place=place)
"""

# STAGES is how many, of four layers; HELD the stages of each rank.
PIPELINE = """import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
from torch.distributed import pipelining
from torch.distributed.pipelining import PipelineStage
DIMS, WORLD = dict(batch=4, width=3, micro=4), 2
def loss_of(y, t):
    return (y - t).square().mean()
def layers(d):
    return nn.ModuleList([nn.Sequential(nn.Linear(d["width"], d["width"]), nn.Tanh()) for _ in range(4)])
def finish(p, found):
    for name, one in p.items():
        found["grad:" + name] = one.grad
    return found
def logical(d):
    m, x, t = layers(d), torch.randn(d["batch"], d["width"]), torch.randn(d["batch"], d["width"])
    p = dict(m.named_parameters())
    def step():
        loss = loss_of(nn.Sequential(*m)(x), t)
        loss.backward()
        return finish(p, {"loss": loss.detach()})
    return dict(state=dict(p, x=x, t=t), tokens={}, step=step)
def plan(rank, d):
    m, x, t = layers(d), torch.randn(d["batch"], d["width"]), torch.randn(d["batch"], d["width"])
    n, per = STAGES, 4 // STAGES
    stages, p = [], {}
    for i in HELD[rank]:
        held = range(per * i, per * i + per)
        p.update({f"{k}.{name}": one for k in held for name, one in m[k].named_parameters()})
        like = torch.randn(1, d["width"], requires_grad=True)
        stages.append(PipelineStage(nn.Sequential(*[m[k] for k in held]), i, n, torch.device("cpu")SHAPES))
    schedule = pipelining.NAME(stages[0] if n == 2 else stages, n_microbatches=d["micro"], loss_fn=loss_of)
    def step():
        losses = []
        last = any(stage.is_last for stage in stages)
        schedule.step(*([x] if rank == 0 else []), **(dict(target=t, losses=losses) if last else {}))  # RUN
        return finish(p, {"loss": torch.stack(losses).mean()} if last else {})
    return dict(state=dict(p, x=x, t=t), tokens={}, step=step)
"""

# What a step does for the sum over the ranks is DO; SETUP comes before it.
SUM = """import torch, torch.distributed as dist
from torch.distributed import all_gather_object, broadcast_object_list, new_group
DIMS, WORLD = dict(rows=4), 2
def logical(d):
    x = torch.randn(d["rows"], 4)
    return dict(state={"x": x}, tokens={}, step=lambda: {"out": x.sum(0)})
def plan(rank, d):
    x = torch.randn(d["rows"] // 2, 4)
    group = None
    SETUP
    def step():
        out = x.sum(0)
        DO
        return {"out": out}
    return dict(state={"x": x}, tokens={}, step=step, place=lambda name, full: full.chunk(2)[rank])
"""

# Two micro-batches, DDP sums up in each: its buckets would be made anew between them.
DDP = """import torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
DIMS, WORLD = dict(batch=4, width=3), 2
def net(d):
    return nn.Sequential(nn.Linear(d["width"], 4), nn.Tanh(), nn.Linear(4, 2))
def build(d, m, run, x, n):
    p = dict(m.named_parameters())
    def step():
        total = torch.zeros(())
        for part in x.chunk(2):
            loss = run(part).square().mean() / 2
            loss.backward()
            total += loss.detach()
        if n > 1:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
        return {"loss": total, **{"grad:" + name: one.grad for name, one in p.items()}}
    return dict(state=dict(p, x=x), tokens={}, step=step)
def logical(d):
    m = net(d)
    return build(d, m, m, torch.randn(d["batch"], d["width"]), 1)
def plan(rank, d):
    m = net(d)
    def place(name, full):
        return torch.cat([part.chunk(2)[rank] for part in full.chunk(2)]) if name == "x" else full
    return dict(build(d, m, DistributedDataParallel(m), torch.randn(d["batch"] // WORLD, d["width"]), WORLD), place=place)
"""


def changed(text, *pairs):
    for old, new in zip(pairs[::2], pairs[1::2]):
        assert old in text, old
        text = text.replace(old, new)
    return text


def placed(given):
    return changed(TABLE, "    return build(d, w, x, out)\n", f"    return dict(build(d, w, x, out), place=lambda name, full: {given})  # PLACE\n")


def summed(do="dist.all_reduce(out, group=group)", setup="pass"):
    return changed(SUM, "SETUP", setup, "DO", do)


# name -> stages, and which of them each rank has
LOOPED, V = "[[0, 2], [1, 3]]", "[[0, 3], [1, 2]]"
SCHEDULES = {name: (4, LOOPED) for name in ("ScheduleInterleaved1F1B", "ScheduleLoopedBFS", "ScheduleInterleavedZeroBubble")}
SCHEDULES.update({name: (2, "[[0], [1]]") for name in ("ScheduleGPipe", "Schedule1F1B")}, ScheduleZBVZeroBubble=(4, V), ScheduleDualPipeV=(4, V))
SCHEDULES = {name: given for name, given in SCHEDULES.items() if hasattr(pipelining, name)}


def pipeline(name, shapes=", input_args=like if i else like.detach(), output_args=like"):
    stages, held = SCHEDULES[name]
    return changed(PIPELINE, "SHAPES", shapes, "NAME", name, "STAGES", str(stages), "HELD", held)


OBJECTS = {
    "all_gather_object": "all_gather_object([None, None], rank)",
    "gather_object": "dist.gather_object(rank, [None, None] if rank == 0 else None)",
    "broadcast_object_list": "broadcast_object_list([rank], 0)",
    "scatter_object_list": "dist.scatter_object_list([None], [1, 2])",
    "send_object_list": "dist.send_object_list([rank], 1 - rank)",
    "recv_object_list": "dist.recv_object_list([None], 1 - rank)",
}
OWN_OBJECTS = """group, found = dist.new_group([0]) if rank == 0 else dist.new_group([1], use_local_synchronization=True), [None]
    all_gather_object(found, {"scale": 1.0}, group=group)
    broadcast_object_list(found, rank, group=group)"""

GAPS = {  # operator -> what is refused by NCCL or by gloo; `wide` is a column
    "allreduce": "wide.copy_(out); dist.all_reduce(wide); out = wide",
    "send": "dist.send(wide, 1 - rank); dist.recv(out, 1 - rank)",
    "recv": "dist.isend(out, 1 - rank); dist.irecv(wide, 1 - rank).wait(); out = out + wide",
    "broadcast": "dist.broadcast(wide, 0)",
    "allgather_base": "dist.all_gather_into_tensor(torch.empty(4, 4).t(), torch.ones(2, 4))",
    "reduce_scatter_base": "dist.reduce_scatter_tensor(torch.ones(2, 4), torch.ones(4, 4).t())",
    "alltoall_base": "dist.all_to_all_single(torch.empty(4, 4), torch.ones(4, 4).t())",
    "alltoall": "dist.all_to_all([torch.empty(4, 4) for _ in range(2)], [torch.ones(4, 4).t() for _ in range(2)])",
}
CHANNELS_LAST = "image = out.view(1, 2, 2, 1).expand(1, 2, 2, 2).contiguous(memory_format=torch.channels_last); dist.all_reduce(image); out = image[..., 0].reshape(4)"
HELPED = changed(SUM, "SETUP", "pass", "DO", "take(out, 1 - rank)  # CALLER", "def logical", "def take(x, other):\n    dist.recv(x, other)  # HELPER\ndef logical")
DDP_OPTIONS = {"plain": "", "static": ", static_graph=True", "views": ", gradient_as_bucket_view=True", "unused": ", find_unused_parameters=True"}

# name -> a plan that is proved
PROVED = {
    "table": TABLE,
    "place_agrees": placed("full.chunk(2)[rank]"),
    "place_none": placed("None"),
    "expert": EXPERT,
    "group_gloo": summed(setup='group = new_group(backend="gloo")'),
    "group_nccl": summed(setup='group = new_group([0, 1], backend="cpu:gloo,cuda:nccl")'),
    "own_objects": summed("out = out * found[0]['scale']; dist.all_reduce(out)", OWN_OBJECTS),
    "list_with_gaps": summed("parts = torch.empty(4, 2); dist.all_gather([parts[:, 0], parts[:, 1]], out); out = parts.sum(1)"),
    "channels_last": summed(CHANNELS_LAST),
    **{"schedule_" + name: pipeline(name) for name in SCHEDULES},
    **{"ddp_" + name: changed(DDP, "DistributedDataParallel(m)", f"DistributedDataParallel(m{option})") for name, option in DDP_OPTIONS.items()},
}

# name -> a plan that is refuted, and words of what is said
REFUTED = {
    "table_twice": (changed(TABLE, "[Replicate()], w.grad", "[Replicate()], w.grad * 2"), "grad:w of rank 0"),
    "table_longer": (changed(TABLE, "pairs = torch.stack([rows, rows], 1)", "pairs = torch.stack([rows, rows, rows], 1)"),
                     "rows on rank 1 has element 8 of a tensor, the model's has 8 elements"),
    "group_alone": (summed(setup='group = [dist.new_group([one], backend="gloo") for one in (0, 1)][rank]'), "out of rank 0"),
    "schedule_targets": (changed(pipeline("Schedule1F1B"), "target=t", "target=t * 2"), "loss of rank 1"),
    "schedule_skipped": (changed(pipeline("Schedule1F1B"), "losses = []", "losses = [x.sum()]", "        schedule.step(", "        if rank == 0: schedule.step("), "waits for a message of rank 1"),
    "ddp_sum": (changed(DDP, "dist.ReduceOp.AVG", "dist.ReduceOp.SUM"), "loss of rank 0"),
    "decorated": (summed("parts = torch.empty(8); dist.all_gather_into_tensor(parts, out); out = parts.view(2, 4)[0] * 2"), "out of rank 0"),
    "helped": (HELPED, "rank 0 waits for a message of rank 1 at helped.py:%d (called from helped.py:%d)" % (line(HELPED, "# HELPER"), line(HELPED, "# CALLER"))),
}  # fmt: skip

DISAGREE = "rank 0: place('w', full) gives other elements than the DTensor has by its placements, S(0): give the same, or None"
ALONE = "ranks are captured one by one, so objects of other ranks are not there"
# name -> a plan that is bad input, words of the line that is told, and of what is said
BAD = {
    "partial": (changed(TABLE, "loss.redistribute(mesh, [Replicate()])", "loss"), "def step()",
                "rank 0: step() returns 'loss' with the placements P(sum): each rank has a part of a sum; redistribute it"),
    "place_whole": (placed("full"), "# PLACE", DISAGREE),
    "place_other": (placed("full.chunk(2)[1 - rank]"), "# PLACE", DISAGREE),
    "expert_placeless": (changed(EXPERT, ", place=place", ""), "def plan(", "rank 0: 'w' is a DTensor of [4, 3], the model's is [2, 4, 3]"),
    "schedule_shapes": (pipeline("Schedule1F1B", ""), "# RUN", "rank 0: step(): stage 0 of the pipeline would ask other ranks for shapes"),
    "schedule_one_shape": (pipeline("Schedule1F1B", ", **({} if i else dict(input_args=like.detach(), output_args=like))"), "# RUN", "give its PipelineStage input_args and output_args"),
    "backend": (summed(setup='group = new_group(backend="glo")'), '"glo"', "ValueError: no such backend: glo"),
    "object_early": (summed(setup=OBJECTS["all_gather_object"] + "  # CALL"), "# CALL", "rank 0: plan(0, d): all_gather_object: " + ALONE),
    # Nor is it gone on without them.
    **{name: (summed(f"try: {call}  # CALL\n        except Exception: pass"), "# CALL", f"rank 0: step(): {name}: {ALONE}") for name, call in OBJECTS.items()},
    **{"gap_" + name: (summed(f"wide = torch.zeros(4, 2)[:, 0]; {do}  # CALL"), "# CALL", f"rank 0: step(): {name} of a tensor that is not contiguous: [4") for name, do in GAPS.items()},
}  # fmt: skip


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """The folder of all plans' files. One process imports torch; each plan is captured in a fork of it."""
    folder = tmp_path_factory.mktemp("plans")
    plans = {**PROVED, **{name: given[0] for name, given in {**REFUTED, **BAD}.items()}}
    for name, text in plans.items():
        (folder / f"{name}.py").write_text(text)
    done = subprocess.run([sys.executable, "-c", DRIVER, str(COMMAND.parent), json.dumps([[name] for name in plans])], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def checked(folder, name):
    """(exit code, what is said) of what was captured"""
    assert (folder / f"{name}.exit").read_text() == "0", (folder / f"{name}.err").read_text()
    ran = subprocess.run([OPGUARD, "prove", "--captured", folder / f"{name}.files"], capture_output=True, text=True, timeout=100)
    return ran.returncode, ran.stdout + ran.stderr


def side(folder, name, rank=0):
    return json.loads((folder / f"{name}.files" / f"rank-{rank}.json").read_text())


@pytest.mark.parametrize("name", PROVED)
def test_right_plans_are_proved(captured, name):
    code, said = checked(captured, name)
    assert code == 0, said


@pytest.mark.parametrize("name", REFUTED)
def test_wrong_plans_are_refuted(captured, name):
    code, said = checked(captured, name)
    assert code == 1 and REFUTED[name][1] in said, said


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_at_the_users_line(captured, name):
    text, words, reason = BAD[name]
    said = (captured / f"{name}.err").read_text()
    assert (captured / f"{name}.exit").read_text() == "3" and reason in said and said.count("\n") == 1, said
    assert said.startswith(f"{name}.py:{line(text, words)}: "), said


def test_outputs_say_their_place_where_their_state_does_not(captured):
    for rank in (0, 1):
        found = side(captured, "table", rank)
        assert found["place"]["w"] == list(range(8 * rank, 8 * rank + 8))
        assert found["output_place"] == {"grad:w": list(range(16)), "loss": [0], "rows": list(range(4 * rank, 4 * rank + 4))}
    assert side(captured, "expert")["output_place"] == {}


def test_a_pipelines_vote_is_no_part_of_the_step(captured):
    sent = [node for node in side(captured, "schedule_Schedule1F1B")["nodes"] if node["op"].startswith("c10d.")]
    assert sent and not any("int32" in json.dumps(node["args"]) for node in sent)


def test_lines_of_decorators_are_nobodys(captured):
    stacks = side(captured, "decorated")["stacks"]
    assert {frame[0] for stack in stacks for frame in stack} == {str(captured / "decorated.py")}
