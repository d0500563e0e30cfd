"""megatron-core's ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding and vocab_parallel_cross_entropy with
sequence parallelism, on two by two ranks; norms' gradients by finalize-like code of our own."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = ("dp", "tp")
DIMS = dict(dp=2, tp=2, batch=4, seq=4, vocab=4, width=4, inner=4, layers=2)


class LogicalNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        w = d["width"]
        self.emb = nn.Embedding(d["vocab"], w)
        self.pos = nn.Parameter(torch.randn(d["seq"], 1, w))
        self.norm = nn.ModuleList(nn.LayerNorm(w) for _ in range(d["layers"]))
        self.up = nn.ModuleList(nn.Linear(w, d["inner"]) for _ in range(d["layers"]))
        self.down = nn.ModuleList(nn.Linear(d["inner"], w) for _ in range(d["layers"]))
        self.head = nn.Linear(w, d["vocab"], bias=False)

    def losses(self, ids, labels):
        x = self.emb(ids).transpose(0, 1) + self.pos
        for norm, up, down in zip(self.norm, self.up, self.down):
            x = x + down(F.gelu(up(norm(x))))
        logits = self.head(x)
        return F.cross_entropy(logits.flatten(0, 1), labels.t().flatten(), reduction="none").view(labels.t().shape)


def step_of(net, params, ids, labels, loss_of, finish):
    def step():
        loss = loss_of(net.losses(ids, labels))
        loss.backward()
        loss = finish(loss.detach().clone())
        return {"loss": loss, **{"grad:" + n: p.grad for n, p in params.items()}}
    return step


def logical(d):
    net = LogicalNet(d)
    params = dict(net.named_parameters())
    ids = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    labels = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    return dict(state=params, tokens={"ids": ids, "labels": labels},
                step=step_of(net, params, ids, labels, lambda t: t.mean(), lambda loss: loss))


def plan(rank, d):
    from megatron.core import ModelParallelConfig, parallel_state
    from megatron.core.tensor_parallel import (ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding,
                                               vocab_parallel_cross_entropy)
    torch.cuda.current_device = lambda: torch.device("cpu")  # megatron makes its buffers there
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=d["tp"])
    tp_group = parallel_state.get_tensor_model_parallel_group()
    dp_group = parallel_state.get_data_parallel_group()
    data, part = divmod(rank, d["tp"])
    config = ModelParallelConfig(tensor_model_parallel_size=d["tp"], sequence_parallel=True, use_cpu_initialization=True,
                                 params_dtype=torch.get_default_dtype(), gradient_accumulation_fusion=False)

    def init(t):
        return nn.init.normal_(t)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            w = d["width"]
            self.emb = VocabParallelEmbedding(d["vocab"], w, init_method=init, config=config,
                                              reduce_scatter_embeddings=True)
            self.pos = nn.Parameter(torch.randn(d["seq"] // d["tp"], 1, w))
            self.norm = nn.ModuleList(nn.LayerNorm(w) for _ in range(d["layers"]))
            self.up = nn.ModuleList(ColumnParallelLinear(w, d["inner"], config=config, init_method=init,
                                                         gather_output=False) for _ in range(d["layers"]))
            self.down = nn.ModuleList(RowParallelLinear(d["inner"], w, config=config, init_method=init, bias=True,
                                                        input_is_parallel=True, skip_bias_add=False)
                                      for _ in range(d["layers"]))
            self.head = ColumnParallelLinear(w, d["vocab"], config=config, init_method=init, bias=False,
                                             gather_output=False)

        def losses(self, ids, labels):
            x = self.emb(ids) + self.pos
            for norm, up, down in zip(self.norm, self.up, self.down):
                y, _ = up(norm(x))
                y, _ = down(F.gelu(y))
                x = x + y
            logits, _ = self.head(x)
            return vocab_parallel_cross_entropy(logits, labels.t().contiguous())

    net = Net()
    params = dict(net.named_parameters())
    ids = torch.zeros(d["batch"] // d["dp"], d["seq"], dtype=torch.long)
    labels = torch.zeros(d["batch"] // d["dp"], d["seq"], dtype=torch.long)

    def finish(loss):
        for n, p in params.items():
            if n.startswith("norm") or (n.startswith("down") and n.endswith("bias")):
                dist.all_reduce(p.grad, group=tp_group)
            dist.all_reduce(p.grad, group=dp_group)
            p.grad /= d["dp"]
        dist.all_reduce(loss, group=dp_group)
        return loss / d["dp"]

    def place(name, full):
        if name in ("ids", "labels"):
            return full.chunk(d["dp"], 0)[data]
        if name.startswith(("emb", "up", "head", "pos")):
            return full.chunk(d["tp"], 0)[part]
        if name.startswith("down") and name.endswith("weight"):
            return full.chunk(d["tp"], 1)[part]
        return full
    return dict(state=params, tokens={"ids": ids, "labels": labels}, place=place,
                step=step_of(net, params, ids, labels, lambda t: t.mean(), finish))
