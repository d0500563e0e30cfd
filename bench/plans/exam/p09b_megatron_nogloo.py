"""megatron-core's own layers on a processor: vocabulary-parallel embedding, column and row linear, vocabulary cross entropy."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from megatron.core import parallel_state as ps, tensor_parallel as tp
from megatron.core.transformer.transformer_config import TransformerConfig

WORLD = 2
DIMS = dict(batch=2, seq=3, hidden=8, ffn=12, vocab=8)

class Logical(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.emb = nn.Embedding(d["vocab"], d["hidden"])
        self.norm = nn.LayerNorm(d["hidden"])
        self.up, self.down = nn.Linear(d["hidden"], d["ffn"]), nn.Linear(d["ffn"], d["hidden"])
        self.out = nn.Linear(d["hidden"], d["vocab"], bias=False)
    def forward(self, ids, t):
        x = self.emb(ids).transpose(0, 1)
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return F.cross_entropy(self.out(x).flatten(0, 1), t.transpose(0, 1).flatten())

class Model(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        init = nn.init.normal_
        self.emb = tp.VocabParallelEmbedding(d["vocab"], d["hidden"], init_method=init, config=c)
        self.norm = nn.LayerNorm(d["hidden"])
        self.up = tp.ColumnParallelLinear(d["hidden"], d["ffn"], config=c, init_method=init, gather_output=False)
        self.down = tp.RowParallelLinear(d["ffn"], d["hidden"], config=c, init_method=init, bias=True,
                                         input_is_parallel=True, skip_bias_add=False)
        self.out = tp.ColumnParallelLinear(d["hidden"], d["vocab"], config=c, init_method=init, bias=False,
                                           gather_output=False)
    def forward(self, ids, t):
        x = self.emb(ids).transpose(0, 1)
        h, _ = self.up(self.norm(x))
        h, _ = self.down(F.gelu(h))
        logits, _ = self.out(x + h)
        return tp.vocab_parallel_cross_entropy(logits, t.transpose(0, 1).contiguous()).mean()

def train(m, d):
    ids, t = (torch.randint(0, d["vocab"], (d["batch"], d["seq"])) for _ in "xy")
    params = dict(m.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        loss = m(ids, t)
        loss.backward()
        r = {"loss": loss.detach(), **{"grad:" + n: p.grad for n, p in params.items()}}
        opt.step()
        return r | {"new:" + n: p for n, p in params.items()}
    return dict(state=params, tokens=dict(ids=ids, t=t), step=step)

def logical(d):
    return train(Logical(d), d)

CUT = {"emb.weight": 0, "up.weight": 0, "up.bias": 0, "down.weight": 1, "out.weight": 0}

def plan(rank, d):
    ps.initialize_model_parallel(tensor_model_parallel_size=WORLD, create_gloo_process_groups=False)
    c = TransformerConfig(num_layers=1, hidden_size=d["hidden"], num_attention_heads=2, use_cpu_initialization=True,
                          params_dtype=torch.get_default_dtype())
    def place(name, full):
        return full.chunk(WORLD, CUT[name])[rank] if name in CUT else full
    return dict(train(Model(d, c), d), place=place)
