import math
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
PAD, BOS, EOS, VOCAB = 0, 1, 2, 20


class Positional(nn.Module):
    def __init__(self, d, most=32, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        at = torch.arange(most).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(1, most, d)
        pe[0, :, 0::2], pe[0, :, 1::2] = torch.sin(at * div), torch.cos(at * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Translator(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.src, self.tgt = nn.Embedding(VOCAB, d, padding_idx=PAD), nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = Positional(d)
        self.transformer = nn.Transformer(d, 2, 1, 1, 32, dropout=0.1, batch_first=True)
        self.generator = nn.Linear(d, VOCAB)

    def forward(self, src, tgt):
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1)).isinf()
        h = self.transformer(
            self.pos(self.src(src)), self.pos(self.tgt(tgt)), tgt_mask=causal,
            src_key_padding_mask=src == PAD, tgt_key_padding_mask=tgt == PAD, memory_key_padding_mask=src == PAD,
        )  # fmt: skip
        return self.generator(h)


def batch(n=8):
    rows = []
    for _ in range(n):
        length = int(torch.randint(3, 8, ()))
        rows.append(torch.randint(3, VOCAB, (length,)))
    src = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    ends = [torch.cat([torch.tensor([BOS]), r.flip(0), torch.tensor([EOS])]) for r in rows]
    return src, nn.utils.rnn.pad_sequence(ends, batch_first=True, padding_value=PAD)


@torch.no_grad()
def greedy(model, src, most=8):
    out = torch.full((len(src), 1), BOS)
    for _ in range(most):
        out = torch.cat([out, model(src, out)[:, -1].argmax(-1, keepdim=True)], 1)
    return out


def noam(step, d=16, warmup=4):
    step += 1
    return d**-0.5 * min(step**-0.5, step * warmup**-1.5)


def main():
    torch.manual_seed(SEED)
    model = Translator()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    opt = torch.optim.Adam(model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, noam)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    for step in range(STEPS):
        model.train()
        src, tgt = batch()
        logits = model(src, tgt[:, :-1])
        loss = criterion(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(step, loss.item())
        if step % 4 == 3:
            model.eval()
            print("decoded", greedy(model, src[:2]).tolist()[0])


main()
