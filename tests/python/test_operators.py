"""The table of operators is true: every property of every row is measured by a call, where one can be made.

operator_calls.py has the calls, and the operators that cannot be called, each with its reason."""

import random
import subprocess
import sys
import warnings

import numpy
import pytest
import torch
from conftest import ROOT
from operator_calls import (
    ALLOCATES,
    ASKED,
    ASKED_MODULES,
    DRAWS,
    ELEMENTS,
    INDEX,
    META,
    MOVES,
    NO_ELEMENTS,
    NO_MOVERS,
    ON_GPU,
    OPERATORS,
    OVERWRITES,
    OWN,
    QUANTIZED,
    QUIET,
    ROWS,
    SEEDS,
    STATISTICS,
    UNDRAWN,
    UNSEEDED,
    A,
    X,
)  # fmt: skip
from torch import nn
from torch.nn import functional as F
from torch.nn import utils
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(ROOT / "src" / "operators"))
import generate  # noqa: E402

warnings.filterwarnings("ignore")
COLLECTIVES = ROOT / "tests" / "python" / "operator_collectives.py"
SOURCE = ROOT / "src" / "operators" / "operators.txt"
TABLE = dict(generate.rows(SOURCE.read_text()))


def names(column, *values):
    return [name for name, row in TABLE.items() if column in row and (not values or set(values) & set(row[column]))]


def called(column, *values, uncalled=()):
    """The names of a column that can be called. Each of `uncalled` is one that cannot."""
    found = names(column, *values)
    assert set(uncalled) <= set(found), f"not in the table: {set(uncalled) - set(found)}"
    return [name for name in found if name not in uncalled]


# ---- moves: the operator commutes with every map of values, since it looks at none


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


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t + t,
        torch.relu,
        torch.sort,
        lambda t: t.triu(),
        lambda t: t.to(torch.float64) / 3,
        torch.abs,
        lambda t: t.masked_fill(t > 3, 0.0),
        lambda t: F.unfold(t[None, None], 2, padding=1),
        lambda t: torch.cummax(t, 0).values,
    ],
)
def test_the_measure_of_movers_finds_what_computes(call):
    def first(value):
        return value if isinstance(value, torch.Tensor) else value[0]

    assert not torch.equal(renamed(first(call(ROWS.clone()))), first(call(renamed(ROWS))))


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
    views = {
        s.name[6:]
        for s in schemas()
        if s.returns and all(r.alias_info and not r.alias_info.is_write for r in s.returns)
    }
    assert views - set(names("moves")) - set(NO_MOVERS) == set()
    looks = {"resize_", "resize_as_"}
    assert tagged(torch.Tag.inplace_view) - looks <= set(names("moves", "view")) and looks <= set(
        names("allocates", "resized")
    )


# ---- allocates


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


def states():
    whole = numpy.random.get_state()
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "python": random.getstate(),
        "numpy": (whole[1].tobytes(), whole[2:], str(OWN.bit_generator.state)),
    }


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


def test_what_draws_only_where_it_is_asked():
    assert set(ASKED) | set(ASKED_MODULES) == set(names("draws", "asked"))
    for name, call in ASKED.items():
        assert moved(lambda: call(0.5)) == {"torch"} and moved(lambda: call(0.0)) == set(), name
    for name, make in ASKED_MODULES.items():
        for p, expected in ((0.5, {"torch"}), (0.0, set())):
            module, arguments = make(p)
            assert moved(lambda: module(*arguments)) == expected, name
            assert moved(lambda: module.eval()(*arguments)) == set(), name


@pytest.mark.parametrize("name", names("draws", "none"))
def test_what_draws_nothing_though_its_name_says_so(name):
    assert moved(QUIET[name]) == set()


def test_everything_that_torch_tags_as_seeded_is_in_the_table():
    """Names that begin with _ are no names that programs write."""
    seeded = {name for name in tagged(torch.Tag.nondeterministic_seeded) if not name.startswith("_")}
    others = {"miopen_rnn", "rrelu_with_noise_functional"}  # of AMD's devices; of functionalized graphs
    assert seeded - others <= set(names("draws", "torch", "asked"))


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
        assert (found[0] == found[1]) == ((name, library) != ("seed", "torch")), (
            name
        )  # torch.seed takes a number by chance
    for name in ("manual_seed_all", "seed_all", "set_rng_state_all"):
        assert callable(getattr(torch.cuda, name))
    assert numpy.random.default_rng(5).random() == numpy.random.default_rng(5).random()


# ---- overwrites: what was there has no part in the result


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
                getattr(there if way == "self" else nn.init, name)(
                    *(() if way == "self" else (there,)), *OVERWRITES.get(name, ())
                )
            found.append(there)
        assert torch.equal(*found) and not found[1].isnan().any(), way


@pytest.mark.parametrize("name", ["add_", "mul_", "masked_fill_", "squeeze_", "relu_", "index_fill_"])
def test_what_is_not_overwritten(name):
    arguments = {"add_": (1,), "mul_": (2,), "masked_fill_": (ROWS > 3, 0.0), "index_fill_": (0, INDEX, 1.0)}.get(
        name, ()
    )
    found = [getattr(torch.full((4, 6), value), name)(*arguments) for value in (1.0, 2.0)]
    assert name not in names("overwrites") and not torch.equal(*found)


# ---- uncounted, parameters


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
    arguments = {
        "clip_grads_with_norm_": (0.1, torch.tensor(9.0)),
        "get_total_norm": (),
        "parameters_to_vector": (),
    }.get(name, (0.1,))
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


@pytest.mark.parametrize("name", called("elements", "none", uncalled=NO_ELEMENTS))
def test_what_touches_no_element(name):
    x = META
    version = x._version
    found = getattr(x, name, None)
    if name == "_zerotensor":
        found = x._is_zerotensor
    if found is None:
        found = lambda *arguments: getattr(A, name)(x, *arguments)  # noqa: E731
    arguments = tuple(META if argument is ROWS else argument for argument in ELEMENTS.get(name, ()))
    result = found(*arguments) if callable(found) else found
    assert result is x or not isinstance(result, torch.Tensor)
    assert x._version == version


def test_the_measure_of_elements_finds_what_reads():
    for name in ("item", "tolist", "any"):
        with pytest.raises((RuntimeError, NotImplementedError, AssertionError)):
            result = getattr(META[:1, :1], name)()
            assert not isinstance(result, torch.Tensor)


@pytest.mark.parametrize("name", names("elements", "form"))
def test_what_reads_the_form_alone(name):
    def left(last):
        torch.manual_seed(1)
        if name.startswith("new_"):
            return getattr(last, name)((2, 3))
        if name.endswith("_like"):
            return getattr(torch, name)(last, *((9,) if name == "randint_like" else ()))
        return getattr(ROWS[:1] if name == "expand_as" else ROWS, name)(last)

    zeros, others = left(torch.zeros(4, 6)), left(torch.full((4, 6), float("nan")))
    assert zeros.shape == others.shape
    assert "empty" in name or torch.equal(zeros, others)


def test_the_measure_of_form_finds_what_reads():
    assert not torch.equal(ROWS.copy_(ROWS), ROWS.clone().copy_(torch.full((4, 6), float("nan"))))


@pytest.mark.parametrize("name", names("elements", "array"))
def test_what_hands_out_an_array(name):
    array = getattr(ROWS, name)()
    assert isinstance(array, numpy.ndarray) and array.ctypes.data == ROWS.data_ptr()


# ---- communicates: a process group of torch's that sends nothing, whose methods are counted


def test_what_communicates_calls_a_process_group():
    wanted = [names("communicates", way) for way in ("c10d", "functional", "operator")]
    wanted[0].remove("monitored_barrier")  # of gloo alone, whose ranks must all be there
    quiet = ["get_rank", "get_world_size", "is_initialized", "get_backend"]
    command = [sys.executable, "-W", "ignore", COLLECTIVES, ",".join(wanted[0] + quiet), *map(",".join, wanted[1:])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    sends = {line.rpartition(" ")[0] for line in lines if line.endswith(" sends")}
    nothing = {line.rpartition(" ")[0] for line in lines if line.endswith(" nothing")}
    assert sends == {
        *wanted[0],
        *(f"functional {name}" for name in wanted[1]),
        *(f"operator {name}" for name in wanted[2]),
    }, result.stdout
    assert nothing == set(quiet)


def test_the_names_of_a_groups_methods_are_in_the_table():
    """opguard.ranks.collectives names a collective where no function of torch.distributed was called."""
    text = (ROOT / "python/opguard/ranks/collectives.py").read_text()
    table = text[text.index("_METHODS = {") : text.index("_SENDS = {")]
    given = {line.split('("')[1].split('"')[0] for line in table.splitlines() if '("' in line}
    assert "all_gather_into_tensor" in given
    unnamed = given - set(names("communicates"))
    assert unnamed == set()


# ---- python: what ATen runs below an operator of Python


def test_what_aten_runs_below_an_operator_of_python():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function._schema.name[6:])
            return function(*args, **(kwargs or {}))

    def told(name):
        return TABLE.get(name, TABLE.get(name.rstrip("_"), {})).get(
            "python", TABLE.get(name.rstrip("_"), {}).get("python")
        )

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
