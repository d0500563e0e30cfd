"""transformers' ConvNeXt under HSDP (fully_shard on a mesh of two by two): two micro-batches, gradient norm, AdamW."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import ConvNextConfig, ConvNextForImageClassification

WORLD = ("replica", "shard")
DIMS = dict(replica=2, shard=2, micros=2, batch=8, size=4, classes=4, hidden=4)
TOKENS = "classes"


def model(d):
    return ConvNextForImageClassification(ConvNextConfig(
        num_channels=2, patch_size=2, num_stages=2, hidden_sizes=[d["hidden"], 2 * d["hidden"]], depths=[1, 1],
        image_size=d["size"], num_labels=d["classes"], drop_path_rate=0.0, layer_scale_init_value=0.5))


def build(net, d, parts):
    params = dict(net.named_parameters())
    rows = d["batch"] // parts
    images = torch.randn(d["micros"], rows, 2, d["size"], d["size"])
    labels = torch.zeros(d["micros"], rows, dtype=torch.long)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, eps=1e-3, weight_decay=0.1, foreach=False)

    def step():
        optimizer.zero_grad()
        total = 0
        for i in range(d["micros"]):
            if parts > 1:
                last = i == d["micros"] - 1
                net.set_requires_all_reduce(last)
            logits = net(pixel_values=images[i]).logits
            loss = F.cross_entropy(logits, labels[i], label_smoothing=0.1) / d["micros"]
            loss.backward()
            total = total + loss.detach()
        if parts > 1:
            torch.distributed.all_reduce(total)
            total /= parts
        norm = torch.nn.utils.get_total_norm([p.grad for p in params.values()], foreach=False)
        if parts > 1:
            norm = norm.full_tensor()
        grads = {"grad:" + n: p.grad.clone() for n, p in params.items()}
        optimizer.step()
        return {"loss": total, "norm": norm, **grads, **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, "images": images}, tokens={"labels": labels}, step=step)


def logical(d):
    return build(model(d), d, 1)


def plan(rank, d):
    net = model(d)
    mesh = init_device_mesh("cpu", (d["replica"], d["shard"]), mesh_dim_names=WORLD)
    for m in list(net.modules()):
        if type(m).__name__ == "ConvNextStage":
            fully_shard(m, mesh=mesh)
    fully_shard(net, mesh=mesh, reshard_after_forward=False)
    parts = d["replica"] * d["shard"]

    def place(name, full):
        return full.chunk(parts, 1)[rank] if name in ("images", "labels") else None
    return dict(build(net, d, parts), place=place)
