"""A Llama with tensor, sequence, pipeline and data parallelism, written by hand, as a plan for `opguard prove`.

Grouped-query attention, rotary positions, SwiGLU; tensor and sequence parallelism after Megatron-LM (column and row parallel products, vocabulary-parallel
embedding and loss, the residual stream cut along the sequence); 1F1B micro-batches; gradients averaged over data-parallel ranks, clipped by their global norm,
AdamW. The last stages have one layer less where layers do not come out even. DIMS are small; FULL are those of the published models.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

DIMS = dict(dp=2, pp=2, tp=2, layers=4, micro=2, batch=8, seq=4, hidden=8, heads=4, kv=2, ffn=6, vocab=8)
WORLD = ("dp", "pp", "tp")  # slowest first
MODELS = {
    "8b": dict(dp=8, pp=1, tp=1, layers=32, micro=2, batch=32, seq=4096, hidden=4096, heads=32, kv=8, ffn=14336, vocab=128256),
    "70b": dict(dp=2, pp=4, tp=8, layers=80, micro=2, batch=8, seq=4096, hidden=8192, heads=64, kv=8, ffn=28672, vocab=128256),
    "405b": dict(dp=64, pp=16, tp=8, layers=126, micro=2, batch=256, seq=8192, hidden=16384, heads=128, kv=8, ffn=53248, vocab=128256),
}
FULL = MODELS["8b"]
COLUMN, ROW = ("wq", "wk", "wv", "w1", "w3", "embed", "head"), ("wo", "w2")


class Mesh:
    """Where a rank stands, and its groups."""

    def __init__(self, rank, d):
        self.tp, self.pp, self.dp = rank % d["tp"], rank // d["tp"] % d["pp"], rank // (d["tp"] * d["pp"])
        self.sizes = d
        at = lambda dp, pp, tp: (dp * d["pp"] + pp) * d["tp"] + tp  # noqa: E731
        self.rank = at
        self.tensor = self.make([[at(x, y, z) for z in range(d["tp"])] for x in range(d["dp"]) for y in range(d["pp"])], rank)
        self.data = self.make([[at(x, y, z) for x in range(d["dp"])] for y in range(d["pp"]) for z in range(d["tp"])], rank)
        self.model = self.make([[at(x, y, z) for y in range(d["pp"]) for z in range(d["tp"])] for x in range(d["dp"])], rank)

    @staticmethod
    def make(groups, rank):
        return next(dist.new_group(ranks) for ranks in groups if rank in ranks)


class Alone:
    """The logical model's mesh: one rank, no group."""

    def __init__(self):
        self.tp = self.pp = self.dp = 0
        self.sizes = dict(tp=1, pp=1, dp=1)
        self.tensor = self.data = self.model = None


class Gather(torch.autograd.Function):
    """[batch, seq / tp, ...] to [batch, seq, ...]; its gradient is reduced and cut."""

    @staticmethod
    def forward(ctx, x, mesh):
        ctx.mesh = mesh
        parts = [torch.empty_like(x) for _ in range(mesh.sizes["tp"])]
        dist.all_gather(parts, x.contiguous(), group=mesh.tensor)
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, gradient):
        return scattered(gradient, ctx.mesh), None


class Scatter(torch.autograd.Function):
    """Partial sums [batch, seq, ...] to their total's part [batch, seq / tp, ...]."""

    @staticmethod
    def forward(ctx, x, mesh):
        ctx.mesh = mesh
        return scattered(x, mesh)

    @staticmethod
    def backward(ctx, gradient):
        parts = [torch.empty_like(gradient) for _ in range(ctx.mesh.sizes["tp"])]
        dist.all_gather(parts, gradient.contiguous(), group=ctx.mesh.tensor)
        return torch.cat(parts, 1), None


class Total(torch.autograd.Function):
    """A sum over the tensor-parallel ranks, of which each uses the whole."""

    @staticmethod
    def forward(ctx, x, mesh):
        x = x.clone()
        dist.all_reduce(x, group=mesh.tensor)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def scattered(x, mesh):
    parts = [part.contiguous() for part in x.chunk(mesh.sizes["tp"], 1)]
    out = torch.empty_like(parts[0])
    dist.reduce_scatter(out, parts, group=mesh.tensor)
    return out


def gathered(x, mesh):
    return x if mesh.sizes["tp"] == 1 else Gather.apply(x, mesh)


def reduced(x, mesh):
    return x if mesh.sizes["tp"] == 1 else Scatter.apply(x, mesh)


def rope(seq, dim):
    angles = torch.outer(torch.arange(seq).float(), 500000.0 ** (-torch.arange(0, dim, 2).float() / dim))
    return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def rotated(x, table):
    a, b = x.chunk(2, -1)
    return x * table[0] + torch.cat([-b, a], -1) * table[1]


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


class Stage:
    """Layers first to last of the model, of which a rank holds its part; with embedding or head where they are at an end."""

    def __init__(self, d, mesh, first, last):
        tp, hidden, size = mesh.sizes["tp"], d["hidden"], d["hidden"] // d["heads"]
        self.d, self.mesh, self.layers, self.size = d, mesh, range(first, last), size
        shapes = {"norm1": (hidden,), "norm2": (hidden,), "wq": (d["heads"] * size // tp, hidden), "wk": (d["kv"] * size // tp, hidden), "wv": (d["kv"] * size // tp, hidden),
                  "wo": (hidden, d["heads"] * size // tp), "w1": (d["ffn"] // tp, hidden), "w3": (d["ffn"] // tp, hidden), "w2": (hidden, d["ffn"] // tp)}  # fmt: skip
        self.has_embedding, self.has_head = first == 0, last == d["layers"]
        self.weights = {}
        if self.has_embedding:
            self.add("embed", (d["vocab"] // tp, hidden))
        for layer in self.layers:
            for name, shape in shapes.items():
                self.add("layers.%d.%s" % (layer, name), shape)
        if self.has_head:
            self.add("norm", (hidden,))
            self.add("head", (d["vocab"] // tp, hidden))

    def add(self, name, shape):
        self.weights[name] = torch.randn(shape).requires_grad_()

    def embedding(self, tokens):
        table, mesh = self.weights["embed"], self.mesh
        if mesh.sizes["tp"] == 1:
            return F.embedding(tokens, table)
        local = tokens - mesh.tp * table.shape[0]
        outside = (local < 0) | (local >= table.shape[0])
        x = F.embedding(local.masked_fill(outside, 0), table).masked_fill(outside.unsqueeze(-1), 0.0)
        return reduced(x, mesh)

    def attention(self, x, w, table):
        batch, seq = x.shape[:2]
        q, k, v = ((x @ w[name].t()).view(batch, seq, -1, self.size).transpose(1, 2) for name in ("wq", "wk", "wv"))
        q, k = rotated(q, table), rotated(k, table)
        k, v = (part.repeat_interleave(q.shape[1] // part.shape[1], 1) for part in (k, v))
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        scores = scores.masked_fill(torch.ones(seq, seq, dtype=torch.bool).triu(1), float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, seq, -1) @ w["wo"].t()

    def layer(self, x, w, table):
        mesh = self.mesh
        x = x + reduced(self.attention(gathered(norm(x, w["norm1"]), mesh), w, table), mesh)
        y = gathered(norm(x, w["norm2"]), mesh)
        return x + reduced((F.silu(y @ w["w1"].t()) * (y @ w["w3"].t())) @ w["w2"].t(), mesh)

    def __call__(self, x):
        table = rope(self.d["seq"], self.size)
        if self.has_embedding:
            x = self.embedding(x)
        for layer in self.layers:
            prefix = "layers.%d." % layer
            x = self.layer(x, {name[len(prefix) :]: w for name, w in self.weights.items() if name.startswith(prefix)}, table)
        if self.has_head:
            x = gathered(norm(x, self.weights["norm"]), self.mesh) @ self.weights["head"].t()
        return x

    def loss(self, logits, targets):
        """Mean over the tokens of a micro-batch; of vocabulary-parallel logits."""
        mesh = self.mesh
        logits, targets = logits.view(-1, logits.shape[-1]), targets.reshape(-1)
        if mesh.sizes["tp"] == 1:
            return F.cross_entropy(logits, targets)
        largest = logits.detach().max(-1).values
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=mesh.tensor)
        logits = logits - largest.unsqueeze(-1)
        total = Total.apply(logits.exp().sum(-1), mesh)
        local = targets - mesh.tp * logits.shape[-1]
        outside = (local < 0) | (local >= logits.shape[-1])
        own = logits.gather(-1, local.masked_fill(outside, 0).unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        return (total.log() - Total.apply(own, mesh)).mean()

    def step(self, loss):
        """Gradients over data-parallel ranks, clipping, AdamW; the outputs."""
        mesh, d = self.mesh, self.mesh.sizes
        square = torch.zeros(())
        for name, w in self.weights.items():
            cut = name.split(".")[-1] in COLUMN + ROW
            if not cut and d["tp"] > 1:  # a norm has seen its rank's part of the sequence
                dist.all_reduce(w.grad, group=mesh.tensor)
            if d["dp"] > 1:
                dist.all_reduce(w.grad, group=mesh.data)
                w.grad.div_(d["dp"])
            if cut or mesh.tp == 0:
                square = square + w.grad.pow(2).sum()
        if d["pp"] * d["tp"] > 1:
            dist.all_reduce(square, group=mesh.model)
        found = {"gnorm": square.sqrt()}
        with torch.no_grad():
            for name, w in self.weights.items():
                w.grad.mul_(1.0 / (found["gnorm"] + 1e-6))
                found["grad:" + name] = w.grad
        optimizer = torch.optim.AdamW(self.weights.values(), lr=0.01, weight_decay=0.1)
        optimizer.step()
        found.update({"new:" + name: w for name, w in self.weights.items()})
        if loss is not None:
            if d["dp"] > 1:
                dist.all_reduce(loss, group=mesh.data)
                loss = loss / d["dp"]
            found["loss"] = loss
        return found


def batch(d, rows):
    return dict(tokens=torch.randint(0, d["vocab"], (rows, d["seq"])), targets=torch.randint(0, d["vocab"], (rows, d["seq"])))


def logical(d):
    stage, tokens = Stage(d, Alone(), 0, d["layers"]), batch(d, d["batch"])

    def step():
        loss = stage.loss(stage(tokens["tokens"]), tokens["targets"])
        loss.backward()
        return stage.step(loss.detach())

    return dict(state=stage.weights, tokens=tokens, step=step)


def plan(rank, d):
    mesh, stages = Mesh(rank, d), d["pp"]
    bounds = [0]
    for stage in range(stages):
        bounds.append(bounds[-1] + d["layers"] // stages + (stage < d["layers"] % stages))
    stage, tokens = Stage(d, mesh, bounds[mesh.pp], bounds[mesh.pp + 1]), batch(d, d["batch"] // d["dp"])
    if not (stage.has_embedding or stage.has_head):
        tokens = {}
    before, after = (mesh.rank(mesh.dp, (mesh.pp + by) % stages, mesh.tp) for by in (-1, 1))
    shape = (d["batch"] // d["dp"] // d["micro"], d["seq"] // d["tp"], d["hidden"])

    def step():
        inputs, outputs, losses, works = [], [], [], []

        def forward(micro):
            if stage.has_embedding:
                x = tokens["tokens"].chunk(d["micro"])[micro]
            else:
                x = torch.empty(shape)
                dist.recv(x, before)
                x.requires_grad_()
            y = stage(x)
            if stage.has_head:
                y = stage.loss(y, tokens["targets"].chunk(d["micro"])[micro]) / d["micro"]
                losses.append(y.detach())
            else:
                works.append(dist.isend(y.detach().contiguous(), after))
            inputs.append(x)
            outputs.append(y)

        def backward(micro):
            if stage.has_head:
                outputs[micro].backward()
            else:
                gradient = torch.empty(shape)
                dist.recv(gradient, after)
                outputs[micro].backward(gradient)
            if not stage.has_embedding:
                works.append(dist.isend(inputs[micro].grad.contiguous(), before))

        early = min(stages - mesh.pp - 1, d["micro"])
        for micro in range(early):
            forward(micro)
        for micro in range(d["micro"] - early):
            forward(early + micro)
            backward(micro)
        for micro in range(d["micro"] - early, d["micro"]):
            backward(micro)
        for work in works:
            work.wait()
        return stage.step(sum(losses) if losses else None)

    def place(name, full):
        kind = name.split(".")[-1]
        if kind in COLUMN:
            return full.chunk(d["tp"], 0)[mesh.tp]
        if kind in ROW:
            return full.chunk(d["tp"], 1)[mesh.tp]
        return full.chunk(d["dp"], 0)[mesh.dp] if name in ("tokens", "targets") else full

    return dict(state=stage.weights, tokens=tokens, step=step, place=place)
