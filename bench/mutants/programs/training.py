"""The loop most of the programs share: two steps, gradient clipping, the losses on stdout."""
import torch


def train(model, batches, loss_of, optimizer=None, after=None):
    """One step a batch; after(model): what follows the optimizer's step. Returns the optimizer."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    model.train()
    for step, batch in enumerate(batches):
        loss = loss_of(model, batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if after:
            after(model)
        print("step", step, "loss", repr(loss.item()), "norm", repr(norm.item()), flush=True)
    return optimizer


def token_batches(seed, vocabulary, steps=2, rows=2, length=12, padded=True):
    """Batches of tokens for a language model; the last row's first tokens are padding."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(steps):
        tokens = torch.randint(3, vocabulary, (rows, length), generator=generator)
        mask = torch.ones_like(tokens)
        if padded:
            mask[-1, :3] = 0
        labels = tokens.masked_fill(mask == 0, -100)
        batches.append({"input_ids": tokens, "attention_mask": mask, "labels": labels})
    return batches
