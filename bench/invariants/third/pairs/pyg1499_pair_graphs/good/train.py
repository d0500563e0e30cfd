"""Pairs of molecule-like graphs: how many of the two hold a caged core?"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
NODE_TYPES = 6


class PairData:
    def __init__(self, x_s, edge_index_s, x_t, edge_index_t, y):
        self.x_s, self.edge_index_s = x_s, edge_index_s
        self.x_t, self.edge_index_t = x_t, edge_index_t
        self.y = y

    def keys(self):
        return ["x_s", "edge_index_s", "x_t", "edge_index_t", "y"]

    def __inc__(self, key):
        if key == "edge_index_s":
            return self.x_s.size(0)
        if key == "edge_index_t":
            return self.x_t.size(0)
        return 0

    def __cat_dim__(self, key):
        return -1 if "index" in key else 0


class Batch:
    """One disconnected graph out of many, as the collater of a graph library makes it."""

    @classmethod
    def from_data_list(cls, data_list, follow_batch=("x_s", "x_t")):
        batch = cls()
        for key in data_list[0].keys():
            offset, parts = 0, []
            for data in data_list:
                parts.append(getattr(data, key) + offset)
                offset += data.__inc__(key)
            setattr(batch, key, torch.cat(parts, dim=data_list[0].__cat_dim__(key)))
        for key in follow_batch:
            sizes = torch.tensor([getattr(data, key).size(0) for data in data_list])
            setattr(batch, key + "_batch", torch.arange(len(data_list)).repeat_interleave(sizes))
        batch.num_graphs = len(data_list)
        return batch


def undirected(edges):
    e = torch.tensor(edges).t()
    return torch.cat([e, e.flip(0)], 1)


def tree_with_core(n, core, g):
    edges = [(i, int(torch.randint(0, i, (), generator=g))) for i in range(1, n)]
    if core:
        edges += [(i, j) for i in range(5) for j in range(i)]
    return undirected(edges)


class CorePairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.pairs = []
        for i in range(n):
            size_s = int(torch.randint(5, 8, (), generator=g))
            size_t = size_s + int(torch.randint(1, 5, (), generator=g))
            core_s, core_t = (int(v) for v in torch.randint(0, 2, (2,), generator=g))
            x_s = torch.randint(0, NODE_TYPES, (size_s,), generator=g)
            x_t = torch.randint(0, NODE_TYPES, (size_t,), generator=g)
            self.pairs.append(PairData(x_s, tree_with_core(size_s, core_s, g), x_t, tree_with_core(size_t, core_t, g),
                                       torch.tensor([core_s + core_t])))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class GINConv(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x, edge_index):
        source, target = edge_index
        messages = torch.zeros_like(x).index_add(0, target, x[source])
        return self.mlp((1 + self.eps) * x + messages)


class GraphEncoder(nn.Module):
    def __init__(self, d=32, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(NODE_TYPES, d)
        self.convs = nn.ModuleList(GINConv(d) for _ in range(layers))

    def forward(self, x, edge_index, batch, num_graphs):
        h = self.embedding(x)
        for conv in self.convs:
            h = F.relu(conv(h, edge_index))
        return h.new_zeros(num_graphs, h.size(1)).index_add(0, batch, h)


class PairClassifier(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.encoder = GraphEncoder(d)
        self.norm = nn.LayerNorm(3 * d)
        self.head = nn.Sequential(nn.Linear(3 * d, d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(d, 3))

    def forward(self, b):
        s = self.encoder(b.x_s, b.edge_index_s, b.x_s_batch, b.num_graphs)
        t = self.encoder(b.x_t, b.edge_index_t, b.x_t_batch, b.num_graphs)
        return self.head(self.norm(torch.cat([s, t, (s - t).abs()], 1)))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = [(model(b).argmax(1) == b.y).float() for b in loader]
    model.train()
    return torch.cat(correct).mean().item()


def main():
    torch.manual_seed(SEED)
    train = DataLoader(CorePairs(192, SEED), batch_size=24, shuffle=True, collate_fn=Batch.from_data_list)
    test = DataLoader(CorePairs(64, SEED + 321), batch_size=32, collate_fn=Batch.from_data_list)
    model = PairClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    step = 0
    while step < STEPS:
        for batch in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), batch.y)
            loss.backward()
            optimizer.step()
            print(f"step {step} loss {loss.item():.4f}")
            step += 1
            if step == STEPS:
                break
    print(f"test accuracy {evaluate(model, test):.3f}")
    with tempfile.TemporaryDirectory() as out:
        torch.save(model.state_dict(), os.path.join(out, "pair.pt"))


if __name__ == "__main__":
    main()
