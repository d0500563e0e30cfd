"""The table of operators says what torch does: every property of every row is measured by a call, where one can be made.

UNCALLED names the others, with the reason."""

import os
import random
import subprocess
import sys
import warnings

import numpy
import pytest
import torch
from conftest import ROOT, build_dir
from torch import nn
from torch.nn import functional as F
from torch.nn import utils
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(ROOT / "src" / "operators"))
import generate  # noqa: E402

warnings.filterwarnings("ignore")
SOURCE = ROOT / "src" / "operators" / "operators.txt"
TABLE = dict(generate.rows(SOURCE.read_text()))
A = torch.ops.aten


def names(column, *values):
    return [name for name, row in TABLE.items() if column in row and (not values or set(values) & set(row[column]))]


def called(column, *values, uncalled=()):
    """The names of a column that can be called. Each of `uncalled` is one that cannot."""
    found = names(column, *values)
    assert set(uncalled) <= set(found), f"not in the table: {set(uncalled) - set(found)}"
    return [name for name in found if name not in uncalled]


# ---- moves: the operator commutes with every map of values, since it looks at none

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
    return lambda name: (ROWS, lambda t: function_of(name)([t, t[1:]] if name != "stack" else [t, t.flip(0)], *arguments))


def spread(x):
    return lambda name: (x, lambda t: getattr(torch, name)(t[:, 0], t[0, :1]))


MOVES = {
    "as_strided": of(ROWS, (2, 3), (6, 2)), "as_strided_": of(ROWS, (2, 3), (6, 2)), "broadcast_to": of(ROWS, (2, 4, 6)),
    "broadcast_tensors": spread(ROWS), "meshgrid": spread(ROWS), "chunk": of(ROWS, 2), "detach": of(ROWS), "detach_": of(ROWS), "diagonal": of(ROWS),
    "linalg_diagonal": of(ROWS), "dsplit": of(ROWS.reshape(2, 3, 4), 2), "expand": of(ROWS, 2, 4, 6), "expand_as": of(ROWS, torch.zeros(2, 4, 6)),
    "hsplit": of(ROWS, 2), "movedim": of(ROWS, 0, 1), "moveaxis": of(ROWS, 0, 1), "narrow": of(ROWS, 0, 1, 2), "permute": of(ROWS, (1, 0)),
    "select": of(ROWS, 0, 1), "slice": of(ROWS, 0, 1, 3), "split": of(ROWS, 2), "split_with_sizes": of(ROWS, [1, 3]), "squeeze": of(ROWS[None]),
    "squeeze_": of(ROWS[None]), "swapaxes": of(ROWS, 0, 1), "swapaxes_": of(ROWS, 0, 1), "swapdims": of(ROWS, 0, 1), "swapdims_": of(ROWS, 0, 1),
    "t": of(ROWS), "t_": of(ROWS), "tensor_split": of(ROWS, 3), "transpose": of(ROWS, 0, 1), "transpose_": of(ROWS, 0, 1), "unbind": of(ROWS),
    "unflatten": of(ROWS, 1, (2, 3)), "unsqueeze": of(ROWS, 0), "unsqueeze_": of(ROWS, 0), "view": of(ROWS, 24), "view_as": of(ROWS, torch.zeros(24)),
    "vsplit": of(ROWS, 2), "alias": of(ROWS), "_reshape_alias": of(ROWS, (24,), (1,)), "_unsafe_view": of(ROWS, (24,)), "lift": of(ROWS), "lift_fresh": of(ROWS),
    "view_as_real": of(COMPLEX), "view_as_complex": of(torch.arange(24.0).reshape(4, 3, 2)), "real": lambda name: (COMPLEX, lambda z: z.real),
    "imag": lambda name: (COMPLEX, lambda z: z.imag), "unsafe_chunk": of(ROWS, 2), "unsafe_split": of(ROWS, 2), "unsafe_split_with_sizes": of(ROWS, [1, 3]),
    "set_": lambda name: (ROWS, lambda t: torch.empty(0).set_(t)), "positive": of(ROWS), "atleast_1d": of(ROWS), "atleast_2d": of(ROWS), "atleast_3d": of(ROWS),
    "contiguous": of(ROWS), "flatten": of(ROWS), "getitem": lambda name: (ROWS, lambda t: t[1:, INDEX]), "ravel": of(ROWS), "reshape": of(ROWS, 24),
    "reshape_as": of(ROWS, torch.zeros(24)), "cat": listed(), "clone": of(ROWS), "concat": listed(), "concatenate": listed(), "column_stack": lambda name: (ROWS, lambda t: torch.column_stack([t, t])),
    "row_stack": listed(), "dstack": lambda name: (ROWS, lambda t: torch.dstack([t, t])), "hstack": lambda name: (ROWS, lambda t: torch.hstack([t, t])), "vstack": listed(),
    "stack": listed(), "flip": of(ROWS, (0,)), "fliplr": of(ROWS), "flipud": of(ROWS), "repeat": of(ROWS, 2, 1), "repeat_interleave": of(ROWS, 2), "roll": of(ROWS, 1),
    "tile": of(ROWS, (2,)), "rot90": of(ROWS), "index_select": of(ROWS, 0, INDEX), "take": of(ROWS, INDEX), "take_along_dim": of(ROWS, INDEX[None], 1),
    "narrow_copy": of(ROWS, 0, 1, 2), "combinations": of(ROWS[0]), "cartesian_prod": lambda name: (ROWS, lambda t: torch.cartesian_prod(t[0], t[1])),
    "pixel_shuffle": of(PLANES, 2), "pixel_unshuffle": of(PLANES, 2), "channel_shuffle": of(PLANES, 2),
    "select_scatter": lambda name: (ROWS, lambda t: t.select_scatter(t[1], 0, 2)), "slice_scatter": lambda name: (ROWS, lambda t: t.slice_scatter(t[:1], 0, 2, 3)),
    "diagonal_scatter": lambda name: (ROWS, lambda t: t.diagonal_scatter(t[0, :4])),
}  # fmt: skip


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else [t for part in value for t in tensors(part)]


def renamed(t):
    """Other values in the same places: no order, sum or sign of the old ones is kept."""
    if t.is_complex():
        return torch.view_as_complex(renamed(torch.view_as_real(t).contiguous()))
    return (t * 7 + 3) % 25 - 11


def block(t):
    return t.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", names("moves"))
def test_a_mover_looks_at_no_value(name):
    x, call = MOVES[name](name)
    given, other = x.clone(), renamed(x)
    of_given, of_other = tensors(call(given)), tensors(call(other))
    assert of_given and all(torch.equal(renamed(a), b) for a, b in zip(of_given, of_other, strict=True))
    shared = {block(t) == block(given) for t in of_given}
    kind = TABLE[name]["moves"][0]
    if name in ("broadcast_tensors", "meshgrid"):
        assert shared == {True}
    assert kind == "either" or shared == {kind == "view"}


def test_either_is_a_view_and_a_copy():
    turned = ROWS.t()
    for name in ("contiguous", "flatten", "ravel", "reshape", "reshape_as"):
        arguments = {"reshape": (24,), "reshape_as": (torch.zeros(24),)}.get(name, ())
        assert block(getattr(ROWS, name)(*arguments)) == block(ROWS) != block(getattr(turned, name)(*arguments)), name
    assert block(ROWS[1:]) == block(ROWS) != block(ROWS[INDEX])
    # Always a view, of tensors alone; of a number they make a tensor.
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        assert block(getattr(torch, name)(ROWS)) == block(ROWS)


@pytest.mark.parametrize("call", [
    lambda t: t + t, torch.relu, torch.sort, lambda t: t.triu(), lambda t: t.to(torch.float64) / 3, torch.abs, lambda t: t.masked_fill(t > 3, 0.0),
    lambda t: F.unfold(t[None, None], 2, padding=1), lambda t: torch.cummax(t, 0).values,
])  # fmt: skip
def test_the_measure_of_movers_finds_what_computes(call):
    def first(value):
        return value if isinstance(value, torch.Tensor) else value[0]

    assert not torch.equal(renamed(first(call(ROWS.clone()))), first(call(renamed(ROWS))))


# Views by their schema that are no movers.
NO_MOVERS = {
    "to": "casts", "_autocast_to_full_precision": "casts", "_autocast_to_reduced_precision": "casts", "as_tensor": "casts",
    "cpu": "nn.Module has one of that name", "cuda": "nn.Module has one of that name", "pin_memory": "needs a GPU",
    "unfold": "F.unfold, of that name, pads with zeros", "_grad_sum_to_size": "sums",
    "conj": "another number", "_conj": "another number", "adjoint": "conj of complex numbers", "mH": "an attribute", "matrix_H": "an attribute",
    "mT": "an attribute", "numpy_T": "an attribute", "_neg_view": "another number", "resolve_conj": "another number", "resolve_neg": "another number",
    "__getitem__": "of TorchScript's containers", "get": "of TorchScript's containers", "keys": "of TorchScript's containers",
    "pop": "of TorchScript's containers", "setdefault": "of TorchScript's containers", "values": "of dict too", "_unwrap_optional": "of TorchScript",
    "indices": "of sparse tensors", "_indices": "of sparse tensors", "_values": "of sparse tensors", "coalesce": "of sparse tensors: sums",
    "ccol_indices": "of sparse tensors", "col_indices": "of sparse tensors", "crow_indices": "of sparse tensors", "row_indices": "of sparse tensors",
    "_sparse_broadcast_to": "of sparse tensors", "to_here": "of RPC", "local_value": "of RPC", "_fw_primal": "of forward mode", "_make_dual": "of forward mode",
    "_nested_get_values": "of nested tensors", "_nested_view_from_buffer": "of nested tensors", "_nested_view_from_jagged": "of nested tensors",
    "_ncf_view": "of named tensors", "_ncf_unsqueeze": "of named tensors", "slice_inverse": "puts what is there into a larger one",
    "_test_autograd_multiple_dispatch_view": "of torch's own tests",
}  # fmt: skip


def schemas():
    return [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]


def tagged(tag):
    found = set()
    for schema in schemas():
        overload = getattr(getattr(A, schema.name[6:], None), schema.overload_name or "default", None)
        if tag in getattr(overload, "tags", ()):
            found.add(schema.name[6:])
    return found


def test_every_view_of_torchs_schemas_is_in_the_table():
    views = {s.name[6:] for s in schemas() if s.returns and all(r.alias_info and not r.alias_info.is_write for r in s.returns)}
    assert views - set(names("moves")) - set(NO_MOVERS) == set()
    looks = {"resize_", "resize_as_"}
    assert tagged(torch.Tag.inplace_view) - looks <= set(names("moves", "view")) and looks <= set(names("allocates", "resized"))


# ---- allocates

ALLOCATES = {
    "empty": lambda: torch.empty(64), "empty_like": lambda: torch.empty_like(torch.zeros(64)), "empty_strided": lambda: torch.empty_strided((64,), (1,)),
    "new_empty": lambda: torch.zeros(3).new_empty(64), "new_empty_strided": lambda: torch.zeros(3).new_empty_strided((64,), (1,)),
    "empty_permuted": lambda: torch.empty_permuted((8, 8), (1, 0)), "zeros": lambda: torch.zeros(64), "zeros_like": lambda: torch.zeros_like(ROWS),
    "new_zeros": lambda: ROWS.new_zeros(9), "ones": lambda: torch.ones(9), "ones_like": lambda: torch.ones_like(ROWS), "new_ones": lambda: ROWS.new_ones(9),
    "full": lambda: torch.full((9,), 4.0), "full_like": lambda: torch.full_like(ROWS, 4.0), "new_full": lambda: ROWS.new_full((9,), 4.0),
    "resize_": lambda: torch.zeros(2).resize_(64), "resize_as_": lambda: torch.zeros(2).resize_as_(torch.zeros(64)),
}  # fmt: skip
QUANTIZED = ("_empty_affine_quantized", "_empty_per_channel_affine_quantized", "empty_quantized")  # torch fills none of them, whatever it is told


@pytest.fixture
def filled_memory():
    """Torch fills with NaN what it would leave as it finds it."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", called("allocates", uncalled=QUANTIZED))
def test_what_is_allocated(name, filled_memory):
    kind, made = TABLE[name]["allocates"][0], ALLOCATES[name]()
    if kind == "resized":
        assert not made[:2].any() and made[2:].isnan().all()
    elif kind == "garbage":
        assert made.isnan().all()
    else:
        assert not made.isnan().any() and len(made.unique()) == 1


def test_every_empty_of_torch_is_in_the_table():
    empties = {s.name[6:] for s in schemas() if "empty" in s.name and any("Tensor" in str(r.type) for r in s.returns)}
    assert empties <= set(names("allocates", "garbage"))


# ---- draws, seeds: the state of a generator before and after

X = torch.rand(3, 8, 8) + 0.1
LAYER = dict(d_model=8, nhead=2, dim_feedforward=8)
RNN = nn.LSTM(4, 4, 2), torch.zeros(2, 2, 4)


def rnn(name):
    module = {"lstm": nn.LSTM, "gru": nn.GRU}.get(name, nn.RNN)(8, 8, 2, nonlinearity="relu" if name == "rnn_relu" else "tanh") if name.startswith("rnn") else {"lstm": nn.LSTM, "gru": nn.GRU}[name](8, 8, 2)
    state = torch.zeros(2, 8, 8)
    return lambda p: getattr(torch, name)(X, (state, state) if name == "lstm" else state, module._flat_weights, True, 2, p, True, False, False)


def attention(p):
    return F.multi_head_attention_forward(X, X, X, 8, 2, torch.eye(8).repeat(3, 1), torch.zeros(24), None, None, False, p, torch.eye(8), torch.zeros(8))


def init(name, *arguments):
    return lambda: getattr(nn.init, name)(torch.zeros(6, 6), *arguments)


def method(name, *arguments):
    return lambda: getattr(torch.rand(8, 8) if False else torch.full((8, 8), 0.5), name)(*arguments)


HALF = torch.full((8, 8), 0.5)
DRAWS = {"torch": {
    "normal": lambda: torch.normal(0.0, 1.0, (3,)), "multinomial": lambda: HALF.multinomial(2), "binomial": lambda: torch.binomial(HALF * 8, HALF),
    "poisson": lambda: torch.poisson(HALF * 8), "rand": lambda: torch.rand(3), "randn": lambda: torch.randn(3), "exponential": lambda: A.exponential(HALF),
    "geometric": lambda: A.geometric(HALF, 0.5), "cauchy": lambda: A.cauchy(HALF), "log_normal": lambda: A.log_normal(HALF), "uniform": lambda: A.uniform(HALF), "random": lambda: A.random(HALF),
    "randint": lambda: torch.randint(9, (3,)), "sample": lambda: torch.distributions.Normal(0.0, 1.0).sample(), "rsample": lambda: torch.distributions.Normal(0.0, 1.0).rsample(),
    "sample_n": lambda: torch.distributions.Normal(0.0, 1.0).sample_n(3), "normal_": method("normal_"), "log_normal_": method("log_normal_"), "uniform_": method("uniform_"),
    "exponential_": method("exponential_"), "geometric_": method("geometric_", 0.5), "cauchy_": method("cauchy_"), "random_": method("random_"),
    "bernoulli": method("bernoulli"), "bernoulli_": method("bernoulli_"), "orthogonal_": init("orthogonal_"), "sparse_": init("sparse_", 0.5),
    "trunc_normal_": init("trunc_normal_"), "xavier_uniform_": init("xavier_uniform_"), "xavier_normal_": init("xavier_normal_"),
    "kaiming_uniform_": init("kaiming_uniform_"), "kaiming_normal_": init("kaiming_normal_"), "svd_lowrank": lambda: torch.svd_lowrank(HALF), "pca_lowrank": lambda: torch.pca_lowrank(HALF),
    "randperm": lambda: torch.randperm(9), "rand_like": lambda: torch.rand_like(HALF), "randn_like": lambda: torch.randn_like(HALF), "randint_like": lambda: torch.randint_like(HALF, 9),
    **{name: (lambda name=name: getattr(F, name)(X)) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")},
    **{name: (lambda name=name: function_of(name)(X.clone(), 0.5, True)) for name in ("dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout")},
    "rrelu": lambda: F.rrelu(-X, training=True), "rrelu_": lambda: F.rrelu_(-X, training=True), "rrelu_with_noise": lambda: A.rrelu_with_noise(-X, X.clone(), 0.1, 0.3, True),
    "rrelu_with_noise_": lambda: A.rrelu_with_noise_(-X, X.clone(), 0.1, 0.3, True), "gumbel_softmax": lambda: F.gumbel_softmax(X),
    "fractional_max_pool2d": lambda: F.fractional_max_pool2d(X[None], 2, output_size=(3, 3)), "fractional_max_pool3d": lambda: F.fractional_max_pool3d(X[None, None].repeat(1, 1, 2, 1, 1), 2, output_size=(3, 3, 3)),
    "random_split": lambda: torch.utils.data.random_split(range(9), [4, 5]), "_standard_gamma": lambda: torch._standard_gamma(HALF), "_sample_dirichlet": lambda: torch._sample_dirichlet(HALF),
    "normal_functional": lambda: A.normal_functional(HALF),
}, "numpy": {
    **{name: (lambda name=name: getattr(numpy.random, name)(0.5)) for name in ("poisson", "exponential", "geometric", "gumbel", "uniform", "normal", "lognormal")},
    "multinomial": lambda: numpy.random.multinomial(9, [0.5, 0.5]), "binomial": lambda: numpy.random.binomial(9, 0.5), "rand": lambda: numpy.random.rand(3), "randn": lambda: numpy.random.randn(3),
    "random": lambda: numpy.random.random(3), "randint": lambda: numpy.random.randint(9), "sample": lambda: numpy.random.sample(3), "choice": lambda: numpy.random.choice(9),
    "shuffle": lambda: numpy.random.shuffle([1, 2, 3]), "triangular": lambda: numpy.random.triangular(0, 1, 2), "standard_normal": lambda: numpy.random.standard_normal(),
    "dirichlet": lambda: numpy.random.dirichlet([1, 2]), "multivariate_normal": lambda: numpy.random.multivariate_normal([0], [[1]]), "permutation": lambda: numpy.random.permutation(9),
    "integers": lambda: OWN.integers(9), "permuted": lambda: OWN.permuted([1, 2, 3]),
}, "python": {
    "random": random.random, "randint": lambda: random.randint(1, 9), "sample": lambda: random.sample(range(9), 3), "uniform": lambda: random.uniform(1, 2), "choice": lambda: random.choice("abc"),
    "shuffle": lambda: random.shuffle([1, 2, 3]), "triangular": random.triangular, "choices": lambda: random.choices("abc"), "getrandbits": lambda: random.getrandbits(9),
    "randrange": lambda: random.randrange(9), "randbytes": lambda: random.randbytes(3), "expovariate": lambda: random.expovariate(1.0), "vonmisesvariate": lambda: random.vonmisesvariate(1, 1),
    "paretovariate": lambda: random.paretovariate(1), **{name: (lambda name=name: getattr(random, name)(1, 1)) for name in ("lognormvariate", "gauss", "normalvariate", "betavariate", "gammavariate", "weibullvariate")},
}}  # fmt: skip
OWN = numpy.random.default_rng(1)
UNDRAWN = {
    "torch": {"_fused_dropout": "needs a GPU"},
    "numpy": {"rvs": "of scipy, which is not installed"},
    "python": {} if hasattr(random, "binomialvariate") else {"binomialvariate": "since Python 3.12"},
}
DRAWS["python"]["binomialvariate"] = lambda: random.binomialvariate(9, 0.5)


def states():
    whole = numpy.random.get_state()
    return {"torch": torch.get_rng_state().numpy().tobytes(), "python": random.getstate(),
            "numpy": (whole[1].tobytes(), whole[2:], str(OWN.bit_generator.state))}  # fmt: skip


def moved(call):
    """The generators that a call moves."""
    before = states()
    call()
    after = states()
    return {library for library in before if before[library] != after[library]}


@pytest.mark.parametrize("library", ["torch", "numpy", "python"])
def test_what_draws_moves_its_librarys_generator_alone(library):
    for name in called("draws", library, uncalled=UNDRAWN[library]):
        if name == "gauss":
            random.seed(1)  # it makes two numbers at a time
        assert moved(DRAWS[library][name]) == {library}, name


ASKED = {
    "scaled_dot_product_attention": lambda p: F.scaled_dot_product_attention(X, X, X, dropout_p=p), "multi_head_attention_forward": attention,
    **{name: rnn(name) for name in ("lstm", "gru", "rnn_relu", "rnn_tanh")},
}  # fmt: skip
ASKED_MODULES = {
    "LSTM": lambda p: (nn.LSTM(8, 8, 2, dropout=p), (X,)), "GRU": lambda p: (nn.GRU(8, 8, 2, dropout=p), (X,)), "RNN": lambda p: (nn.RNN(8, 8, 2, dropout=p), (X,)),
    "MultiheadAttention": lambda p: (nn.MultiheadAttention(8, 2, dropout=p), (X, X, X)), "Transformer": lambda p: (nn.Transformer(8, 2, 1, 1, 8, dropout=p), (X, X)),
    "TransformerEncoderLayer": lambda p: (nn.TransformerEncoderLayer(8, 2, 8, p), (X,)), "TransformerDecoderLayer": lambda p: (nn.TransformerDecoderLayer(8, 2, 8, p), (X, X)),
    "TransformerEncoder": lambda p: (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, p), 1), (X,)),
    "TransformerDecoder": lambda p: (nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, p), 1), (X, X)),
}  # fmt: skip


def test_what_draws_only_where_it_is_asked():
    assert set(ASKED) | set(ASKED_MODULES) == set(names("draws", "asked"))
    for name, call in ASKED.items():
        assert moved(lambda: call(0.5)) == {"torch"} and moved(lambda: call(0.0)) == set(), name
    for name, make in ASKED_MODULES.items():
        for p, expected in ((0.5, {"torch"}), (0.0, set())):
            module, arguments = make(p)
            assert moved(lambda: module(*arguments)) == expected, name
            assert moved(lambda: module.eval()(*arguments)) == set(), name


QUIET = {
    "initial_seed": torch.initial_seed, "get_rng_state": torch.get_rng_state, "fork_rng": lambda: torch.random.fork_rng().__enter__(), "Generator": torch.Generator,
    "get_rng_state_all": lambda: torch.cuda.get_rng_state_all(), "get_state": numpy.random.get_state, "RandomState": numpy.random.RandomState, "getstate": random.getstate,
    "Random": random.Random, "native_dropout_backward": lambda: A.native_dropout_backward(X, X > 0, 2.0), "rrelu_with_noise_backward": lambda: A.rrelu_with_noise_backward(X, X, X, 0.1, 0.3, True, False),
    "fractional_max_pool2d_backward": lambda: A.fractional_max_pool2d_backward(torch.ones(1, 3, 3), X[:1], 2, (3, 3), torch.zeros(1, 3, 3, dtype=torch.long)),
    "fractional_max_pool3d_backward": lambda: A.fractional_max_pool3d_backward(torch.ones(1, 3, 3, 3), X[None][:, :3].repeat(1, 2, 1, 1)[:, :8], 2, (3, 3, 3), torch.zeros(1, 3, 3, 3, dtype=torch.long)),
    **{name: getattr(numpy.random, name) for name in ("SeedSequence", "PCG64", "MT19937", "Philox", "SFC64")},
}  # fmt: skip


@pytest.mark.parametrize("name", names("draws", "none"))
def test_what_draws_nothing_though_its_name_says_so(name):
    assert moved(QUIET[name]) == set()


def test_everything_that_torch_tags_as_seeded_is_in_the_table():
    """Names that begin with _ are no names that programs write."""
    seeded = {name for name in tagged(torch.Tag.nondeterministic_seeded) if not name.startswith("_")}
    others = {"miopen_rnn", "rrelu_with_noise_functional"}  # of AMD's devices; of functionalized graphs
    assert seeded - others <= set(names("draws", "torch", "asked"))


SEEDS = {
    ("seed", "torch"): torch.seed, ("manual_seed", "torch"): lambda: torch.manual_seed(5), ("set_rng_state", "torch"): lambda: torch.set_rng_state(OLD["torch"]),
    ("set_state", "torch"): lambda: torch.default_generator.set_state(OLD["torch"]), ("seed", "numpy"): lambda: numpy.random.seed(5),
    ("set_state", "numpy"): lambda: numpy.random.set_state(OLD["numpy"]), ("seed", "python"): lambda: random.seed(5), ("setstate", "python"): lambda: random.setstate(OLD["python"]),
}  # fmt: skip
OLD = {"torch": torch.get_rng_state(), "numpy": numpy.random.get_state(), "python": random.getstate()}
UNSEEDED = {
    "manual_seed_all": "of torch.cuda: needs a GPU", "seed_all": "of torch.cuda: needs a GPU", "set_rng_state_all": "of torch.cuda: needs a GPU",
    "default_rng": "makes a generator that is the program's own",
}  # fmt: skip


def test_what_seeds_sets_the_same_state_whatever_it_was():
    pairs = {(name, library) for name in names("seeds") for library in TABLE[name]["seeds"] if name not in UNSEEDED}
    assert pairs == set(SEEDS)
    for (name, library), seed in SEEDS.items():
        found = []
        for draws in (1, 2):
            for _ in range(draws):
                torch.rand(1), numpy.random.rand(), random.random()
            assert moved(seed) == {library}, name
            found.append(states()[library])
        assert (found[0] == found[1]) == ((name, library) != ("seed", "torch")), name  # torch.seed takes a number by chance
    for name in ("manual_seed_all", "seed_all", "set_rng_state_all"):
        assert callable(getattr(torch.cuda, name))
    assert numpy.random.default_rng(5).random() == numpy.random.default_rng(5).random()


# ---- overwrites: what was there has no part in the result

OVERWRITES = {
    "copy_": (ROWS,), "fill_": (3.0,), "geometric_": (0.5,), "constant_": (2.0,), "sparse_": (0.5,),
}  # fmt: skip


@pytest.mark.parametrize("name", names("overwrites"))
def test_what_is_overwritten(name):
    for way in TABLE[name]["overwrites"]:
        found = []
        for value in (1.0, float("nan")):
            torch.manual_seed(3)
            there = torch.full((4, 6, 3, 3) if name == "dirac_" else (4, 6), value)
            if way == "list":
                arguments = ([there, there.clone()], *(() if name == "_foreach_zero_" else ([ROWS, ROWS],)))
                getattr(torch, name)(*arguments)
            else:
                getattr(there if way == "self" else nn.init, name)(*(() if way == "self" else (there,)), *OVERWRITES.get(name, ()))
            found.append(there)
        assert torch.equal(*found) and not found[1].isnan().any(), way


@pytest.mark.parametrize("name", ["add_", "mul_", "masked_fill_", "squeeze_", "relu_", "index_fill_"])
def test_what_is_not_overwritten(name):
    arguments = {"add_": (1,), "mul_": (2,), "masked_fill_": (ROWS > 3, 0.0), "index_fill_": (0, INDEX, 1.0)}.get(name, ())
    found = [getattr(torch.full((4, 6), value), name)(*arguments) for value in (1.0, 2.0)]
    assert name not in names("overwrites") and not torch.equal(*found)


# ---- uncounted, parameters

STATISTICS = {
    "batch_norm": lambda mean, var: F.batch_norm(X, mean, var, training=True), 
    "native_batch_norm": lambda mean, var: torch.native_batch_norm(X, None, None, mean, var, True, 0.1, 1e-5),
    "_native_batch_norm_legit": lambda mean, var: torch._native_batch_norm_legit(X, None, None, mean, var, True, 0.1, 1e-5),
    "_batch_norm_with_update": lambda mean, var: A._batch_norm_with_update(X, torch.ones(8), torch.zeros(8), mean, var, 0.1, 1e-5),
    "batch_norm_update_stats": lambda mean, var: torch.batch_norm_update_stats(X, mean, var, 0.1),
}  # fmt: skip
ON_GPU = ("cudnn_batch_norm", "miopen_batch_norm", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts")


@pytest.mark.parametrize("name", called("uncounted", "statistics", uncalled=ON_GPU))
def test_running_statistics_change_uncounted(name):
    mean, var = torch.zeros(8), torch.ones(8)
    STATISTICS[name](mean, var)
    assert mean.any() and mean._version == 0


def test_instance_norm_counts_what_it_writes():
    mean, var = torch.zeros(8), torch.ones(8)
    F.instance_norm(X, mean, var)
    assert mean.any() and mean._version > 0 and "instance_norm" not in TABLE


def test_what_converts_a_module_goes_through_apply(monkeypatch):
    module = nn.Linear(2, 2)
    weight, old, version = module.weight, module.weight.detach().clone(), module.weight._version
    module._apply(lambda t: t * 2)
    assert module.weight is weight and torch.equal(weight, old * 2) and weight._version == version
    through = []
    monkeypatch.setattr(nn.Module, "_apply", lambda self, *args, **kwargs: through.append(1) or self)
    for name in names("uncounted", "module"):
        if name != "_apply":
            arguments = {"to": (torch.float16,), "type": (torch.float16,), "to_empty": ()}.get(name, ())
            getattr(module, name)(*arguments, **({"device": "meta"} if name == "to_empty" else {}))
            assert through.pop(), name
    for name in ("eval", "requires_grad_", "zero_grad", "state_dict"):
        getattr(module, name)()
        assert not through, name


def test_vector_to_parameters_replaces_data_uncounted():
    assert names("uncounted", "parameters") == ["vector_to_parameters"]
    weight = nn.Parameter(torch.zeros(3))
    utils.vector_to_parameters(torch.ones(3), [weight])
    assert weight.detach().all() and weight._version == 0


@pytest.mark.parametrize("name", names("parameters"))
def test_what_lists_its_iterator(name):
    weights = [nn.Parameter(torch.ones(3)) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.full((3,), 9.0)
    arguments = {"clip_grads_with_norm_": (0.1, torch.tensor(9.0)), "get_total_norm": (), "parameters_to_vector": ()}.get(name, (0.1,))
    iterator = iter(weights)
    owner = utils if hasattr(utils, name) else utils.clip_grad
    if name == "vector_to_parameters":
        utils.vector_to_parameters(torch.zeros(6), iterator)
    else:
        getattr(owner, name)(iterator, *arguments)
    assert next(iterator, None) is None
    clipped = [not torch.equal(weight.grad, torch.full((3,), 9.0)) for weight in weights]
    assert clipped == [TABLE[name]["parameters"] == ("clips",)] * 2


# ---- elements

ELEMENTS = {
    "is_same_size": (ROWS,), "_has_same_storage_numel": (ROWS,), "sym_size": (0,), "sym_stride": (0,),
}  # fmt: skip
NO_ELEMENTS = {"record_stream": "needs a GPU", "is_pinned": "asks an accelerator", "is_coalesced": "of sparse tensors", "is_set_to": "has no kernel for meta"}


class Metas:
    """An operator that reads an element fails on the device meta, whose tensors have none."""

    tensor = torch.empty(4, 6, device="meta")


@pytest.mark.parametrize("name", called("elements", "none", uncalled=NO_ELEMENTS))
def test_what_touches_no_element(name):
    x = Metas.tensor
    version = x._version
    found = getattr(x, name, None)
    if name == "_zerotensor":
        found = x._is_zerotensor
    if found is None:
        found = lambda *arguments: getattr(A, name)(x, *arguments)  # noqa: E731
    arguments = tuple(Metas.tensor if argument is ROWS else argument for argument in ELEMENTS.get(name, ()))
    result = found(*arguments) if callable(found) else found
    assert result is x or not isinstance(result, torch.Tensor)
    assert x._version == version


def test_the_measure_of_elements_finds_what_reads():
    for name in ("item", "tolist", "any"):
        with pytest.raises((RuntimeError, NotImplementedError, AssertionError)):
            result = getattr(Metas.tensor[:1, :1], name)()
            assert not isinstance(result, torch.Tensor)


@pytest.mark.parametrize("name", names("elements", "array"))
def test_what_hands_out_an_array(name):
    array = getattr(ROWS, name)()
    assert isinstance(array, numpy.ndarray) and array.ctypes.data == ROWS.data_ptr()


# ---- communicates: a process group of torch's that sends nothing, whose methods are counted

COLLECTIVES = """
import sys, torch, torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed import _functional_collectives as funcol
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
seen, x, two = [], torch.zeros(4), [torch.zeros(4), torch.zeros(4)]
for name in dir(dist.ProcessGroup):
    original = getattr(dist.ProcessGroup, name)
    if callable(original) and not name.startswith("__") and name.strip("_").startswith(("all", "broadcast", "reduce", "gather", "scatter", "send", "recv", "barrier", "monitored")):
        setattr(dist.ProcessGroup, name, lambda *a, original=original, name=name, **k: seen.append(name) or original(*a, **k))
group = dist.group.WORLD
calls = {
    "c10d": {
        "all_gather": lambda: dist.all_gather(two, x), "all_gather_coalesced": lambda: dist.all_gather_coalesced([two], [x]), "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.zeros(8), x),
        "all_gather_object": lambda: dist.all_gather_object([None, None], 1), "all_reduce": lambda: dist.all_reduce(x), "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([x]),
        "all_to_all": lambda: dist.all_to_all([x, x], two), "all_to_all_single": lambda: dist.all_to_all_single(x, x.clone()), "barrier": dist.barrier, "broadcast": lambda: dist.broadcast(x, 0),
        "batch_isend_irecv": lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)]), "broadcast_object_list": lambda: dist.broadcast_object_list([1], 0), "gather": lambda: dist.gather(x, two, 0),
        "gather_object": lambda: dist.gather_object(1, [None, None], 0), "irecv": lambda: dist.irecv(x, 1), "isend": lambda: dist.isend(x, 1), "monitored_barrier": dist.monitored_barrier,
        "recv": lambda: dist.recv(x, 1), "recv_object_list": lambda: dist.recv_object_list([None], 1), "reduce": lambda: dist.reduce(x, 0), "reduce_scatter": lambda: dist.reduce_scatter(x, two),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(x, torch.zeros(8)), "scatter": lambda: dist.scatter(x, two, 0), "scatter_object_list": lambda: dist.scatter_object_list([None], [1, 2], 0),
        "send": lambda: dist.send(x, 1), "send_object_list": lambda: dist.send_object_list([1], 1),
    },
}
quiet = {"get_rank": dist.get_rank, "get_world_size": dist.get_world_size, "is_initialized": dist.is_initialized, "get_backend": dist.get_backend}
for name in sys.argv[1].split(","):
    seen.clear()
    try:
        calls["c10d"][name]()
    except Exception as error:  # what a fake group hands back is no pickle
        if not seen: print(name, type(error).__name__, error)
    print(name, "sends" if seen else "nothing")
for name, call in quiet.items():
    seen.clear()
    call()
    print(name, "sends" if seen else "nothing")
functional = {
    "all_gather_tensor": (x, 0, group), "all_gather_tensor_autograd": (x, 0, group), "all_reduce": (x, "sum", group), "all_reduce_coalesced": ([x], "sum", group), "all_to_all_single": (x, None, None, group),
    "all_to_all_single_autograd": (x, [2, 2], [2, 2], group), "all_gather_into_tensor_coalesced": ([x], group), "broadcast": (x, 0, group), "permute_tensor": (x, [1, 0], group), "reduce_scatter_tensor": (x, "sum", 0, group),
    "reduce_scatter_tensor_autograd": (x, "sum", 0, group), "reduce_scatter_tensor_coalesced": ([x], "sum", [0], group),
}
from torch.utils._python_dispatch import TorchDispatchMode
class Sent(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "c10d" in function._schema.name and "wait" not in function._schema.name: seen.append(function._schema.name)
        return function(*args, **(kwargs or {}))
for name in sys.argv[2].split(","):
    seen.clear()
    with Sent():
        getattr(funcol, name)(*functional[name])
    print("functional", name, "sends" if seen else "nothing")
for name in sys.argv[3].split(","):
    packet = getattr(torch.ops._c10d_functional, name, None)
    print("operator", name, "sends" if packet is not None else "nothing")
"""


def test_what_communicates_calls_a_process_group():
    wanted = [names("communicates", way) for way in ("c10d", "functional", "operator")]
    wanted[0].remove("monitored_barrier")  # of gloo alone, whose ranks must all be there
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", COLLECTIVES, *map(",".join, wanted)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    sends = {line.rpartition(" ")[0] for line in lines if line.endswith(" sends")}
    nothing = {line.rpartition(" ")[0] for line in lines if line.endswith(" nothing")}
    assert sends == {*wanted[0], *(f"functional {name}" for name in wanted[1]), *(f"operator {name}" for name in wanted[2])}, result.stdout
    assert nothing == {"get_rank", "get_world_size", "is_initialized", "get_backend"}


def test_the_names_of_a_groups_methods_are_in_the_table():
    """opguard.ranks.collectives names a collective where no function of torch.distributed was called."""
    text = (ROOT / "python/opguard/ranks/collectives.py").read_text()
    table = text[text.index("_METHODS = {") : text.index("_SENDS = {")]
    given = {line.split('("')[1].split('"')[0] for line in table.splitlines() if '("' in line}
    assert "all_gather_into_tensor" in given
    unnamed = given - set(names("communicates"))
    assert unnamed == set()


# ---- python: what ATen runs below an operator of Python

W = torch.arange(1.0, 5.0).reshape(2, 2)
N = torch.tensor([1, 2])
OPERATORS = {
    "add": [lambda: W + 1, lambda: W.clone().__iadd__(1)], "sub": [lambda: W - 1, lambda: 1 - W], "mul": [lambda: W * 2], "div": [lambda: W / 2, lambda: 1 / W],
    "floordiv": [lambda: N // 2], "mod": [lambda: N % 2], "pow": [lambda: W**2, lambda: 2**W], "matmul": [lambda: W @ W, lambda: W @ W[0], lambda: W[0] @ W[0], lambda: W[None] @ W[None]],
    "lshift": [lambda: N << 1, lambda: 1 << N, lambda: N.clone().__ilshift__(1)], "rshift": [lambda: N >> 1, lambda: 1 >> N, lambda: N.clone().__irshift__(1)],
    "and": [lambda: N & 1], "or": [lambda: N | 1], "xor": [lambda: N ^ 1], "neg": [lambda: -W], "invert": [lambda: ~N], "lt": [lambda: W < 1], "le": [lambda: W <= 1],
    "gt": [lambda: W > 1], "ge": [lambda: W >= 1], "eq": [lambda: W == 1], "ne": [lambda: W != 1], "iter": [lambda: list(W)],
    "getitem": [lambda: W[0], lambda: W[0:1], lambda: W[N - 1], lambda: W[W > 1], lambda: W[None], lambda: W[...]],
    "setitem": [lambda: W.clone().__setitem__(0, 1.0), lambda: W.clone().__setitem__(W > 1, 2.0), lambda: W.clone().__setitem__(slice(0, 1), W[1:])],
}  # fmt: skip
# Of functionalized graphs, of tensors that torch multiplies by a composite.
NOT_SEEN = {"copy", "fill", "index_put", "matmul"}


def test_what_aten_runs_below_an_operator_of_python():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function._schema.name[6:])
            return function(*args, **(kwargs or {}))

    def told(name):
        return TABLE.get(name, TABLE.get(name.rstrip("_"), {})).get("python", TABLE.get(name.rstrip("_"), {}).get("python"))

    used = set()
    for operator, calls in OPERATORS.items():
        for call in calls:
            del seen[:]
            with Mode():
                call()
            by = [name for name in seen if told(name) == (operator,)]
            assert by, (operator, seen)
            used.update(by)
    unused = {name for name in names("python") if name not in used and name + "_" not in used}
    assert unused == {"matmul"}  # a composite: autograd's own names


# ---- the table itself, and who asks it


def test_cpp_and_python_give_the_same_answers():
    answers = build_dir() / "tests" / "operators" / "opguard_operator_answers"
    words = ["", "sample_actions", "downsample", "gelu", "torch.cat", "np.random.power", "random.gauss", "add_", "x.copy_", "FrozenBatchNorm2d"]
    asked = [*TABLE, *(name + "_" for name in TABLE), *words]
    told = subprocess.run([answers], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True).stdout.splitlines()
    found = {name: set(line[len(name) :].split()) for name, line in zip(asked, told, strict=True)}
    assert {"cat": {"moves_bytes"}, "np.random.power": {"draws_random", "may_draw"}}.items() <= found.items()
    sys.path.insert(0, str(build_dir() / "python"))
    code = """if True:
        import json, sys
        from opguard import operators
        from opguard.operator_table import TABLE
        print(json.dumps([TABLE, {n: [operators.leaves_garbage(n), operators.only_looks(n)] for n in json.load(sys.stdin)}]))
    """
    import json

    env = {**os.environ, "PYTHONPATH": str(build_dir() / "python")}
    made, queries = json.loads(subprocess.run([sys.executable, "-c", code], input=json.dumps(asked), capture_output=True, text=True, check=True, env=env).stdout)
    assert made == {name: {column: list(values) for column, values in row.items()} for name, row in TABLE.items()}
    for name in TABLE:
        row = TABLE[name]
        has = lambda column, *values: bool(set(row.get(column, ())) & set(values))  # noqa: B023, E731
        expected = {
            "moves_bytes": has("moves", "view", "either", "copy"), "leaves_garbage": has("allocates", "garbage"),
            "may_leave_garbage": has("allocates", "garbage", "resized"), "makes_room": "allocates" in row, "seeds_random": "seeds" in row,
            "draws_random": has("draws", "torch", "numpy", "python"), "may_draw": has("draws", "torch", "numpy", "python", "asked"),
            "updates_statistics": has("uncounted", "statistics"), "converts_module": has("uncounted", "module"), "replaces_parameters": has("uncounted", "parameters"),
            "lists_parameters": "parameters" in row, "clips_gradients": has("parameters", "clips"), "touches_no_element": has("elements", "none"),
            "hands_array": has("elements", "array"), "overwrites:self": has("overwrites", "self"), "overwrites:arg0": has("overwrites", "first"),
            "overwrites:arg0[0]": has("overwrites", "list"),
        }  # fmt: skip
        said = {word for word in found[name] if not word.startswith("python:")}
        assert said == {question for question, answer in expected.items() if answer}, name
    for name in asked:
        looks = {"touches_no_element", "may_leave_garbage"} & found[name] or "view" in TABLE.get(name, {}).get("moves", ())
        assert queries[name] == ["leaves_garbage" in found[name], bool(looks)], name
        operator = [word[7:] for word in found[name] if word.startswith("python:")]
        if name in TABLE and "python" in TABLE[name]:
            assert operator == list(TABLE[name]["python"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a moves=view\nb mov=view\n", "2:3: error: no column 'mov'"),
        ("a moves=views\n", "1:3: error: moves is one of: view either copy"),
        ("b moves=view\na moves=view\n", "2:1: error: 'a' stands behind 'b'"),
        ("a moves=view\na moves=view\n", "2:1: error: 'a' stands behind 'a'"),
        ("a\n", "1:1: error: a row is a name and its properties"),
        ("a moves=view moves=copy\n", "1:14: error: 'moves' is given twice"),
        ("a moves=view,copy\n", "1:3: error: moves has one value"),
        ("a draws=none,torch\n", "1:3: error: draws has one value"),
    ],
)
def test_a_bad_row_is_told_with_its_place_and_nothing_is_written(text, fault, tmp_path):
    table = tmp_path / "operators.txt"
    table.write_text(text)
    made = [tmp_path / "out.inc", tmp_path / "out.py"]
    result = subprocess.run([sys.executable, generate.__file__, table, *made], capture_output=True, text=True)
    assert result.returncode != 0 and f"{table}:{fault}" in result.stderr and not any(path.exists() for path in made)


def test_the_head_of_the_table_defines_every_column_and_value():
    head = SOURCE.read_text().split("\n\n")[0]
    for column, (_, values) in generate.COLUMNS.items():
        part = head[head.index(f"\n# {column} ") :]
        assert "Not so" in part or column in ("seeds",)
        if column not in ("python", "seeds"):
            assert [value for value in values.split() if f"\n#   {value} " not in part] == [], column
    assert all(len(line) <= 120 for line in SOURCE.read_text().splitlines())
