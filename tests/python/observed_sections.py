"""What programs do around training, section by section, and what each leaves: run bare and observed, every line must be the same.

    python observed_sections.py        "copies: ['a91f...', ...]", a line a section
"""

import copy
import gc
import hashlib
import inspect
import io
import os
import pickle
import sys
import threading
import traceback
import warnings
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset

SECTIONS = []


def section(function):
    SECTIONS.append(function)
    return function


def digest(*tensors):
    found = hashlib.sha256()
    for t in tensors:
        t = torch.view_as_real(t) if t.is_complex() else t
        found.update(t.detach().double().contiguous().numpy().tobytes())
    return found.hexdigest()[:12]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.drop, self.b = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(self.drop(F.relu(self.norm(self.a(x)))))


def train(model, optimizer, steps=3, **clear):
    for _ in range(steps):
        optimizer.zero_grad(**clear)
        loss = model(torch.randn(5, 6)).square().mean()
        loss.backward()
        optimizer.step()
    return digest(*model.state_dict().values()), loss.item()


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.1)


@section
def hook_numbers():
    net = Net()
    train(net, sgd(net))
    return net.register_forward_hook(lambda *_: None).id, net.a.weight.register_hook(lambda g: g).id


@section
def optimizers():
    optim = torch.optim
    makers = [
        lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: optim.AdamW(p, fused=True), lambda p: optim.Adam(p, foreach=True, amsgrad=True),
        optim.Adagrad, lambda p: optim.RMSprop(p, centered=True), optim.NAdam, optim.Rprop,
    ]  # fmt: skip
    nets = [Net() for _ in makers]
    return [train(net, make(net.parameters())) for net, make in zip(nets, makers)]


@section
def closures():
    net, x, losses = Net(), torch.randn(5, 6), []
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    return [optimizer.step(closure).item() for _ in range(3)], losses, digest(*net.state_dict().values())


@section
def copies():
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    train(net, optimizer)
    whole, state = io.BytesIO(), io.BytesIO()
    torch.save(net, whole)
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, state)
    copied, pickled = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    copy.deepcopy(optimizer)
    found = [hashlib.sha256(file.getvalue()).hexdigest()[:12] for file in (whole, state)]
    found += [sorted(vars(thing)) for thing in (net, net.a, optimizer, net.a.weight)]
    return *found, len(pickle.dumps(net)), train(copied, sgd(copied)), train(pickled, sgd(pickled))


@section
def memory():
    net = Net()
    optimizer = sgd(net)
    train(net, optimizer)
    x = torch.randn(5, 6)
    y = net(x)
    kept = [weakref.ref(thing) for thing in (x, y, net.a.weight.grad)]
    del x, y
    optimizer.zero_grad()
    found = [reference() is None for reference in kept]
    kept = [weakref.ref(thing) for thing in (net, optimizer, net.a.weight)]
    del net, optimizer
    gc.collect()
    return found, [reference() is None for reference in kept]


class Raising(nn.Module):
    def forward(self, x):
        raise ValueError("no")


@section
def errors():
    net, found = nn.Sequential(nn.Linear(2, 2), Raising()), []
    for _ in range(2):
        try:
            net(torch.ones(1, 2))
        except ValueError as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__) if "opguard" not in frame.filename]
            found.append((str(error), error.__cause__, error.__context__, frames))
    return found


@section
def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = Net()
        optimizer = sgd(net)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        scheduler.step()  # too early: torch says so, and where
        net(torch.randn(3, 6)).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step(7)
        scheduler.get_lr()
    return [(os.path.basename(w.filename), w.lineno, str(w.message)[:40]) for w in caught]


@section
def functions():
    known = [
        torch.save, torch.manual_seed, nn.Module.train, nn.Module.load_state_dict, F.dropout, torch.autograd.backward, torch.Tensor.backward,
        nn.utils.clip_grad_norm_, nn.init.normal_, torch.optim.Optimizer.zero_grad, DataLoader.__iter__, nn.Module.__call__,
    ]  # fmt: skip
    pickled = [pickle.loads(pickle.dumps(function)) is function for function in (torch.save, F.dropout)]
    return [(function.__name__, str(inspect.signature(function))) for function in known], pickled


class Named(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(getattr(func, "__name__", ""))
        return super().__torch_function__(func, types, args, kwargs or {})


@section
def subclasses():
    x, net = torch.randn(5, 6).as_subclass(Named), Net()
    y = net(x)
    F.dropout(x, 0.1)
    F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.1)
    y.sum().backward()
    sgd(net).step()
    return Named.seen


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@section
def modes_of_the_program():
    found = []
    for mode in (Functions(), Operators()):
        net = Net()
        optimizer = sgd(net)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        with mode:
            net.eval()(torch.randn(5, 6))
            net.train()(torch.randn(5, 6)).sum().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            nn.init.normal_(net.a.weight)
            net.load_state_dict(net.state_dict())
            torch.save(net.state_dict(), io.BytesIO())
            for _ in DataLoader(TensorDataset(torch.randn(6, 2)), 2):
                pass
        found.append(mode.seen)
    return found


@section
def transforms():
    net, x = nn.Sequential(nn.Linear(6, 3), nn.Tanh()), torch.randn(5, 6)
    held = dict(net.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(net, parameters, (x,)).sum()

    gradient = torch.func.grad(loss)
    each = torch.func.vmap(gradient, (None, 0))
    hessian = torch.func.hessian(lambda x: net(x).sum())
    return digest(*gradient(held, x).values()), digest(*each(held, x).values()), digest(hessian(x[0])), digest(*torch.func.jvp(net, (x,), (x,)))


@section
def evaluation():
    net, x, found = Net().eval(), torch.randn(5, 6), []
    for context in (torch.inference_mode(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16)):
        with context:
            found.append(digest(net(x).clone()))
    return found, digest(torch.get_rng_state())


@section
def without_values():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with torch.device("meta"):
        shape = tuple(Net()(torch.randn(5, 6)).shape)
    with FakeTensorMode():
        net = Net()
        net(torch.randn(5, 6)).sum().backward()
        sgd(net).step()
    lazy, net = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()), Net()
    optimizer = sgd(net)
    optimizer.add_param_group({"params": list(lazy.parameters())})
    lazy(torch.randn(4, 5))
    return shape, type(lazy[0]).__name__, train(net, optimizer)


class Dropping(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training) + F.scaled_dot_product_attention(x[None], x[None], x[None])[0]


@section
def scripts():
    net, x = Net().eval(), torch.randn(5, 6)
    symbolic, script, traced = torch.fx.symbolic_trace(net), torch.jit.script(net), torch.jit.trace(net, x)
    dropping, symbolic_dropping = torch.jit.script(Dropping()), torch.fx.symbolic_trace(Dropping())
    graphs = [str(symbolic.graph), str(script.graph), str(traced.graph), str(dropping.graph), str(symbolic_dropping.graph)]
    return digest(symbolic(x), script(x), traced(x), dropping(x)), [hashlib.sha256(text.encode()).hexdigest() for text in graphs]


@section
def exported():
    x = torch.randn(5, 6)
    return [str(torch.export.export(net, (x,)).graph) for net in (Net().eval(), Net().train(), Dropping())]


@section
def parametrized():
    net = Net()
    nn.utils.parametrizations.weight_norm(net.a)
    nn.utils.parametrizations.spectral_norm(net.b)
    return train(net, sgd(net)), list(net.state_dict())


@section
def recomputed():
    from torch.utils.checkpoint import checkpoint

    net, x = Net(), torch.randn(5, 6, requires_grad=True)
    checkpoint(net, x, use_reentrant=False).sum().backward()
    checkpoint(net, x, use_reentrant=True).sum().backward()
    return digest(x.grad, *(p.grad for p in net.parameters()))


class OwnCall(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) + 1


class OwnOptimizer(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"])


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def step(self):
        return self.inner.step()

    def zero_grad(self):
        self.inner.zero_grad()


@section
def classes_of_the_program():
    own, first, second = OwnCall(6, 3), Net(), Net()
    found = train(own, OwnOptimizer(own.parameters()))
    return found, train(first, OwnOptimizer(first.parameters())), train(second, Wrapper(OwnOptimizer(second.parameters())))


@section
def scaled():
    net, found = Net(), []
    optimizer, scaler = sgd(net), torch.amp.GradScaler("cpu", init_scale=1e30, growth_interval=2)
    for i in range(5):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(5, 6)).square().mean() * (1e30 if i < 2 else 1)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(scaler.get_scale())
    return found, digest(*net.state_dict().values())


@section
def threads():
    nets = [nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(4)]

    def work(net):
        optimizer = sgd(net)
        for _ in range(20):
            optimizer.zero_grad()
            net(torch.ones(5, 6)).sum().backward()
            optimizer.step()

    workers = [threading.Thread(target=work, args=(net,)) for net in nets]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [digest(*net.state_dict().values()) for net in nets]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(12.0).view(6, 2))


class Uneven(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return {"x": torch.full((i + 1,), float(i)), "text": f"text {i}", "drawn": torch.rand(1)}


@section
def loaders():
    data, found = TensorDataset(torch.randn(10, 3), torch.arange(10)), []
    for loader in (
        DataLoader(data, 3, shuffle=True), DataLoader(data, 3, shuffle=True, num_workers=2), DataLoader(data, 4, num_workers=1, persistent_workers=True),
        DataLoader(Stream(), 4), DataLoader(Uneven(), 3, collate_fn=list), DataLoader(data, batch_size=None),
        DataLoader(data, 3, sampler=DistributedSampler(data, 2, 0)), DataLoader(Uneven(), 2, collate_fn=list, num_workers=2),
    ):  # fmt: skip
        for _ in range(2):
            found += [(str(batch), digest(torch.get_rng_state())) for batch in loader]
        next(iter(loader))
    return len(found), hashlib.sha256(str(found).encode()).hexdigest()


@section
def forked():
    net = Net()
    optimizer = sgd(net)
    train(net, optimizer)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(train(net, optimizer)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return os.read(read, 1000).decode(), train(net, optimizer)


@section
def other_numbers():
    embedding, lone, complex_one = nn.Embedding(10, 4, sparse=True), nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.randn(4, dtype=torch.cfloat))
    embedding(torch.tensor([1, 2])).sum().backward()
    torch.optim.SparseAdam(embedding.parameters()).step()
    (lone * lone).backward()
    torch.optim.SGD([lone], 0.1).step()
    complex_one.abs().sum().backward()
    torch.optim.Adam([complex_one]).step()
    return digest(embedding.weight, lone, complex_one)


@section
def loading():
    first, second = Net(), Net()
    second.load_state_dict(first.state_dict())
    found = [str(second.load_state_dict({k: v for k, v in first.state_dict().items() if "b." not in k}, strict=False))]
    try:
        second.load_state_dict({"a.weight": torch.ones(3)})
    except RuntimeError as error:
        found.append(str(error))
    optimizer = torch.optim.Adam(second.parameters())
    optimizer.load_state_dict(optimizer.state_dict())
    average = torch.optim.swa_utils.AveragedModel(first)
    average.update_parameters(second)
    return *found, digest(*average.state_dict().values())


@section
def gradients_of_gradients():
    net, x = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(3, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    return digest(net[0].weight.grad)


@section
def changed_on_the_way():
    net = Net()
    optimizer = sgd(net)
    found = [train(net, optimizer)]
    net.extra = nn.Linear(2, 2)
    optimizer.add_param_group({"params": list(net.extra.parameters()), "lr": 0.5})
    net.a.requires_grad_(False)
    found.append(train(net, optimizer))
    net.b.weight = nn.Parameter(torch.randn(2, 8))
    net.half().float()
    return *found, train(net, optimizer, set_to_none=False), digest(net.a.weight)


@section
def layers():
    lstm, attention = nn.LSTM(4, 5, 2, dropout=0.2), nn.MultiheadAttention(8, 2, dropout=0.1)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
    y, _ = lstm(torch.randn(3, 2, 4))
    z, _ = attention(*[torch.randn(3, 2, 8)] * 3)
    trained = encoder(z)
    with torch.no_grad():
        evaluated = encoder.eval()(z.detach())
    return digest(y, z, trained, evaluated, torch.get_rng_state())


class Touchy(nn.Module):
    def __getattr__(self, name):
        if name in ("training", "_parameters", "weight"):
            raise RuntimeError("touched " + name)
        return super().__getattr__(name)

    def forward(self, x):
        return x + 1


class Unhashable(nn.Module):
    __hash__ = None

    def forward(self, x):
        return x


class Incomparable(nn.Module):
    __hash__ = nn.Module.__hash__

    def __eq__(self, other):
        raise RuntimeError("compared")

    def forward(self, x):
        return x


@section
def odd_modules():
    return [digest(module(torch.ones(2))) for module in (Touchy(), Unhashable(), Incomparable())]


if __name__ == "__main__":
    torch.set_num_threads(1)
    for held in SECTIONS:
        torch.manual_seed(1)
        print(f"{held.__name__}: {held()}", flush=True)
    sys.stdout.flush()
