"""ConvNeXt with channels in dimension 1 everywhere: convolutions of one pixel are products of channels, those of patches products of pixels put together."""
import torch
import torch.nn.functional as F
from torch import nn
from weights import CLASSES, DEPTHS, DIMS, KERNEL, MEAN, PATCH, STD, batch, state


class PixelNorm(nn.Module):
    """Over the channels of each pixel."""
    def __init__(self, dim):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(dim, 1, 1)), nn.Parameter(torch.zeros(dim, 1, 1))

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        variance = centred.square().mean(1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-6) * self.gain + self.shift


class Mix(nn.Module):
    """A product of the channels of each pixel, after `side` by `side` pixels have become one."""
    def __init__(self, before, after, side=1):
        super().__init__()
        self.side, self.matrix, self.shift = side, nn.Parameter(torch.zeros(after, before * side**2)), nn.Parameter(torch.zeros(after, 1, 1))

    def forward(self, x):
        if self.side > 1:
            x = F.pixel_unshuffle(x, self.side)
        return torch.einsum("oc,bchw->bohw", self.matrix, x) + self.shift


class ResponseNorm(nn.Module):
    """A channel's response over the mean of all channels' responses to the same picture."""
    def __init__(self, dim):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.zeros(dim, 1, 1)), nn.Parameter(torch.zeros(dim, 1, 1))

    def forward(self, x):
        response = x.square().sum((2, 3), keepdim=True).sqrt()
        share = response / (response.mean(1, keepdim=True) + 1e-6)
        return x + self.gain * (x * share) + self.shift


class Unit(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.around, self.norm = nn.Conv2d(dim, dim, KERNEL, groups=dim), PixelNorm(dim)
        self.widen, self.response, self.narrow = Mix(dim, 4 * dim), ResponseNorm(4 * dim), Mix(4 * dim, dim)
        self.share = nn.Parameter(torch.zeros(dim, 1, 1))

    def forward(self, x):
        rim = KERNEL // 2
        y = self.norm(self.around(F.pad(x, (rim, rim, rim, rim))))
        y = self.narrow(self.response(F.gelu(self.widen(y))))
        return x + self.share * y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [Mix(3, DIMS[0], PATCH), PixelNorm(DIMS[0])]
        for i, (depth, dim) in enumerate(zip(DEPTHS, DIMS)):
            if i:
                parts += [PixelNorm(DIMS[i - 1]), Mix(DIMS[i - 1], dim, 2)]
            parts += [Unit(dim) for _ in range(depth)]
        self.parts = nn.Sequential(*parts)
        self.last, self.classify = PixelNorm(DIMS[-1]), Mix(DIMS[-1], CLASSES)

    def forward(self, x):
        x = self.parts(x)
        x = self.last(x.mean((2, 3), keepdim=True))
        return self.classify(x).flatten(1)


def pixels(pictures):
    """Bytes to numbers around 0, channels first."""
    channels = pictures.movedim(-1, 1).float() / 255
    mean, deviation = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return (channels - mean) / deviation


def renamed(theirs):
    """The checkpoint's names in the order of Net's parts, and what they are called here."""
    names, part = {"head.norm": "last", "head.fc": "classify", "stem.0": "parts.0", "stem.1": "parts.1"}, 2
    for i, depth in enumerate(DEPTHS):
        if i:
            names[f"stages.{i}.downsample.0"], names[f"stages.{i}.downsample.1"] = f"parts.{part}", f"parts.{part + 1}"
            part += 2
        for j in range(depth):
            for old, new in (("conv_dw", "around"), ("norm", "norm"), ("mlp.fc1", "widen"), ("mlp.grn", "response"), ("mlp.fc2", "narrow"), ("gamma", "share")):
                names[f"stages.{i}.blocks.{j}.{old}"] = f"parts.{part}.{new}"
            part += 1
    mine = {}
    for old, new in names.items():
        if old.endswith("gamma"):
            mine[new] = theirs[old]
        else:
            mine[f"{new}.weight"], mine[f"{new}.bias"] = theirs[f"{old}.weight"], theirs[f"{old}.bias"]
    return mine


def adopt(net, theirs):
    """By content: a kernel over patches or one pixel becomes a matrix, a vector a column of channels."""
    with torch.no_grad():
        mine = renamed(theirs)
        for name, p in net.named_parameters():
            name = name.replace("matrix", "weight").replace("gain", "weight").replace("shift", "bias")
            p.copy_(mine[name].reshape(p.shape))


def fit():
    net = Net()
    adopt(net, state())
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for n in range(2):
        pictures, classes = batch(n)
        cost = F.cross_entropy(net(pixels(pictures)), classes)
        cost.backward()
        length = torch.nn.utils.get_total_norm([p.grad for p in net.parameters()])
        adamw.step()
        adamw.zero_grad()
        print(f"step {n} loss {cost.item():.9f} norm {length.item():.9f}", flush=True)


torch.set_num_threads(1)
fit()
