"""A difference that begins on one rank of several: where it began, and by which collective it came to the others."""
import json

import pytest

from distributed import run_ranks

pytest.importorskip("torch.distributed")

# `fault` ranks draw other weights for their loss: an operator's argument. Everything else is the same text.
MODEL = """
fault = %r
torch.manual_seed(3)
w = torch.nn.Parameter(torch.randn(6, 6))
optimizer = torch.optim.SGD([w], lr=.1)
x = torch.randn(4, 6) + rank
def loss_of(h):
    y = og("model.weigh", torch.mul)(og("model.product", torch.matmul)(h, w), 1.5 if rank in fault else 1.0)
    return og("model.mean", torch.mean)(og("model.square", torch.square)(y))
def backward(loss):
    og("train.backward", loss.backward)()
def step():
    og("train.step", optimizer.step)()
    optimizer.zero_grad()
"""

REDUCED = MODEL + """
for _ in range(2):
    backward(loss_of(x))
    og("train.reduce", dist.all_reduce)(w.grad)
    step()
"""

ASYNCHRONOUS = MODEL + """
for _ in range(2):
    backward(loss_of(x))
    flight = og("train.launch", dist.all_reduce)(w.grad, async_op=True)
    og("train.other", torch.relu)(x)
    flight.wait()
    step()
"""

# Two data-parallel groups beside each other: the one of the fault alone receives it.
GROUPS = MODEL + """
groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
for _ in range(2):
    backward(loss_of(x))
    og("train.reduce", dist.all_reduce)(w.grad, group=groups[rank // 2])
    step()
"""

# A chain of messages: each rank works on what the one before it sent.
CHAIN = MODEL + """
for _ in range(2):
    h = x
    if rank > 0:
        h = og("pipe.empty", torch.zeros)(4, 6)
        og("pipe.recv", dist.recv)(h, rank - 1)
    loss = loss_of(h)
    if rank + 1 < world:
        og("pipe.send", dist.send)((h * loss.detach()).contiguous(), rank + 1)
    backward(loss)
    step()
"""

BUCKETS = MODEL + """
from torch.nn.parallel import DistributedDataParallel
net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6))
ddp = DistributedDataParallel(net, bucket_cap_mb=0.0001)
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
for _ in range(2):
    backward(loss_of(og("model.net", ddp)(x)))
    step()
"""

SHARDED = MODEL + """
from torch.distributed.fsdp import fully_shard
net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6))
for layer in net: fully_shard(layer)
fully_shard(net)
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
for _ in range(2):
    backward(loss_of(og("model.net", net)(x)))
    step()
"""


@pytest.fixture
def compared(opguard, tmp_path):
    """compared(source, world, fault ranks) -> (JSON, what the terminal shows)."""

    def compare(source, world, fault):
        run_ranks(source % (set(),), world, tmp_path / "a")
        run_ranks(source % (set(fault),), world, tmp_path / "b")
        out = tmp_path / "answer.json"
        done = opguard("align", tmp_path / "a", tmp_path / "b", "--json", out, "--color", "never",
                       "--sarif", tmp_path / "out.sarif", "--html", tmp_path / "out.html")  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        return json.loads(out.read_text()), done.stdout

    return compare


def roles(answer):
    return {share["rank"]: share["role"] for share in answer["ranks"]}


def assert_origin(answer, rank):
    assert answer["verdict"] == "diverged" and answer["origin_ranks"] == [rank]
    assert answer["pivot"]["boundary"] == "model.weigh" and answer["pivot"]["kind"] == "scalar"
    share = answer["ranks"][rank]
    assert share["boundary"] == "model.weigh" and share["a"]["boundary"] == share["b"]["boundary"] == "model.weigh"


@pytest.mark.parametrize("world,fault", [(2, 0), (4, 2)])
def test_an_all_reduce_brings_it_to_the_others(compared, tmp_path, world, fault):
    answer, text = compared(REDUCED, world, {fault})
    assert_origin(answer, fault)
    for share in answer["ranks"]:
        if share["rank"] == fault:
            continue
        assert (share["role"], share["boundary"], share["from"]) == ("received", "train.reduce", [fault])
        assert (share["group"], share["sequence"], share["step"]) == (f"0-{world - 1}", 1, 0)
        assert share["slot"] == "arg0" and share["a"]["line"] == share["b"]["line"] > 0
    assert f"rank {fault}: began here: " in text and f"received from rank {fault} by " in text
    said = "ranks 0, 1, 3" if world == 4 else "rank 1"
    assert f"{said}: received" in text
    # For code review: the pivot's own lane, then a flow for those that received it.
    [result, *_] = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    [own, received] = result["codeFlows"][0]["threadFlows"]
    assert received["id"] == said and received["message"]["text"].startswith(f"{said}: received from rank {fault} by ")
    [step] = received["locations"]
    assert step["location"]["logicalLocations"][0]["fullyQualifiedName"] == "train.reduce"
    # The page: the same words, each leads to its row.
    page = (tmp_path / "out.html").read_text().split('id="data">')[1].split("</script>")[0]
    shares = json.loads(page.replace("\\u003c", "<"))["head"]["ranks"]
    assert [(s["ranks"], s["role"]) for s in shares] == [(f"rank {fault}", "origin"), (said, "received")]
    assert all(s["row"] for s in shares)


def test_the_end_of_an_asynchronous_one(compared):
    answer, _ = compared(ASYNCHRONOUS, 2, {1})
    assert_origin(answer, 1)
    received = answer["ranks"][0]
    assert (received["role"], received["boundary"], received["event"]) == ("received", "train.launch", "collective")
    assert (received["from"], received["sequence"]) == ([1], 1)


def test_a_group_of_its_own(compared):
    answer, text = compared(GROUPS, 4, {3})
    assert_origin(answer, 3)
    assert roles(answer) == {0: "equal", 1: "equal", 2: "received", 3: "origin"}
    assert answer["ranks"][2]["group"] == "2-3" and answer["ranks"][2]["from"] == [3]
    assert "ranks 0, 1: equal" in text


def test_messages_from_rank_to_rank(compared):
    answer, _ = compared(CHAIN, 4, {1})
    assert_origin(answer, 1)
    assert roles(answer) == {0: "equal", 1: "origin", 2: "received", 3: "received"}
    assert [(s["boundary"], s["group"], s["from"]) for s in answer["ranks"][2:]] == [
        ("pipe.recv", "0-3:1>2", [1]), ("pipe.recv", "0-3:2>3", [2])]  # fmt: skip


def test_buckets_of_the_reducer(compared):
    answer, _ = compared(BUCKETS, 2, {1})
    assert_origin(answer, 1)
    received = answer["ranks"][0]
    assert (received["role"], received["boundary"], received["from"]) == ("received", "<ddp.bucket>", [1])
    assert received["slot"].startswith("grad:")


def test_sharded_gradients(compared):
    answer, _ = compared(SHARDED, 2, {1})
    assert_origin(answer, 1)
    received = answer["ranks"][0]
    assert (received["role"], received["from"]) == ("received", [1])
    assert received["boundary"].startswith("<fsdp.reduce")


def test_every_rank_that_ran_it_is_an_origin(compared):
    answer, text = compared(REDUCED, 2, {0, 1})
    assert answer["origin_ranks"] == [0, 1] and "ranks 0, 1: began here: " in text
    assert answer["pivot"]["rank"] == 0
