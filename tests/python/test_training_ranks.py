"""What is observed of trainings on several ranks."""

from distributed import rank_logs, run_ranks
from test_training_observations import OBSERVED, rows

EXCHANGE = """
from opguard import _rt
h = lambda t: _rt.hashes([t])[0]
pair = dist.new_group([0, 1])
x = torch.arange(4.) + rank
say(h(x)); dist.all_reduce(x); say(h(x))
work = dist.all_reduce(x, op=dist.ReduceOp.MAX, group=pair, async_op=True); work.wait()
out = [torch.zeros(4) for _ in range(world)]
dist.all_gather(out, x)
dist.broadcast(torch.zeros(600, 600), 0)
dist.barrier()
for _ in range(2):
    if rank == 0: dist.send(x + 1, 1, tag=3)
    else:
        got = torch.zeros(4)
        dist.recv(got, 0, tag=3)
sent, got = torch.full((2,), float(rank)), torch.zeros(2)
for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]): request.wait()
say(h(x + 1), h(sent), h(got))
"""


def test_collectives_and_messages(tmp_path):
    answers = run_ranks(EXCHANGE, 2, tmp_path, env=OBSERVED)
    logs = rank_logs(tmp_path, 2)
    for rank, log in enumerate(logs):
        given, left, last = answers[rank]
        sent_text, own, other = (int(word) for word in last.split())
        assert rows(log, "group") == [[rank, 2, "gloo"]] and log.observations[0].kind == "group"
        found = rows(log, "collective", "function", "group", "sequence", "reduction", "dtype", "shape", "given", "left", "asynchronous")
        assert found[0] == ["all_reduce", "0-1", 1, "SUM", "float32", [4], int(given), int(left), False]
        assert found[1][:6] == ["all_reduce", "0-1#1", 1, "MAX", "float32", [4]] and found[1][7:] == [int(left), True]
        assert found[2][:6] == ["all_gather", "0-1", 2, None, "float32", [4]] and None not in found[2][6:8]
        assert found[3] == ["broadcast", "0-1", 3, None, "float32", [600, 600], None, None, False]  # of more than 1 MiB
        assert found[4] == ["barrier", "0-1", 4, None, None, [], None, None, False]
        places = {words for (words,) in rows(log, "collective", "place")}
        assert all(words.startswith("<string>:") for words in places)
        messages = rows(log, "p2p", "function", "peer", "tag", "number", "dtype", "shape", "value")
        text = "send" if rank == 0 else "recv"
        assert messages[:2] == [[text, 1 - rank, 3, number, "float32", [4], sent_text] for number in (1, 2)]
        assert sorted(messages[2:]) == [["irecv", 1 - rank, 0, 1, "float32", [2], other], ["isend", 1 - rank, 0, 1, "float32", [2], own]]
    assert rows(logs[0], "collective", "left")[2] == rows(logs[1], "collective", "left")[2]


WRAPPED = """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer
torch.manual_seed(0)
net = DistributedDataParallel(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1)
for step in range(2):
    with net.no_sync():
        net(torch.ones(1, 2) + rank).sum().backward()
    net(torch.ones(1, 2) - rank).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_wrapped_models(tmp_path):
    run_ranks(WRAPPED, 2, tmp_path, env=OBSERVED)
    logs = rank_logs(tmp_path, 2)
    for log in logs:
        modules = rows(log, "module", "name", "type", "root")
        assert modules[0] == ["", "DistributedDataParallel", 0] and sorted(modules[1:]) == [["", "Sequential", 0], ["0", "Linear", 0], ["1", "Linear", 0]]
        parameters = rows(log, "parameter", "name", "root", "optimizer")
        assert parameters == [[name, 0, parameters[0][2]] for name in ("0.weight", "0.bias", "1.weight", "1.bias")]
        assert rows(log, "optimizer", "number", "type", "held", "strangers") == [[parameters[0][2], "ZeroRedundancyOptimizer", 4, 0]] * 2
        assert rows(log, "api", "flag", name="no_sync") == [[True], [False]] * 2
        assert rows(log, "api", "result", name="backward") == [[0.0]] * 4
        assert [row[0] for row in rows(log, "collective") if row[0] == "ddp.all_reduce"]
    one, two = (rows(log, "update", "value", "gradient") for log in logs)
    assert one == two and len(one) == 8


SHARDED = """
import torch.nn as nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
fully_shard(net, mesh=init_device_mesh("cpu", (2,)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net(torch.ones(1, 4) + rank).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_sharded_parameters(tmp_path):
    run_ranks(SHARDED, 2, tmp_path, env=OBSERVED)
    logs = rank_logs(tmp_path, 2)
    for log in logs:
        found = rows(log, "parameter", "name", "shape", "placement", "optimizer")
        shard = "Shard(dim=0)"
        assert found == [["0.weight", [4, 4], shard, 0], ["0.bias", [4], shard, 0], ["1.weight", [2, 4], shard, 0], ["1.bias", [2], shard, 0]]
        assert [row[8] for row in rows(log, "update")] == [True] * 8
    one, two = ([row[2] for row in rows(log, "update")] for log in logs)
    assert one[0] != two[0]
