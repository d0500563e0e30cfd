import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Mixer(nn.Module):
    def __init__(self, tokens=6, d=16):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.token = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channel = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * d, d))
        self.head = nn.Linear(d, 3)

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channel(self.n2(x))
        return self.head(x.mean(1))


def main():
    torch.manual_seed(SEED)
    model = Mixer()
    # The graph's backend does not matter here, and aot_eager needs no C++ compiler.
    fast = torch.compile(model, backend="aot_eager")
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(STEPS):
        fast.train()
        x = torch.randn(8, 6, 16)
        y = x[:, 0, :3].argmax(1)
        loss = nn.functional.cross_entropy(fast(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())
    fast.eval()
    with torch.no_grad():
        print("eval", nn.functional.cross_entropy(fast(x), y).item())
    print(sorted(model.state_dict())[:2])


if __name__ == "__main__":
    main()
