"""Cases of rules.py for collectives: what gloo's processes really move, beside what one captured rank is taken to mean.

    all_reduce by sum, ranks 0 1      each of two processes has its own random x; both compare theirs
    all_reduce by sum, ranks 2 0      a group of three processes that is not in the order of their numbers

A case is a function (rank in the group, its size, the group, x, y) that gives tensors by its own collectives.
It runs twice: on gloo, for numbers, and under the fake group, for the operators that a plan's capture would see.
Counterexample: gloo has no reduction by avg. Then the case is told as not compared; no stand-in takes its place.
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable

SETTINGS = ((2, (0, 1)), (3, (0, 1, 2)), (3, (2, 0)))  # processes, and the group's ranks in its order
REDUCTIONS = {"sum": dist.ReduceOp.SUM, "avg": dist.ReduceOp.AVG, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "product": dist.ReduceOp.PRODUCT}
_cases = []


def case(name, settings=SETTINGS, lacking=None):
    """`lacking`: a part of what gloo says where it has no such collective. All else that it raises is a mistake."""
    def keep(function):
        _cases.append((name, (function, lacking), settings))
        return function

    return keep


def member(group, place):
    """The global rank of a place in the group: most of torch's functions take the first, and cases think in the
    second."""
    return dist.get_global_rank(group, place)


def _reducing():
    """Every reduction by each of its functions. gloo has no `avg`, and says so."""
    for name, op in REDUCTIONS.items():
        lacking = "AVG" if name == "avg" else None
        @case("all_reduce by %s" % name, lacking=lacking)
        def all_reduce(r, n, g, x, y, op=op):
            dist.all_reduce(x, op, g)
            return [x]

        @case("reduce by %s" % name, lacking=lacking)
        def reduce(r, n, g, x, y, op=op):
            dist.reduce(x, member(g, n - 1), op, g)
            return [x] if r == n - 1 else []

        @case("reduce_scatter by %s" % name, lacking=lacking)
        def reduce_scatter(r, n, g, x, y, op=op):
            dist.reduce_scatter(y, list(x.chunk(n)), op, g)
            return [y]

        @case("reduce_scatter_tensor by %s" % name, lacking=lacking)
        def reduce_scatter_tensor(r, n, g, x, y, op=op):
            dist.reduce_scatter_tensor(y, x, op, g)
            return [y]

        @case("functional all_reduce by %s" % name, lacking=lacking)
        def functional_all_reduce(r, n, g, x, y, name=name):
            return [functional.all_reduce(x, name, g)]

        @case("functional reduce_scatter_tensor by %s" % name, lacking=lacking)
        def functional_reduce_scatter(r, n, g, x, y, name=name):
            return [functional.reduce_scatter_tensor(x, name, 0, g)]


_reducing()


@case("all_reduce in place of parts")
def _(r, n, g, x, y):
    dist.all_reduce(x[:2], group=g)
    return [x]


@case("all_reduce of whole numbers by max")
def _(r, n, g, x, y):
    where = torch.full((2,), r)
    dist.all_reduce(where, dist.ReduceOp.MAX, g)
    return [where]


@case("all_reduce_coalesced")
def _(r, n, g, x, y):
    dist.all_reduce_coalesced([x, y], group=g)
    return [x, y]


@case("all_reduce, coalescing")
def _(r, n, g, x, y):
    with dist._coalescing_manager(group=g):
        dist.all_reduce(x, group=g)
        dist.all_reduce(y, group=g)
    return [x, y]


@case("all_gather of a list")
def _(r, n, g, x, y):
    parts = [torch.zeros_like(y) for _ in range(n)]
    dist.all_gather(parts, y, g)
    return parts


@case("all_gather into strided parts")
def _(r, n, g, x, y):
    whole = torch.zeros(y.shape[0], n * y.shape[1], dtype=y.dtype)
    dist.all_gather(list(whole.chunk(n, 1)), y, g)
    return [whole]


@case("all_gather_into_tensor, joined")
def _(r, n, g, x, y):
    whole = torch.zeros(n * y.shape[0], y.shape[1], dtype=y.dtype)
    dist.all_gather_into_tensor(whole, y, g)
    return [whole]


@case("all_gather_into_tensor, stacked", lacking="invalid tensor size")
def _(r, n, g, x, y):
    whole = torch.zeros(n, *y.shape, dtype=y.dtype)
    dist.all_gather_into_tensor(whole, y, g)
    return [whole]


@case("all_gather_into_tensor, coalescing")
def _(r, n, g, x, y):
    first, second = torch.zeros(n * x.shape[0], x.shape[1], dtype=x.dtype), torch.zeros(n * y.shape[0], y.shape[1], dtype=y.dtype)
    with dist._coalescing_manager(group=g):
        dist.all_gather_into_tensor(first, x, g)
        dist.all_gather_into_tensor(second, y, g)
    return [first, second]


@case("reduce_scatter_tensor, stacked", lacking="outputShape[0] * worldSize == inputShape[0]")
def _(r, n, g, x, y):
    dist.reduce_scatter_tensor(y, x.reshape(n, *y.shape), group=g)
    return [y]


@case("reduce_scatter_tensor, coalescing")
def _(r, n, g, x, y):
    z = torch.zeros_like(y)
    with dist._coalescing_manager(group=g):
        dist.reduce_scatter_tensor(y, x, group=g)
        dist.reduce_scatter_tensor(z, x * 2, group=g)
    return [y, z]


@case("all_to_all_single, even")
def _(r, n, g, x, y):
    got = torch.zeros_like(x)
    dist.all_to_all_single(got, x, group=g)
    return [got]


@case("all_to_all_single, uneven")
def _(r, n, g, x, y):
    sizes = [(2 * r + to) % 3 for to in range(n)]
    gets = [(2 * other + r) % 3 for other in range(n)]
    rows = torch.cat([x, x * 2])[: sum(sizes)].contiguous()
    got = torch.zeros(sum(gets), 3, dtype=x.dtype)
    dist.all_to_all_single(got, rows, gets, sizes, g)
    return [got]


@case("all_to_all of a list")
def _(r, n, g, x, y):
    got = [torch.zeros_like(y) for _ in range(n)]
    dist.all_to_all(got, [part.contiguous() for part in x.chunk(n)], g)
    return got


@case("broadcast from the last")
def _(r, n, g, x, y):
    dist.broadcast(x, member(g, n - 1), g)
    return [x]


@case("broadcast by a place in the group")
def _(r, n, g, x, y):
    dist.broadcast(x, group=g, group_src=0)
    return [x]


@case("scatter from the last")
def _(r, n, g, x, y):
    dist.scatter(y, [part.contiguous() for part in x.chunk(n)] if r == n - 1 else None, member(g, n - 1), g)
    return [y]


@case("gather to the last")
def _(r, n, g, x, y):
    parts = [torch.zeros_like(y) for _ in range(n)] if r == n - 1 else None
    dist.gather(y, parts, member(g, n - 1), g)
    return parts or []


@case("barrier")
def _(r, n, g, x, y):
    dist.barrier(g)
    return [x]


@case("send and recv, around")
def _(r, n, g, x, y):
    got = torch.zeros_like(y)
    if r == 0:
        dist.send(y, member(g, 1), g)
        dist.recv(got, member(g, n - 1), g)
    else:
        dist.recv(got, member(g, r - 1), g)
        dist.send(y, member(g, (r + 1) % n), g)
    return [got]


@case("send and recv, two in a row")
def _(r, n, g, x, y):
    got = [torch.zeros_like(y), torch.zeros_like(y)]
    if r == 0:
        dist.send(y, member(g, 1), g)
        dist.send(y * 2, member(g, 1), g)
    if r == 1:
        dist.recv(got[0], member(g, 0), g)
        dist.recv(got[1], member(g, 0), g)
    return got


@case("isend and irecv, by tags")
def _(r, n, g, x, y):
    got = [torch.zeros_like(y), torch.zeros_like(y)]
    work = []
    if r == 0:
        work = [dist.isend(y, member(g, 1), g, tag=5), dist.isend(y * 2, member(g, 1), g, tag=7)]
    if r == 1:
        work = [dist.irecv(got[0], member(g, 0), g, tag=7), dist.irecv(got[1], member(g, 0), g, tag=5)]
    for each in work:
        each.wait()
    return got


@case("send and recv between two ranks, in a group and in all")
def _(r, n, g, x, y):
    got = [torch.zeros_like(y), torch.zeros_like(y)]
    work = []
    if r == 0:
        work = [dist.isend(y, member(g, 1), g), dist.isend(y * 2, member(g, 1))]
    if r == 1:
        work = [dist.irecv(got[0], member(g, 0)), dist.irecv(got[1], member(g, 0), g)]
    for each in work:
        each.wait()
    return got if dist.get_world_size() > n else []


@case("batch_isend_irecv, around")
def _(r, n, g, x, y):
    got = torch.zeros_like(y)
    both = [dist.P2POp(dist.isend, y, member(g, (r + 1) % n), g), dist.P2POp(dist.irecv, got, member(g, (r - 1) % n), g)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return [got]


@case("functional all_reduce in place")
def _(r, n, g, x, y):
    return [torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.all_reduce_(x, "sum", g.group_name))]


@case("functional all_reduce_coalesced")
def _(r, n, g, x, y):
    return functional.all_reduce_coalesced([x, y], "sum", g)


@case("functional all_reduce_coalesced in place")
def _(r, n, g, x, y):
    return [torch.ops._c10d_functional.wait_tensor(t) for t in torch.ops._c10d_functional.all_reduce_coalesced_([x, y], "sum", g.group_name)]


@case("functional all_gather_tensor along rows and along columns")
def _(r, n, g, x, y):
    return [functional.all_gather_tensor(y, 0, g), functional.all_gather_tensor(y, 1, g)]


@case("functional all_gather_into_tensor with out")
def _(r, n, g, x, y):
    whole = torch.zeros(n * y.shape[0], y.shape[1], dtype=y.dtype)
    return [torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.all_gather_into_tensor_out(y, n, g.group_name, out=whole)), whole]


@case("functional all_gather_into_tensor_coalesced")
def _(r, n, g, x, y):
    return functional.all_gather_into_tensor_coalesced([x, y], g)


@case("functional reduce_scatter_tensor along columns")
def _(r, n, g, x, y):
    return [functional.reduce_scatter_tensor(x.reshape(3, -1), "sum", 1, g)]


@case("functional reduce_scatter_tensor with out")
def _(r, n, g, x, y):
    return [torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.reduce_scatter_tensor_out(x, "sum", n, g.group_name, out=y)), y]


@case("functional reduce_scatter_tensor_coalesced")
def _(r, n, g, x, y):
    return functional.reduce_scatter_tensor_coalesced([x, x * 2], "sum", [0, 0], g)


@case("functional all_to_all_single, even and uneven")
def _(r, n, g, x, y):
    sizes, gets = [(r + to) % 3 for to in range(n)], [(other + r) % 3 for other in range(n)]
    return [functional.all_to_all_single(x, None, None, g), functional.all_to_all_single(x[: sum(sizes)].contiguous(), gets, sizes, g)]


@case("functional permute_tensor")
def _(r, n, g, x, y):
    return [functional.permute_tensor(x.reshape(-1), [(place + 1) % n for place in range(n)], g)]


@case("functional broadcast")
def _(r, n, g, x, y):
    return [functional.broadcast(x, n - 1, g)]


@case("functional broadcast in place")
def _(r, n, g, x, y):
    return [torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.broadcast_(x, n - 1, g.group_name))]


def _gradients(outputs, *inputs):
    """Outputs and the gradients of their weighed squares: each rank's own loss, as in training."""
    total = sum((output * output * (k + 1.5)).sum() for k, output in enumerate(outputs))
    return [output.detach() for output in outputs] + list(torch.autograd.grad(total, inputs))


@case("gradients of functional all_gather_tensor")
def _(r, n, g, x, y):
    y.requires_grad_()
    return _gradients([functional.all_gather_tensor_autograd(y * y, 0, g)], y)


@case("gradients of functional reduce_scatter_tensor")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([functional.reduce_scatter_tensor_autograd(x * x, "sum", 0, g)], x)


@case("gradients of functional all_to_all_single")
def _(r, n, g, x, y):
    x.requires_grad_()
    sizes = [2] * n
    return _gradients([functional.all_to_all_single_autograd(x * x, sizes, sizes, g)], x)


@case("gradients of functional all_reduce")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([functional.all_reduce(x * x, "sum", g)], x)


@case("gradients of torch.distributed.nn's all_reduce")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([differentiable.all_reduce(x * x, group=g)], x)


# With gloo torch's own backward takes a place in the group for a rank: it raises where the two are not the same.
@case("gradients of torch.distributed.nn's all_gather", SETTINGS[:2])
def _(r, n, g, x, y):
    y.requires_grad_()
    return _gradients(differentiable.all_gather(y * y, g), y)


@case("gradients of torch.distributed.nn's reduce_scatter")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([differentiable.reduce_scatter(torch.zeros_like(y), [part.contiguous() for part in (x * x).chunk(n)], group=g)], x)


@case("gradients of torch.distributed.nn's all_to_all_single")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([differentiable.all_to_all_single(torch.zeros_like(x), x * x, group=g)], x)


@case("gradients of torch.distributed.nn's broadcast")
def _(r, n, g, x, y):
    x.requires_grad_()
    return _gradients([differentiable.broadcast(x * x, member(g, 0), g)], x)


def listed():
    """(name, processes, ranks of the group, function, what gloo says where it lacks it), in one order everywhere."""
    return [("%s, ranks %s" % (name, " ".join(map(str, ranks))), processes, ranks, *rest) for name, rest, settings in _cases for processes, ranks in settings]
