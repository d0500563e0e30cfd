import torch
from torch.nn.functional import binary_cross_entropy_with_logits


class LinkPredictionTrainer:
    def __init__(self, model, optimizer, graph):
        self.model, self.optimizer, self.graph = model, optimizer, graph

    def loss(self, edges):
        z = self.model(self.graph.features, self.graph.adjacency)
        wrong = torch.randint(0, len(z), (len(edges),))
        right = self.model.score(z[edges[:, 0]], z[edges[:, 1]])
        fake = self.model.score(z[edges[:, 0]], z[wrong])
        logits = torch.cat([right, fake])
        return binary_cross_entropy_with_logits(logits, torch.cat([torch.ones_like(right), torch.zeros_like(fake)]))

    def fit(self, loader, steps, max_grad_norm=None):
        done = 0
        self.model.train()
        while done < steps:
            for (edges,) in loader:
                loss = self.loss(edges)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if max_grad_norm is not None:
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_grad_norm)
                done += 1
                print(f"iteration {done:3d} | train loss {loss.item():.5f}")
                if done == steps:
                    return
