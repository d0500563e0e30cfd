"""Probes under torch.compile: the same program, as many graphs, the same records."""

import collections

import pytest

from compile_gpt import gpt
from runtime_log import logs_in, record, run_program

torch = pytest.importorskip("torch")
inductor = {"TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1"}


def sites(log):
    """What every operator's event says but its values."""
    return [
        (e.boundary, e.phase, e.scalars, e.results, e.flags, e.names("in"), e.names("out"), e.names("written"),
         [(s.dtype, s.shape, s.flags) for s in e.slots])
        for e in log.events if e.kind == "op"
    ]  # fmt: skip


def values(log):
    return [s.value for e in log.events if e.kind == "op" for s in e.slots]


def counts(log):
    return collections.Counter((e.boundary, e.kind, e.phase) for e in log.events)


def nodes(log):
    # What functionalization makes of a view or a matmul has another name; its number is the same.
    views = ("ViewBackward0", "UnsafeViewBackward0", "AsStridedBackward0")
    return collections.Counter(
        (e.boundary, "a view" if e.node in views else e.node) for e in log.events if e.kind == "node"
    )


def check_gpt(tmp_path, backend, **options):
    bare = run_program(gpt(False, backend, **options), env=inductor)
    probed = run_program(gpt(True, backend, **options), tmp_path / "compiled", env=inductor)
    # Losses, parameters, and the compiler's counts.
    assert probed.stdout == bare.stdout
    assert "'dynamo_graph_breaks': '0'" in bare.stdout and "'dynamo_graphs': '0'" not in bare.stdout
    (compiled,) = logs_in(tmp_path / "compiled")
    assert compiled.closed and compiled.lost == 0 and "opguard_faults" not in compiled.settings
    assert compiled.settings["opguard_compiled_unprobed"] == "0"
    eager = record(gpt(True, **options), tmp_path / "eager")
    assert sites(compiled) == sites(eager)
    assert counts(compiled) == counts(eager)
    assert nodes(compiled) == nodes(eager)
    for e in compiled.events:
        if e.kind == "node":
            assert compiled.events[e.forward].boundary == e.boundary
    return compiled, eager


@pytest.mark.parametrize("backend, dynamic", [("eager", None), ("aot_eager", None), ("aot_eager", True)])
def test_a_gpt_records_what_it_does_when_eager(tmp_path, backend, dynamic):
    sizes = (4, 3, 5) if dynamic else (4, 4, 4)
    compiled, eager = check_gpt(tmp_path, backend, dynamic=dynamic, sizes=sizes, layers=1)
    assert values(compiled) == values(eager)
    assert compiled.locations["attn.softmax"][2].endswith("forward")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gpt_under_inductor_keeps_its_bits(tmp_path, dtype):
    # Without layers: each kernel takes a compiler seconds. docs/compile.md has the figures of a whole one.
    check_gpt(tmp_path, "inductor", dtype=dtype, layers=0)
