"""Link prediction on a small community graph with a two-layer graph network. Gradients are clipped by norm."""
import os
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from trainer import LinkPredictionTrainer

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class GraphNet(nn.Module):
    def __init__(self, features, hidden, out):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, out)
        self.relation = nn.Parameter(torch.ones(out))

    def forward(self, x, adjacency):
        x = torch.relu(self.first(adjacency @ x))
        return self.second(adjacency @ x)

    def score(self, a, b):
        return (a * self.relation * b).sum(-1)


def community_graph(nodes=60, communities=3):
    member = torch.arange(nodes) % communities
    same = member[:, None] == member[None]
    linked = torch.rand(nodes, nodes) < torch.where(same, 0.3, 0.02)
    linked = torch.triu(linked, 1)
    edges = linked.nonzero()
    dense = (linked | linked.T).float() + torch.eye(nodes)
    adjacency = dense / dense.sum(1, keepdim=True)
    features = 4 * nn.functional.one_hot(member, communities).float() + 2 * torch.randn(nodes, communities)
    return SimpleNamespace(features=features, adjacency=adjacency, edges=edges)


def main():
    torch.manual_seed(SEED)
    graph = community_graph()
    model = GraphNet(graph.features.shape[1], 32, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    loader = DataLoader(TensorDataset(graph.edges), batch_size=32, shuffle=True)
    LinkPredictionTrainer(model, optimizer, graph).fit(loader, STEPS, max_grad_norm=0.5)


main()
