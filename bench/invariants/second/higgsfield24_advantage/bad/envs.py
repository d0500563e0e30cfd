import torch


class TrackEnvs:
    """Several carts on a line. An agent pushes left or right, and is paid for being near the middle."""

    def __init__(self, n, generator):
        self.n, self.generator = n, generator

    def reset(self):
        self.x = 2 * torch.rand(self.n, generator=self.generator) - 1
        self.v = torch.zeros(self.n)
        self.t = torch.zeros(self.n)
        return self.observe()

    def observe(self):
        return torch.stack([self.x, self.v, self.x * self.v], dim=1)

    def step(self, action):
        noise = 0.02 * torch.randn(self.n, generator=self.generator)
        self.v = 0.9 * self.v + 0.2 * (2.0 * action - 1.0) + noise
        self.x = self.x + 0.2 * self.v
        self.t = self.t + 1
        reward = 1 - self.x.abs()
        done = (self.x.abs() > 2) | (self.t >= 30)
        fresh = 2 * torch.rand(self.n, generator=self.generator) - 1
        self.x = torch.where(done, fresh, self.x)
        self.v = torch.where(done, torch.zeros_like(self.v), self.v)
        self.t = torch.where(done, torch.zeros_like(self.t), self.t)
        return self.observe(), reward, done.float()
