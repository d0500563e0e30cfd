"""Checkpoints that others write: torch.distributed.checkpoint, pickles, a library's threads."""

import pytest
from test_training_observations import observe, rows

SHARDED = """
import os, tempfile, torch, torch.nn as nn, torch.distributed as dist, torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed._composable.fsdp import fully_shard
folder = tempfile.mkdtemp()
dist.init_process_group('gloo', init_method='file://' + folder + '/store', rank=0, world_size=1)
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
fully_shard(net, mesh=init_device_mesh('cpu', (1,)))
optimizer = torch.optim.Adam(net.parameters())
def step():
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
step()
kept = {name: value.clone() for name, value in net.state_dict().items()}
checkpoint.save({'model': net.state_dict(), 'optimizer': optimizer.state_dict()}, checkpoint_id=folder + '/whole')
writing = checkpoint.async_save({'model': net.state_dict()}, checkpoint_id=folder + '/later')
step()
writing.result()
checkpoint.save({'model': kept}, storage_writer=checkpoint.FileSystemWriter(folder + '/old'))
dist.destroy_process_group()
"""


@pytest.mark.filterwarnings("ignore")
def test_sharded_checkpoints(tmp_path):
    log = observe(SHARDED, tmp_path / "log")
    found = rows(log, "save", "path", "tensors", "live", "same", "unlike")
    names = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [[row[0].rpartition("/")[2], *row[1:]] for row in found] == [
        ["whole", 16, 4, 4, []],
        ["later", 4, 4, 4, []],  # as it was when it was given, and only once
        ["old", 4, 4, 0, names],
    ]
    assert {row[0] for row in rows(log, "parameter", "placement")} == {"Shard(dim=0)"}
    assert "opguard_faults" not in log.settings


def test_a_pickled_tensor_is_no_checkpoint(tmp_path):
    source = """
import io, pickle, threading, torch, torch.nn as nn
net = nn.Linear(2, 2)
net(torch.ones(1, 2))
pickle.dumps(net), pickle.dumps(torch.ones(3)), pickle.dumps(torch.ones(3).untyped_storage())
thread = threading.Thread(target=torch.save, args=(net.weight.detach().clone(), io.BytesIO()))
thread.start(), thread.join()
torch.save(net, io.BytesIO())
"""
    assert rows(observe(source, tmp_path), "save", "tensors", "same") == [[2, 2]]
