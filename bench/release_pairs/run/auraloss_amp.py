"""A recurrent amplifier model trained with the losses of the library."""
import argparse
import auraloss
import torch
from torch import nn

p = argparse.ArgumentParser(); p.add_argument("--loss", default="esr"); p.add_argument("--seed", type=int, default=0); o = p.parse_args()


class Amp(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.lstm, self.out = nn.LSTM(channels, 12, batch_first=True), nn.Linear(12, channels)

    def forward(self, x):
        y, _ = self.lstm(x.transpose(1, 2))
        return self.out(y).transpose(1, 2) + x


torch.manual_seed(o.seed)
stft = dict(fft_sizes=[128, 64], hop_sizes=[32, 16], win_lengths=[128, 64])
if o.loss == "esr":
    criterion, channels = auraloss.time.ESRLoss(), 1
elif o.loss == "dc":
    dc, channels = auraloss.time.DCLoss(), 1
    criterion = lambda a, b: nn.functional.mse_loss(a, b) + dc(a, b)
elif o.loss == "sumdiff":
    criterion, channels = auraloss.freq.SumAndDifferenceSTFTLoss(w_sum=1.0, w_diff=0.25, **stft), 2
else:
    criterion, channels = auraloss.freq.MultiResolutionSTFTLoss(w_lin_mag=0.5, w_phs=0.1, **stft), 1
model = Amp(channels)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(4):
    x = torch.randn(4, channels, 256)
    y = torch.tanh(2 * x) + 0.1
    opt.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
