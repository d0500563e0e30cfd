"""PPO on carts that must be held at the origin: two ranks, each with its own environments and random pushes."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from modules import ActorCritic

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, ENVS, HORIZON, EPOCHS = 2, 16, 12, 2
GAMMA, CLIP = 0.9, 0.2


class Carts:
    """Position and speed of a few carts; an action is a force."""

    def __init__(self, n, generator):
        self.n, self.generator = n, generator
        self.reset()

    def reset(self):
        self.state = torch.randn(self.n, 2, generator=self.generator) * torch.tensor([1.0, 0.3]) + 0.5

    def step(self, force):
        x, v = self.state.unbind(1)
        v = 0.9 * v + 0.3 * force[:, 0] + 0.02 * torch.randn(x.shape, generator=self.generator)
        self.state = torch.stack([x + 0.3 * v, v], 1)
        return self.state, -0.1 * (self.state[:, 0].square() + 0.1 * force[:, 0].square())


class Runner:
    def __init__(self, rank):
        torch.manual_seed(SEED)
        self.policy = ActorCritic(2, 1)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-3)
        torch.manual_seed(SEED + 1000 * (rank + 1))
        self.env = Carts(ENVS, torch.Generator().manual_seed(SEED + 1000 * (rank + 1)))
        self.policy.train()

    @torch.no_grad()
    def rollout(self):
        observed, taken, log_probs, rewards = [], [], [], []
        self.env.reset()
        for _ in range(HORIZON):
            now = self.env.state
            distribution = self.policy.distribution(now)
            action = distribution.sample()
            _, reward = self.env.step(action)
            observed.append(now)
            taken.append(action)
            log_probs.append(distribution.log_prob(action).sum(1))
            rewards.append(reward)
        future, returns = self.policy.value(self.env.state), []
        for reward in reversed(rewards):
            future = reward + GAMMA * future
            returns.insert(0, future)
        return torch.cat(observed), torch.cat(taken), torch.cat(log_probs), torch.cat(returns)

    def reduce_gradients(self):
        parameters = list(self.policy.parameters())
        flat = torch.cat([p.grad.flatten() for p in parameters])
        dist.all_reduce(flat)
        flat /= WORLD
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad.copy_(part.view_as(p))

    def update(self, observed, taken, old, returns):
        with torch.no_grad():
            advantage = returns - self.policy.value(observed)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        for _ in range(EPOCHS):
            distribution = self.policy.distribution(observed)
            ratio = (distribution.log_prob(taken).sum(1) - old).exp()
            surrogate = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
            value_loss = (self.policy.value(observed) - returns).square().mean()
            loss = 0.1 * value_loss - surrogate - 0.005 * distribution.entropy().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.reduce_gradients()
            self.optimizer.step()
        return loss.item()

    def learn(self, iterations, rank):
        for i in range(iterations):
            batch = self.rollout()
            loss = self.update(*batch)
            self.policy.normalizer.update(batch[0])
            if rank == 0:
                print(f"iteration {i} loss {loss:.5f} return {batch[3].mean().item():.5f}", flush=True)


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORLD)
    Runner(rank).learn(max(1, STEPS // EPOCHS), rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(folder + "/store",), nprocs=WORLD, start_method="fork")
