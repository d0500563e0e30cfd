"""How each operator of the table is called, for test_operators.py; beside it what cannot be called, with the reason."""

import random

import numpy
import torch
from torch import nn
from torch.nn import functional as F

A = torch.ops.aten


ROWS, PLANES = torch.arange(24.0).reshape(4, 6), torch.arange(16.0).reshape(1, 4, 2, 2)
INDEX = torch.tensor([2, 0, 3])
COMPLEX = torch.view_as_complex(torch.arange(24.0).reshape(4, 3, 2))


def of(x, *arguments):
    """A call of the method, the function or ATen's operator of that name."""
    return lambda name: (x, lambda t: function_of(name)(t, *arguments))


def function_of(name):
    for owner in (torch.Tensor, torch, F, A):
        if hasattr(owner, name):
            return getattr(owner, name)
    raise AssertionError(f"torch has no {name}")


def listed(*arguments):
    return lambda name: (
        ROWS,
        lambda t: function_of(name)([t, t[1:]] if name != "stack" else [t, t.flip(0)], *arguments),
    )


def spread(x):
    return lambda name: (x, lambda t: getattr(torch, name)(t[:, 0], t[0, :1]))


MOVES = {
    "as_strided": of(ROWS, (2, 3), (6, 2)),
    "as_strided_": of(ROWS, (2, 3), (6, 2)),
    "broadcast_to": of(ROWS, (2, 4, 6)),
    "broadcast_tensors": spread(ROWS),
    "meshgrid": spread(ROWS),
    "chunk": of(ROWS, 2),
    "detach": of(ROWS),
    "detach_": of(ROWS),
    "diagonal": of(ROWS),
    "linalg_diagonal": of(ROWS),
    "dsplit": of(ROWS.reshape(2, 3, 4), 2),
    "expand": of(ROWS, 2, 4, 6),
    "expand_as": of(ROWS, torch.zeros(2, 4, 6)),
    "hsplit": of(ROWS, 2),
    "movedim": of(ROWS, 0, 1),
    "moveaxis": of(ROWS, 0, 1),
    "narrow": of(ROWS, 0, 1, 2),
    "permute": of(ROWS, (1, 0)),
    "select": of(ROWS, 0, 1),
    "slice": of(ROWS, 0, 1, 3),
    "split": of(ROWS, 2),
    "split_with_sizes": of(ROWS, [1, 3]),
    "squeeze": of(ROWS[None]),
    "squeeze_": of(ROWS[None]),
    "swapaxes": of(ROWS, 0, 1),
    "swapaxes_": of(ROWS, 0, 1),
    "swapdims": of(ROWS, 0, 1),
    "swapdims_": of(ROWS, 0, 1),
    "t": of(ROWS),
    "t_": of(ROWS),
    "tensor_split": of(ROWS, 3),
    "transpose": of(ROWS, 0, 1),
    "transpose_": of(ROWS, 0, 1),
    "unbind": of(ROWS),
    "unflatten": of(ROWS, 1, (2, 3)),
    "unsqueeze": of(ROWS, 0),
    "unsqueeze_": of(ROWS, 0),
    "view": of(ROWS, 24),
    "view_as": of(ROWS, torch.zeros(24)),
    "vsplit": of(ROWS, 2),
    "alias": of(ROWS),
    "_reshape_alias": of(ROWS, (24,), (1,)),
    "_unsafe_view": of(ROWS, (24,)),
    "lift": of(ROWS),
    "lift_fresh": of(ROWS),
    "view_as_real": of(COMPLEX),
    "view_as_complex": of(torch.arange(24.0).reshape(4, 3, 2)),
    "real": lambda name: (COMPLEX, lambda z: z.real),
    "imag": lambda name: (COMPLEX, lambda z: z.imag),
    "unsafe_chunk": of(ROWS, 2),
    "unsafe_split": of(ROWS, 2),
    "unsafe_split_with_sizes": of(ROWS, [1, 3]),
    "set_": lambda name: (ROWS, lambda t: torch.empty(0).set_(t)),
    "positive": of(ROWS),
    "atleast_1d": of(ROWS),
    "atleast_2d": of(ROWS),
    "atleast_3d": of(ROWS),
    "contiguous": of(ROWS),
    "flatten": of(ROWS),
    "getitem": lambda name: (ROWS, lambda t: t[1:, INDEX]),
    "ravel": of(ROWS),
    "reshape": of(ROWS, 24),
    "reshape_as": of(ROWS, torch.zeros(24)),
    "cat": listed(),
    "clone": of(ROWS),
    "concat": listed(),
    "concatenate": listed(),
    "column_stack": lambda name: (ROWS, lambda t: torch.column_stack([t, t])),
    "row_stack": listed(),
    "dstack": lambda name: (ROWS, lambda t: torch.dstack([t, t])),
    "hstack": lambda name: (ROWS, lambda t: torch.hstack([t, t])),
    "vstack": listed(),
    "stack": listed(),
    "flip": of(ROWS, (0,)),
    "fliplr": of(ROWS),
    "flipud": of(ROWS),
    "repeat": of(ROWS, 2, 1),
    "repeat_interleave": of(ROWS, 2),
    "roll": of(ROWS, 1),
    "tile": of(ROWS, (2,)),
    "rot90": of(ROWS),
    "index_select": of(ROWS, 0, INDEX),
    "take": of(ROWS, INDEX),
    "take_along_dim": of(ROWS, INDEX[None], 1),
    "narrow_copy": of(ROWS, 0, 1, 2),
    "combinations": of(ROWS[0]),
    "cartesian_prod": lambda name: (ROWS, lambda t: torch.cartesian_prod(t[0], t[1])),
    "pixel_shuffle": of(PLANES, 2),
    "pixel_unshuffle": of(PLANES, 2),
    "channel_shuffle": of(PLANES, 2),
    "select_scatter": lambda name: (ROWS, lambda t: t.select_scatter(t[1], 0, 2)),
    "slice_scatter": lambda name: (ROWS, lambda t: t.slice_scatter(t[:1], 0, 2, 3)),
    "diagonal_scatter": lambda name: (ROWS, lambda t: t.diagonal_scatter(t[0, :4])),
}


# Views by their schema that are no movers.
NO_MOVERS = {
    "to": "casts",
    "_autocast_to_full_precision": "casts",
    "_autocast_to_reduced_precision": "casts",
    "as_tensor": "casts",
    "cpu": "nn.Module has one of that name",
    "cuda": "nn.Module has one of that name",
    "pin_memory": "needs a GPU",
    "unfold": "F.unfold, of that name, pads with zeros",
    "_grad_sum_to_size": "sums",
    "conj": "another number",
    "_conj": "another number",
    "adjoint": "conj of complex numbers",
    "mH": "an attribute",
    "matrix_H": "an attribute",
    "mT": "an attribute",
    "numpy_T": "an attribute",
    "_neg_view": "another number",
    "resolve_conj": "another number",
    "resolve_neg": "another number",
    "__getitem__": "of TorchScript's containers",
    "get": "of TorchScript's containers",
    "keys": "of TorchScript's containers",
    "pop": "of TorchScript's containers",
    "setdefault": "of TorchScript's containers",
    "values": "of dict too",
    "_unwrap_optional": "of TorchScript",
    "indices": "of sparse tensors",
    "_indices": "of sparse tensors",
    "_values": "of sparse tensors",
    "coalesce": "of sparse tensors: sums",
    "ccol_indices": "of sparse tensors",
    "col_indices": "of sparse tensors",
    "crow_indices": "of sparse tensors",
    "row_indices": "of sparse tensors",
    "_sparse_broadcast_to": "of sparse tensors",
    "to_here": "of RPC",
    "local_value": "of RPC",
    "_fw_primal": "of forward mode",
    "_make_dual": "of forward mode",
    "_nested_get_values": "of nested tensors",
    "_nested_view_from_buffer": "of nested tensors",
    "_nested_view_from_jagged": "of nested tensors",
    "_ncf_view": "of named tensors",
    "_ncf_unsqueeze": "of named tensors",
    "slice_inverse": "puts what is there into a larger one",
    "_test_autograd_multiple_dispatch_view": "of torch's own tests",
}


ALLOCATES = {
    "empty": lambda: torch.empty(64),
    "empty_like": lambda: torch.empty_like(torch.zeros(64)),
    "empty_strided": lambda: torch.empty_strided((64,), (1,)),
    "new_empty": lambda: torch.zeros(3).new_empty(64),
    "new_empty_strided": lambda: torch.zeros(3).new_empty_strided((64,), (1,)),
    "empty_permuted": lambda: torch.empty_permuted((8, 8), (1, 0)),
    "zeros": lambda: torch.zeros(64),
    "zeros_like": lambda: torch.zeros_like(ROWS),
    "new_zeros": lambda: ROWS.new_zeros(9),
    "ones": lambda: torch.ones(9),
    "ones_like": lambda: torch.ones_like(ROWS),
    "new_ones": lambda: ROWS.new_ones(9),
    "full": lambda: torch.full((9,), 4.0),
    "full_like": lambda: torch.full_like(ROWS, 4.0),
    "new_full": lambda: ROWS.new_full((9,), 4.0),
    "resize_": lambda: torch.zeros(2).resize_(64),
    "resize_as_": lambda: torch.zeros(2).resize_as_(torch.zeros(64)),
}
QUANTIZED = (
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
    "empty_quantized",
)  # torch fills none of them, whatever it is told


X = torch.rand(3, 8, 8) + 0.1


def rnn(name):
    kind = {"lstm": nn.LSTM, "gru": nn.GRU}.get(name, nn.RNN)
    module = kind(8, 8, 2, nonlinearity="relu") if name == "rnn_relu" else kind(8, 8, 2)
    state = torch.zeros(2, 8, 8)
    first = (state, state) if name == "lstm" else state
    return lambda p: getattr(torch, name)(X, first, module._flat_weights, True, 2, p, True, False, False)


def attention(p):
    return F.multi_head_attention_forward(
        X, X, X, 8, 2, torch.eye(8).repeat(3, 1), torch.zeros(24), None, None, False, p, torch.eye(8), torch.zeros(8)
    )


def init(name, *arguments):
    return lambda: getattr(nn.init, name)(torch.zeros(6, 6), *arguments)


def method(name, *arguments):
    return lambda: getattr(HALF.clone(), name)(*arguments)


HALF = torch.full((8, 8), 0.5)
DROPOUTS = """dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout
    feature_alpha_dropout_ native_dropout""".split()
OF_NUMBER = "poisson exponential geometric gumbel uniform normal lognormal".split()
OF_TWO = "lognormvariate gauss normalvariate betavariate gammavariate weibullvariate".split()
DRAWS = {
    "torch": {
        "normal": lambda: torch.normal(0.0, 1.0, (3,)),
        "multinomial": lambda: HALF.multinomial(2),
        "binomial": lambda: torch.binomial(HALF * 8, HALF),
        "poisson": lambda: torch.poisson(HALF * 8),
        "rand": lambda: torch.rand(3),
        "randn": lambda: torch.randn(3),
        "exponential": lambda: A.exponential(HALF),
        "geometric": lambda: A.geometric(HALF, 0.5),
        "cauchy": lambda: A.cauchy(HALF),
        "log_normal": lambda: A.log_normal(HALF),
        "uniform": lambda: A.uniform(HALF),
        "random": lambda: A.random(HALF),
        "randint": lambda: torch.randint(9, (3,)),
        "sample": lambda: torch.distributions.Normal(0.0, 1.0).sample(),
        "rsample": lambda: torch.distributions.Normal(0.0, 1.0).rsample(),
        "sample_n": lambda: torch.distributions.Normal(0.0, 1.0).sample_n(3),
        "normal_": method("normal_"),
        "log_normal_": method("log_normal_"),
        "uniform_": method("uniform_"),
        "exponential_": method("exponential_"),
        "geometric_": method("geometric_", 0.5),
        "cauchy_": method("cauchy_"),
        "random_": method("random_"),
        "bernoulli": method("bernoulli"),
        "bernoulli_": method("bernoulli_"),
        "orthogonal_": init("orthogonal_"),
        "sparse_": init("sparse_", 0.5),
        "trunc_normal_": init("trunc_normal_"),
        "xavier_uniform_": init("xavier_uniform_"),
        "xavier_normal_": init("xavier_normal_"),
        "kaiming_uniform_": init("kaiming_uniform_"),
        "kaiming_normal_": init("kaiming_normal_"),
        "svd_lowrank": lambda: torch.svd_lowrank(HALF),
        "pca_lowrank": lambda: torch.pca_lowrank(HALF),
        "randperm": lambda: torch.randperm(9),
        "rand_like": lambda: torch.rand_like(HALF),
        "randn_like": lambda: torch.randn_like(HALF),
        "randint_like": lambda: torch.randint_like(HALF, 9),
        **{
            name: (lambda name=name: getattr(F, name)(X)) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")
        },
        **{name: (lambda name=name: function_of(name)(X.clone(), 0.5, True)) for name in DROPOUTS},
        "rrelu": lambda: F.rrelu(-X, training=True),
        "rrelu_": lambda: F.rrelu_(-X, training=True),
        "rrelu_with_noise": lambda: A.rrelu_with_noise(-X, X.clone(), 0.1, 0.3, True),
        "rrelu_with_noise_": lambda: A.rrelu_with_noise_(-X, X.clone(), 0.1, 0.3, True),
        "gumbel_softmax": lambda: F.gumbel_softmax(X),
        "fractional_max_pool2d": lambda: F.fractional_max_pool2d(X[None], 2, output_size=(3, 3)),
        "fractional_max_pool3d": lambda: F.fractional_max_pool3d(
            X[None, None].repeat(1, 1, 2, 1, 1), 2, output_size=(3, 3, 3)
        ),
        "random_split": lambda: torch.utils.data.random_split(range(9), [4, 5]),
        "_standard_gamma": lambda: torch._standard_gamma(HALF),
        "_sample_dirichlet": lambda: torch._sample_dirichlet(HALF),
        "normal_functional": lambda: A.normal_functional(HALF),
    },
    "numpy": {
        **{name: (lambda name=name: getattr(numpy.random, name)(0.5)) for name in OF_NUMBER},
        "multinomial": lambda: numpy.random.multinomial(9, [0.5, 0.5]),
        "binomial": lambda: numpy.random.binomial(9, 0.5),
        "rand": lambda: numpy.random.rand(3),
        "randn": lambda: numpy.random.randn(3),
        "random": lambda: numpy.random.random(3),
        "randint": lambda: numpy.random.randint(9),
        "sample": lambda: numpy.random.sample(3),
        "choice": lambda: numpy.random.choice(9),
        "shuffle": lambda: numpy.random.shuffle([1, 2, 3]),
        "triangular": lambda: numpy.random.triangular(0, 1, 2),
        "standard_normal": lambda: numpy.random.standard_normal(),
        "dirichlet": lambda: numpy.random.dirichlet([1, 2]),
        "multivariate_normal": lambda: numpy.random.multivariate_normal([0], [[1]]),
        "permutation": lambda: numpy.random.permutation(9),
        "integers": lambda: OWN.integers(9),
        "permuted": lambda: OWN.permuted([1, 2, 3]),
    },
    "python": {
        "random": random.random,
        "randint": lambda: random.randint(1, 9),
        "sample": lambda: random.sample(range(9), 3),
        "uniform": lambda: random.uniform(1, 2),
        "choice": lambda: random.choice("abc"),
        "shuffle": lambda: random.shuffle([1, 2, 3]),
        "triangular": random.triangular,
        "choices": lambda: random.choices("abc"),
        "getrandbits": lambda: random.getrandbits(9),
        "randrange": lambda: random.randrange(9),
        "randbytes": lambda: random.randbytes(3),
        "expovariate": lambda: random.expovariate(1.0),
        "vonmisesvariate": lambda: random.vonmisesvariate(1, 1),
        "paretovariate": lambda: random.paretovariate(1),
        **{name: (lambda name=name: getattr(random, name)(1, 1)) for name in OF_TWO},
    },
}
OWN = numpy.random.default_rng(1)
UNDRAWN = {
    "torch": {"_fused_dropout": "needs a GPU"},
    "numpy": {"rvs": "of scipy, which is not installed"},
    "python": {} if hasattr(random, "binomialvariate") else {"binomialvariate": "since Python 3.12"},
}
DRAWS["python"]["binomialvariate"] = lambda: random.binomialvariate(9, 0.5)


ASKED = {
    "scaled_dot_product_attention": lambda p: F.scaled_dot_product_attention(X, X, X, dropout_p=p),
    "multi_head_attention_forward": attention,
    **{name: rnn(name) for name in ("lstm", "gru", "rnn_relu", "rnn_tanh")},
}
ASKED_MODULES = {
    "LSTM": lambda p: (nn.LSTM(8, 8, 2, dropout=p), (X,)),
    "GRU": lambda p: (nn.GRU(8, 8, 2, dropout=p), (X,)),
    "RNN": lambda p: (nn.RNN(8, 8, 2, dropout=p), (X,)),
    "MultiheadAttention": lambda p: (nn.MultiheadAttention(8, 2, dropout=p), (X, X, X)),
    "Transformer": lambda p: (nn.Transformer(8, 2, 1, 1, 8, dropout=p), (X, X)),
    "TransformerEncoderLayer": lambda p: (nn.TransformerEncoderLayer(8, 2, 8, p), (X,)),
    "TransformerDecoderLayer": lambda p: (nn.TransformerDecoderLayer(8, 2, 8, p), (X, X)),
    "TransformerEncoder": lambda p: (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, p), 1), (X,)),
    "TransformerDecoder": lambda p: (nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, p), 1), (X, X)),
}


CUBE, FIRST = torch.ones(1, 3, 3, 3), torch.zeros(1, 3, 3, 3, dtype=torch.long)
QUIET = {
    "initial_seed": torch.initial_seed,
    "get_rng_state": torch.get_rng_state,
    "fork_rng": lambda: torch.random.fork_rng().__enter__(),
    "Generator": torch.Generator,
    "get_rng_state_all": lambda: torch.cuda.get_rng_state_all(),
    "get_state": numpy.random.get_state,
    "RandomState": numpy.random.RandomState,
    "getstate": random.getstate,
    "Random": random.Random,
    "native_dropout_backward": lambda: A.native_dropout_backward(X, X > 0, 2.0),
    "rrelu_with_noise_backward": lambda: A.rrelu_with_noise_backward(X, X, X, 0.1, 0.3, True, False),
    "fractional_max_pool2d_backward": lambda: A.fractional_max_pool2d_backward(
        CUBE[0, :1], X[:1], 2, (3, 3), FIRST[0, :1]
    ),
    "fractional_max_pool3d_backward": lambda: A.fractional_max_pool3d_backward(CUBE, X[None], 2, (3, 3, 3), FIRST),
    **{name: getattr(numpy.random, name) for name in ("SeedSequence", "PCG64", "MT19937", "Philox", "SFC64")},
}


SEEDS = {
    ("seed", "torch"): torch.seed,
    ("manual_seed", "torch"): lambda: torch.manual_seed(5),
    ("set_rng_state", "torch"): lambda: torch.set_rng_state(OLD["torch"]),
    ("set_state", "torch"): lambda: torch.default_generator.set_state(OLD["torch"]),
    ("seed", "numpy"): lambda: numpy.random.seed(5),
    ("set_state", "numpy"): lambda: numpy.random.set_state(OLD["numpy"]),
    ("seed", "python"): lambda: random.seed(5),
    ("setstate", "python"): lambda: random.setstate(OLD["python"]),
}
OLD = {"torch": torch.get_rng_state(), "numpy": numpy.random.get_state(), "python": random.getstate()}
UNSEEDED = {
    "manual_seed_all": "of torch.cuda: needs a GPU",
    "seed_all": "of torch.cuda: needs a GPU",
    "set_rng_state_all": "of torch.cuda: needs a GPU",
    "default_rng": "makes a generator that is the program's own",
}


OVERWRITES = {
    "copy_": (ROWS,),
    "fill_": (3.0,),
    "geometric_": (0.5,),
    "constant_": (2.0,),
    "sparse_": (0.5,),
}


STATISTICS = {
    "batch_norm": lambda mean, var: F.batch_norm(X, mean, var, training=True),
    "native_batch_norm": lambda mean, var: torch.native_batch_norm(X, None, None, mean, var, True, 0.1, 1e-5),
    "_native_batch_norm_legit": lambda mean, var: torch._native_batch_norm_legit(
        X, None, None, mean, var, True, 0.1, 1e-5
    ),
    "_batch_norm_with_update": lambda mean, var: A._batch_norm_with_update(
        X, torch.ones(8), torch.zeros(8), mean, var, 0.1, 1e-5
    ),
    "batch_norm_update_stats": lambda mean, var: torch.batch_norm_update_stats(X, mean, var, 0.1),
}
ON_GPU = ("cudnn_batch_norm", "miopen_batch_norm", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts")


ELEMENTS = {
    "is_same_size": (ROWS,),
    "_has_same_storage_numel": (ROWS,),
    "sym_size": (0,),
    "sym_stride": (0,),
}
NO_ELEMENTS = {
    "record_stream": "needs a GPU",
    "is_pinned": "asks an accelerator",
    "is_coalesced": "of sparse tensors",
    "is_set_to": "has no kernel for meta",
}


# An operator that reads an element fails on the device meta, whose tensors have none.
META = torch.empty(4, 6, device="meta")


W = torch.arange(1.0, 5.0).reshape(2, 2)
N = torch.tensor([1, 2])
OPERATORS = {
    "add": [lambda: W + 1, lambda: W.clone().__iadd__(1)],
    "sub": [lambda: W - 1, lambda: 1 - W],
    "mul": [lambda: W * 2],
    "div": [lambda: W / 2, lambda: 1 / W],
    "floordiv": [lambda: N // 2],
    "mod": [lambda: N % 2],
    "pow": [lambda: W**2, lambda: 2**W],
    "matmul": [lambda: W @ W, lambda: W @ W[0], lambda: W[0] @ W[0], lambda: W[None] @ W[None]],
    "lshift": [lambda: N << 1, lambda: 1 << N, lambda: N.clone().__ilshift__(1)],
    "rshift": [lambda: N >> 1, lambda: 1 >> N, lambda: N.clone().__irshift__(1)],
    "and": [lambda: N & 1],
    "or": [lambda: N | 1],
    "xor": [lambda: N ^ 1],
    "neg": [lambda: -W],
    "invert": [lambda: ~N],
    "lt": [lambda: W < 1],
    "le": [lambda: W <= 1],
    "gt": [lambda: W > 1],
    "ge": [lambda: W >= 1],
    "eq": [lambda: W == 1],
    "ne": [lambda: W != 1],
    "iter": [lambda: list(W)],
    "getitem": [lambda: W[0], lambda: W[0:1], lambda: W[N - 1], lambda: W[W > 1], lambda: W[None], lambda: W[...]],
    "setitem": [
        lambda: W.clone().__setitem__(0, 1.0),
        lambda: W.clone().__setitem__(W > 1, 2.0),
        lambda: W.clone().__setitem__(slice(0, 1), W[1:]),
    ],
}
