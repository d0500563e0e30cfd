"""Mode `sketch`: what the log holds of values, by the letter of docs/formats/record-format.md; and what it leaves as it is."""

import og1
import pytest
from conftest import ROOT
from runtime_log import MASK64, record, run_program

torch = pytest.importorskip("torch")

MODEL = """
import torch
torch.manual_seed(0)

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        return og("part.matmul:1", x) @ self.weight

class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([Part(), Part()])

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return helper(x)

def helper(x):
    return og("helper.relu:1", torch.relu)(x)

model = Whole()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(2):
    y = model(torch.arange(24.0).view(4, 6) / 8 + step)
    loss = og("train.sum:1", y.sum)()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item(), [p.sum().item() for p in model.parameters()], torch.rand(2))
"""


def bits(seed, number):
    z = seed + (number + 1) * 0x9E3779B97F4A7C15 & MASK64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def os1(tensor):
    sums = [0.0] * 64
    for r, row in enumerate(tensor.double().reshape(-1, tensor.shape[-1] if tensor.dim() else 1).tolist()):
        of_row = bits(0x6F73312D726F7773, r)
        for j, x in enumerate(row):
            negative = (of_row >> 63) ^ (bits(0x6F73312D636F6C73, j // 64) >> j % 64 & 1)
            sums[(j + (of_row >> 20)) % 64] += -x if negative else x
    return sums


def near(found, expected):
    most = max(map(abs, expected)) or 1
    return max(abs(a - b) for a, b in zip(found, expected)) <= most * 2.0**-39


def sketch_mode(**more):
    return {"OPGUARD_MODE": "sketch", **more}


def test_each_result_has_its_sketch_and_its_module(tmp_path):
    log = record(MODEL, tmp_path, env=sketch_mode())
    torch.manual_seed(0)
    weights = [torch.randn(6, 6) for _ in range(2)]
    x = torch.arange(24.0).view(4, 6) / 8
    forward = [e for e in log.of("part.matmul:1") if e.step == 0]
    assert [log.sketches[e.index][0] for e in forward] == ["parts.0", "parts.1"]
    for event, weight in zip(forward, weights):
        x = x @ weight
        slots = log.sketches[event.index][1]
        # Inputs are somebody's results.
        assert [event.slots[i].name for i in slots] == ["out0"]
        ((kind, _, _, (found,)),) = next(iter(slots.values()))
        assert kind == "whole" and near(found, os1(x))
    # In a function that is no module's, the module that called it; outside of modules none.
    (relu,) = (e for e in log.of("helper.relu:1") if e.step == 0)
    assert log.sketches[relu.index][0] == "<root>"
    (total,) = (e for e in log.of("train.sum:1") if e.step == 0)
    assert log.sketches[total.index][0] is None
    # Who called: of an operator in the program's own function, the functions that lead to it.
    called = [entry.rsplit(":", 1)[1] for entry in log.calls[relu.index]]
    assert called == ["Whole.forward", "<module>"]
    inner, outer = (int(entry.split(":")[1]) for entry in log.calls[relu.index])
    lines = [text.strip() for text in MODEL.splitlines()]
    assert outer - inner == lines.index("y = model(torch.arange(24.0).view(4, 6) / 8 + step)") - lines.index("return helper(x)")
    assert [entry.rsplit(":", 1)[1] for entry in log.calls[forward[0].index]] == ["Whole.forward", "<module>"]
    assert log.calls[total.index] == []


# Large enough for one pass over memory with og1, of one thread and of two.
LARGE = """
import torch
torch.set_num_threads(2)
x = torch.arange(300 * 500, dtype=torch.float32).view(300, 500).sin()
og("large.mul:1", x) * 2
og("large.bfloat16:1", x.bfloat16)()
og("large.cat:1", torch.cat)([x] * 5)
"""


def test_large_results_are_read_once_for_both(tmp_path):
    from fingerprints import content

    log = record(LARGE, tmp_path, env=sketch_mode())
    x = torch.arange(300 * 500, dtype=torch.float32).view(300, 500).sin()
    for boundary, result in (("large.mul:1", x * 2), ("large.bfloat16:1", x.bfloat16()), ("large.cat:1", torch.cat([x] * 5))):
        (event,) = log.of(boundary)
        ((place, ((_, _, _, (found,)),)),) = log.sketches[event.index][1].items()
        expected = os1(result)
        most = max(map(abs, expected))
        bound = 2.0**-22 if result.dtype == torch.bfloat16 else 2.0**-39
        assert max(abs(y - z) for y, z in zip(found, expected)) <= most * bound
        assert event.slots[place].value == og1.og1(content(result))


def test_parameters_and_gradients_once_a_step(tmp_path):
    log = record(MODEL, tmp_path, env=sketch_mode())
    torch.manual_seed(0)
    weights = [torch.randn(6, 6) for _ in range(2)]
    parameters = log.of("<parameters>", "state")
    assert [e.step for e in parameters] == [0, 1]
    assert parameters[0].names("in") == ["param:parts.0.weight", "param:parts.1.weight"]
    found = [sets[0][3][0] for sets in log.sketches[parameters[0].index][1].values()]
    assert all(near(y, os1(weight)) for y, weight in zip(found, weights))
    gradients = log.of("<gradients>", "state")
    assert [e.step for e in gradients] == [0, 1] and gradients[0].names("in") == ["grad:parts.0.weight", "grad:parts.1.weight"]


def test_pieces_of_the_shapes_that_another_layout_holds(tmp_path):
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("world 2\nshape 2 6\nshape 5 6\nshape 1 6\n")
    log = record(MODEL, tmp_path / "log", env=sketch_mode(OPGUARD_SLICES=f"@{shapes}"))
    torch.manual_seed(0)
    x = torch.arange(24.0).view(4, 6) / 8 @ torch.randn(6, 6)
    event = log.of("part.matmul:1")[0]
    (sets,) = log.sketches[event.index][1].values()
    # [5, 6] does not divide [4, 6], and [1, 6] is a piece of four ranks.
    assert [(kind, shape, dim, len(sums)) for kind, shape, dim, sums in sets] == [
        ("whole", (), 0, 1), ("grid", (2, 6), 0, 2), ("halves", (2, 6), 0, 8),
    ]  # fmt: skip
    assert near(sets[1][3][0], os1(x[:2])) and near(sets[1][3][1], os1(x[2:]))
    empty = torch.zeros(1, 6)
    for row in range(4):
        first, second = sets[2][3][2 * row : 2 * row + 2]
        assert near(first, os1(torch.cat([x[row : row + 1], empty]))) and near(second, os1(torch.cat([empty, x[row : row + 1]])))


def test_pieces_of_ranks_that_hold_unequal_parts(tmp_path):
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("world 2\nshape 3 6\nshape 1 6\nshape 4 4\nparts 3 1\nparameter 4x6 parts.0.weight\n")
    log = record(MODEL, tmp_path / "log", env=sketch_mode(OPGUARD_SLICES=f"@{shapes}"))
    torch.manual_seed(0)
    x = torch.arange(24.0).view(4, 6) / 8 @ torch.randn(6, 6)
    event = log.of("part.matmul:1")[0]
    (sets,) = log.sketches[event.index][1].values()
    # The parameter says that 6 rows are cut in steps of 4; of columns that is learned as well.
    assert [(kind, shape, starts, len(sums)) for kind, shape, starts, sums in sets] == [
        ("whole", (), 0, 1), ("uneven", (3, 6), [[0], [0]], 1), ("uneven", (1, 6), [[3], [0]], 1), ("uneven", (4, 4), [[0], [0, 4]], 2),
    ]  # fmt: skip
    assert near(sets[1][3][0], os1(x[:3])) and near(sets[2][3][0], os1(x[3:]))
    assert near(sets[3][3][1], os1(torch.cat([x[:, 4:], torch.zeros(4, 2)], 1)))


def test_the_program_is_as_it_was(tmp_path):
    bare = run_program(MODEL)
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("world 2\nshape 2 6\n")
    for more in ({}, {"OPGUARD_SLICES": f"@{shapes}"}):
        assert run_program(MODEL, tmp_path / f"log{len(more)}", env=sketch_mode(**more)).stdout == bare.stdout
    full, sketched = (record(MODEL, tmp_path / mode, env={"OPGUARD_MODE": mode}) for mode in ("full", "sketch"))
    values = lambda log: [(e.boundary, e.occurrence, [s.value for s in e.slots]) for e in log.events if e.kind != "state"]
    assert values(full) == values(sketched)


def values(log, boundary):
    return [e.get("out", "out0").value for e in log.of(boundary)]


def test_jitter_is_a_function_of_its_seed(tmp_path):
    plain, one, again, two = (
        record(MODEL, tmp_path / name, env=sketch_mode(**({"OPGUARD_JITTER": seed} if seed else {})))
        for name, seed in (("plain", ""), ("one", "1"), ("again", "1"), ("two", "2"))
    )
    assert values(one, "part.matmul:1") == values(again, "part.matmul:1")
    assert values(one, "part.matmul:1") != values(two, "part.matmul:1") and values(one, "part.matmul:1") != values(plain, "part.matmul:1")
    assert one.settings["jitter"] == "1" and "jitter" not in plain.settings
    # Gradients too, and by rounding alone.
    for kind, boundary in (("op", "part.matmul:1"), ("state", "<gradients>")):
        for a, b in zip(plain.of(boundary, kind), one.of(boundary, kind)):
            for slot, sets in plain.sketches[a.index][1].items():
                y, z = sets[0][3][0], one.sketches[b.index][1][slot][0][3][0]
                norm = sum(v * v for v in y) ** 0.5
                apart = sum((v - w) ** 2 for v, w in zip(y, z)) ** 0.5
                assert 0 < apart < 3e-6 * norm


def test_numbers_that_are_exact_are_not_jittered(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ROOT / "python" / "opguard" / "record")
    from jitter import Jitter

    def moved(values, dtype=torch.float32, slices=""):
        tensor = torch.tensor(values, dtype=dtype)
        Jitter(1, slices)("site", 0, [tensor])
        return not torch.equal(tensor, torch.tensor(values, dtype=dtype))

    assert not moved([0.0, 3.0, -2.0] * 20) and not moved([0.0, float("-inf")] * 20)
    assert moved([0.5, 3.0, -2.0] * 20)
    # Beyond 2^23 every float32 is a whole number, and says nothing; so do those beyond 2^7 of bfloat16.
    assert moved([31876710.0] * 60) and moved([300.0] * 60, torch.bfloat16) and moved([300.0] * 60, slices="type site bfloat16")


def test_what_is_no_list_of_shapes_is_told(tmp_path):
    result = run_program("print(og('a', 3) + 4)", tmp_path / "log", env=sketch_mode(OPGUARD_SLICES="world 2\nshape two\n"), status=1)
    assert "OPGUARD_SLICES: line 2 is none of 'world N', 'shape N ...', 'exchange N ...', 'parts N ...', 'parameter NxN NAME', 'pad N N', 'type ID TYPE'" in result.stderr


def test_run_records_in_the_mode_and_dump_shows_it(opguard, tmp_path):
    (tmp_path / "train.py").write_text(MODEL.replace("import torch\n", "import torch\nfrom opguard import og\n", 1))
    refused = opguard("run", "--log", "log", "--jitter", "1", "--", "python", "train.py", cwd=tmp_path)
    assert refused.returncode == 2 and "--slices and --jitter need --mode sketch" in refused.stderr and not (tmp_path / "log").exists()
    done = opguard("run", "--log", "log", "--mode", "sketch", "--jitter", "1", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = opguard("dump", *(tmp_path / "log").glob("*.log"))
    assert "module  parts.0" in shown.stdout and " norm " in shown.stdout
