"""A few steps of density estimation with a flow of zuko on two features and a context."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch
import zuko

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--flow", default="NSF"); p.add_argument("--steps", type=int, default=3)
p.add_argument("--final", default=""); o = p.parse_args()
oracle.setup(0)
flow = getattr(zuko.flows, o.flow)(features=3, context=2, transforms=3, hidden_features=(24, 24))
with torch.no_grad():      # by order, whatever a release calls them
    for i, q in enumerate(flow.parameters()):
        q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * 0.3)
torch.manual_seed(0)
opt = torch.optim.Adam(flow.parameters(), lr=1e-2)
data, context = torch.randn(64, 3) * 1.5, torch.randn(64, 2)
with oracle.record(o.dump):
    for step in range(o.steps):
        batch = torch.randperm(64)[:32]
        loss = -flow(context[batch]).log_prob(data[batch]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("step", step, "loss", repr(loss.item()), flush=True)
if o.final:
    torch.save((flow.state_dict(), opt.state_dict(), [p.grad for p in flow.parameters()]), o.final)
