"""A small TabNet: the classifier, or its pretraining."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import inspect

import torch

from pytorch_tabnet import tab_network

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--pretrain", type=int, default=0)
p.add_argument("--embed", type=int, default=0, help="columns 1 and 4 hold categories"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.3):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


kind = tab_network.TabNetPretraining if o.pretrain else tab_network.TabNet
more = {} if o.pretrain else {"output_dim": 3}
sizes = dict(input_dim=10, n_d=6, n_a=6, n_steps=3, n_independent=1, n_shared=1, virtual_batch_size=16, **more)
# A release takes the groups of the features: here one feature a group, as its own estimator gives them.
if "group_attention_matrix" in inspect.signature(kind).parameters:
    sizes |= {"group_attention_matrix": torch.eye(10), "cat_emb_dim": []}
if o.embed:
    sizes |= {"cat_idxs": [1, 4], "cat_dims": [5, 3], "cat_emb_dim": [2, 2]}
net = same_weights(kind(**sizes))
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
x[:, 1], x[:, 4] = torch.randint(0, 5, (32,)).float(), torch.randint(0, 3, (32,)).float()
with oracle.record(o.dump):
    for step in range(3):
        if o.pretrain:
            said, embedded, hidden = net(x)
            loss = (((said - embedded) * hidden) ** 2).sum(1).mean()
        else:
            said, sparse = net(x)
            loss = torch.nn.functional.cross_entropy(said, y) - 1e-3 * sparse
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
