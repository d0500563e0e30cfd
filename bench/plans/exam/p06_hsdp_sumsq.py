"""FSDP2, hybrid: 2 replicas of 2 shards; clip_grad_norm_ of DTensors; AdamW."""
import torch
import torch.nn.functional as F
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor
from torch.distributed.fsdp import fully_shard
from mlp import TOKENS, Net, data

WORLD, MESH = 4, (2, 2)
DIMS = dict(batch=8, inp=6, hidden=8, ffn=10, classes=4)

def train(net, d, n, mean):
    x, t = data(d, n)
    params = dict(net.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        norm = sum(p.grad.pow(2).sum() for p in net.parameters()).sqrt()
        if hasattr(norm, "full_tensor"):
            norm = norm.full_tensor()
        for p in net.parameters():
            p.grad.mul_((0.5 / (norm + 1e-6)).clamp(max=1.0))
        r = {"loss": mean(loss.detach()), "gnorm": norm, **{"grad:" + n: p.grad for n, p in params.items()}}
        opt.step()
        return r | {"new:" + n: p for n, p in params.items()}
    return dict(state=dict(params, x=x), tokens=dict(t=t), step=step)

def logical(d):
    return train(Net(d), d, d["batch"], lambda l: l)

def plan(rank, d):
    net = Net(d)
    mesh = init_device_mesh("cpu", MESH, mesh_dim_names=("replicate", "shard")[-len(MESH):])
    fully_shard(net.up, mesh=mesh)
    fully_shard(net.down, mesh=mesh)
    fully_shard(net, mesh=mesh)
    params = dict(net.named_parameters())
    def mean(l):
        l = l / WORLD
        dist.all_reduce(l)
        return l
    def place(name, full):
        if name in ("x", "t"):
            return full.chunk(WORLD)[rank]
        return distribute_tensor(full, mesh, params[name].placements, src_data_rank=None).to_local()
    return dict(train(net, d, d["batch"] // WORLD, mean), place=place)
