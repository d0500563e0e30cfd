"""Small nets of speechbrain's layers: a Conformer encoder, its attention alone, or a light GRU, under speechbrain's masked losses."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import importlib.util
import types

import torch

# The packages' own __init__ import the trainer, all utilities and what those need (torchaudio, hyperpyyaml): the layers do without.
root = list(importlib.util.find_spec("speechbrain").submodule_search_locations)[0]
for name in ("", "utils", "dataio", "nnet", "nnet.loss", "processing", "decoders", "lobes", "lobes.models", "lobes.models.transformer"):
    whole = f"speechbrain.{name}".rstrip(".")
    sys.modules[whole] = types.ModuleType(whole)
    sys.modules[whole].__path__ = [os.path.join(root, *name.split("."))]
    if name:
        setattr(sys.modules[whole.rpartition(".")[0]], whole.rpartition(".")[2], sys.modules[whole])


class Missing(types.ModuleType):
    __version__, __path__ = "2.0.0", []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for name in ("torchaudio", "torchaudio.transforms", "torchaudio.functional", "hyperpyyaml", "joblib", "sentencepiece", "huggingface_hub", "ruamel", "ruamel.yaml"):
    sys.modules[name] = Missing(name)

from torch import nn

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--net", default="conformer"); o = p.parse_args()
oracle.setup(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        from speechbrain.nnet.attention import RelPosEncXL, RelPosMHAXL
        self.where, self.attend = RelPosEncXL(24), RelPosMHAXL(24, 2)

    def forward(self, x):
        return x + self.attend(x, x, x, pos_embs=self.where(x))[0]


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        from speechbrain.lobes.models.transformer.Conformer import ConformerEncoder
        from speechbrain.nnet.attention import RelPosEncXL
        self.where, self.encode = RelPosEncXL(24), ConformerEncoder(num_layers=1, d_model=24, d_ffn=32, nhead=2, kernel_size=3)

    def forward(self, x):
        return self.encode(x, pos_embs=self.where(x))[0]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        from speechbrain.nnet.linear import Linear
        from speechbrain.nnet.RNN import LiGRU
        self.run, self.out = LiGRU(24, input_shape=(4, 10, 24), num_layers=2, dropout=0.1), Linear(24, input_size=24)

    def forward(self, x):
        return self.out(self.run(x)[0])


from speechbrain.nnet.activations import Softmax
from speechbrain.nnet.losses import nll_loss

net = {"conformer": Conformer, "relpos": Attention, "ligru": Recurrent}[o.net]()
head = nn.Linear(24, 7)
everything = nn.ModuleList([net, head])
oracle.reinit(everything, std=0.2)
opt = torch.optim.Adam(everything.parameters(), lr=1e-2)
x, y, lengths = torch.randn(4, 10, 24), torch.randint(0, 7, (4, 10)), torch.tensor([1.0, 0.8, 0.5, 0.9])
say = Softmax(apply_log=True)
with oracle.record(o.dump):
    for step in range(3):
        loss = nll_loss(say(head(net(x))), y, lengths, label_smoothing=0.1 if o.net == "ligru" else 0.0)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
