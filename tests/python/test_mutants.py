"""bench/mutants: every mutation operator and every refactoring on a snippet, the marks that follow a statement, and the judge."""
import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from mutants import operators, refactorings
from mutants.draw import Places, draw_control, draw_mutant, generator, moved
from mutants.judge import judge, truth, truth_of, wilson
from mutants.programs import PROGRAMS, Base, Program, Runner
from mutants.source import Edit, Kinds, Source, Text

TENSOR = "tensor float32 2 contiguous 4x8"
HELD = {name: TENSOR for name in ("x", "y", "z", "residual", "self.weight", "mask", "v")} | {
    "p": "float", "n": "int", "self.scale": "float", "self.norm": "module LayerNorm", "order": "tensor int64 1 contiguous 4", "i": "int",
}  # fmt: skip


def source(body, head="import torch\n\n\ndef f(self, x, y, residual, mask, p, n):\n", held=HELD):
    text = head + "".join(f"    {line}\n" for line in body.splitlines())
    first = head.count("\n")
    lines = set(range(1, text.count("\n") + 1))
    return Source(Text(text.encode()), Kinds(lines, {str(first): held, "1": held}), name="model.py")


def mutated(name, body):
    """The bodies that an operator makes of one; what stands before the body must not change."""
    src = source(body)
    head = src.data.index(b"def f")
    out = []
    for mutation in operators.find(src, name):
        before, after = operators.apply(src, mutation)
        assert after.data[:head] == src.data[:head] and any(before.marks) and before.data == src.data
        out.append("\n".join(line[4:] for line in after.data.decode().splitlines()[src.data[:head].count(b"\n") + 1 :]))
    return out


@pytest.mark.parametrize(
    "name, body, expected",
    [
        ("constant", "z = x + 1e-6", "z = x + 0.0001"),
        ("constant", "z = x * 0.5", "z = x * 0.75"),
        ("swapped_arguments", "z = x - y", "z = (y) - (x)"),
        ("swapped_arguments", "z = torch.dot(x, y)", "z = torch.dot(y, x)"),
        ("dim", "z = x.softmax(dim=-1)", "z = x.softmax(dim=-2)"),
        ("dim", "z = torch.cat([x, y], 1)", "z = torch.cat([x, y], -1)"),
        ("cast", "z = x @ y", "z = (x @ y).bfloat16().float()"),
        ("cast", "z = x.float()", "z = x"),
        ("mask", "z = x.masked_fill(mask, 0)", "z = x.masked_fill(~(mask), 0)"),
        ("mask", "z = x + mask", "z = (x)"),
        ("mask", "z = x.triu(1)", "z = x.triu(2)"),
        ("slices", "z = x[:, 1:]", "z = x[:, :-1]"),
        ("slices", "z = x[:, :n]", "z = x[:, -(n):]"),
        ("detach", "z = x + y", "z = (x).detach() + y"),
        ("no_grad", "z = torch.exp(x)", "with torch.no_grad():\n    z = torch.exp(x)"),
        ("aliasing", "z = x + y", "z = (x).add_(y)"),
        ("aliasing", "z = x.clone()", "z = x"),
        ("lost_residual", "x = residual + y", "x = (y)"),
        ("scaling", "z = x * p", "z = (x)"),
        ("scaling", "z = x / p", "z = (x)"),
        ("activation", "z = torch.tanh(x)", "z = (x)"),
        ("activation", "z = self.act_fn(self.up(x))", "z = (self.up(x))"),
        ("dropped_norm", "z = self.norm(x)", "z = (x)"),
        ("arithmetic", "z = x + y", "z = (x) - (y)"),
        ("comparison", "z = x < p", "z = (x) <= (p)"),
        ("reduction", "z = x.mean(0)", "z = x.sum(0)"),
        ("reduction", 'z = loss(x, reduction="sum")', 'z = loss(x, reduction="mean")'),
        ("wrong_variable", "z = x + n", "z = y + n"),
        ("lost_argument", "z = x.sum(0, keepdim=True)", "z = x.sum(0)"),
        ("lost_statement", "x.mul_(p)", "pass"),
        ("seed", "torch.manual_seed(3)", "torch.manual_seed((3) + 1)"),
        ("seed", "z = torch.rand(2, generator=g)", "z = torch.rand(2, generator=None)"),
        ("data_order", "for i, b in enumerate(batches):\n    z = b", "for i, b in enumerate(list(batches)[::-1]):\n    z = b"),
        ("data_order", "z = torch.randperm(n)", "z = torch.arange(n)"),
        ("optimizer", "opt = AdamW(ps, lr=0.1)", "opt = AdamW(ps, lr=0.15)"),
    ],
)
def test_operator(name, body, expected):
    assert expected in mutated(name, body)


def test_an_optimizers_own_statements():
    text = "class AdamX:\n    def step(self, p, g, group):\n        p.mul_(1 - group['lr'] * group['weight_decay'])\n        p.add_(g, alpha=0.5)\n"
    src = Source(Text(text.encode()), Kinds(set(range(1, 9)), {"2": {"p": TENSOR, "g": TENSOR}}), name="optim/adamx.py")
    made = [operators.apply(src, m)[1].data.decode() for m in operators.find(src, "optimizer")]
    assert any("p.add_(g, alpha=0.5)\n        p.mul_(1" in m for m in made)
    assert any("(group['lr'] * 1.5)" in m for m in made) and any("alpha=0.75" in m for m in made)


def test_rank_only_keeps_the_other_ranks_expression():
    made = mutated("rank_only", "z = x * p")
    assert 'z = (((x)) if __import__("os").environ.get("RANK") == "1" else (x * p))' in made


def test_every_operator_has_a_case():
    names = {mark.args[1][i][0] for mark in test_operator.pytestmark for i in range(len(mark.args[1]))}
    assert names | {"rank_only"} == set(operators.OPERATORS) and len(operators.OPERATORS) >= 14


def refactored(name, body):
    src = source(body)
    return [refactorings.apply(src.text, edits).data.decode() for edits in refactorings.find(src, name)]


@pytest.mark.parametrize(
    "name, body, expected",
    [
        ("rename_local", "z = x + y\nreturn z", "z_renamed_0 = x + y\n    return z_renamed_0"),
        ("extract_local", "z = torch.exp(x * p) + y", "part_0 = (x * p)\n    z = torch.exp(part_0) + y"),
        ("inline_local", "v = x * p\nz = torch.exp(v)", "z = torch.exp((x * p))"),
        ("add_statistic", "z = x + y\nreturn z", "with torch.no_grad():\n        statistic_0 = z.detach().abs().amax()"),
        ("reorder", "v = x * p\nz = torch.exp(y)", "z = torch.exp(y)\n    v = x * p"),
        ("view_reshape", "z = x.view(-1)", "z = x.reshape(-1)"),
        ("view_reshape", "z = x.reshape(-1)", "z = x.contiguous().view(-1)"),
        ("add_contiguous", "z = x + y", "z = (x + y).contiguous()"),
        ("call_form", "z = torch.exp(x)", "z = (x).exp()"),
        ("call_form", "z = x.sum(-1, keepdim=True)", "z = torch.sum(x, -1, keepdim=True)"),
        ("operator_form", "z = x + y", "z = torch.add(x, y)"),
        ("operator_form", "z = x @ y", "z = torch.matmul(x, y)"),
        ("keywords", "z = torch.cat([x, y], 1)", "z = torch.cat(tensors=[x, y], dim=1)"),
        ("import_alias", "z = torch.exp(x)", "torch_module_0 = torch\n    z = torch_module_0.exp(x)"),
        ("split_return", "return x + y", "result_0 = (x + y)\n    return result_0"),
        ("extract_function", "z = x + y", "def _helper_0(x, y):\n    return (x + y)"),
    ],
)
def test_refactoring(name, body, expected):
    assert any(expected in made for made in refactored(name, body))


def test_every_refactoring_has_a_case():
    names = {mark.args[1][i][0] for mark in test_refactoring.pytestmark for i in range(len(mark.args[1]))}
    assert names == set(refactorings.REFACTORINGS)


@pytest.mark.parametrize(
    "name, body",
    [
        ("reorder", "v = x * p\nz = torch.exp(v)"),  # the second reads the first
        ("reorder", "v = x * p\nz = x + n"),  # gradients of x would be added in the other order
        ("reorder", "v = torch.rand(n)\nz = y + n"),  # a draw keeps its place
        ("extract_local", "z = g() + h(x)[0] if p else y"),  # not evaluated always
        ("inline_local", "v = x * p\nz = torch.exp(y) + v"),  # would be evaluated later
        ("inline_local", "v = x * p\nz = v + v"),
    ],
)
def test_refactoring_is_left_out_where_it_is_not_harmless(name, body):
    assert not [m for m in refactored(name, body) if "h(x)" not in m or "part_0 = (h(x)" in m]


def test_refactorings_run_to_the_same_result():
    """Every refactoring of a function, one at a time and in a row, computes what it did."""
    torch = pytest.importorskip("torch")
    body = "v = x * p\nw = torch.exp(y)\nz = torch.softmax(v + w, dim=-1).view(-1)\nreturn z.sum() * p + torch.cat([x, y], 1).mean()"

    def value(data):
        space = {}
        exec(compile(data, "snippet", "exec"), space)
        torch.manual_seed(1)
        x, y = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)
        result = space["f"](None, x, y, None, None, 0.3, 2)
        result.backward()
        return result.item(), x.grad.sum().item()

    src = source(body)
    wanted, seen = value(src.data), 0
    for name in refactorings.REFACTORINGS:
        for edits in refactorings.find(src, name):
            once = refactorings.apply(src.text, edits)
            assert value(once.data) == wanted, once.data.decode()
            again = Source(once, src.kinds, src, src.name)
            for twice in refactorings.find(again, "call_form")[:1] + refactorings.find(again, "rename_local")[:1]:
                assert value(refactorings.apply(once, twice).data) == wanted
            seen += 1
    assert seen >= 15


def test_marks_follow_the_statement():
    src = source("v = x * p\nz = torch.exp(x - y)\nreturn z")
    mutation = next(m for m in operators.find(src, "swapped_arguments") if "x - y" in m.note)
    text, _ = operators.apply(src, mutation)
    for name in ("extract_function", "rename_local", "add_statistic"):
        now = Source(text, src.kinds, src, src.name)
        text = refactorings.apply(text, refactorings.find(now, name)[-1])
    edits = moved(text, mutation)
    after = text.edit(edits)
    assert b"(y) - (x)" in after.data
    found = truth({"model.py": Source(after, src.kinds, src, "model.py")}, ["model.py"])
    lines = after.data.decode().splitlines()
    named = {lines[p["first_line"] - 1].strip() for p in found["statement"]}
    assert len(named) == 1 and "(y) - (x)" in named.pop()


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError):
        Text(b"abcdef").edit([Edit(0, 3, (b"x",)), Edit(2, 4, (b"y",))])


def test_first_use_of_a_number():
    text = "class Norm:\n    def __init__(self, n):\n        self.eps = n * 1e-6\n\n    def forward(self, x):\n        y = x + 1\n        return y * self.eps\n"
    src = Source(Text(text.encode()), Kinds(set(range(1, 9)), {"5": {"x": TENSOR, "y": TENSOR}}), name="norm.py")
    mutation = operators.find(src, "constant")[0]
    _, after = operators.apply(src, mutation)
    found = truth({"norm.py": Source(after, src.kinds, src, "norm.py")}, ["norm.py"])
    assert [p["first_line"] for p in found["statement"]] == [3] and [p["first_line"] for p in found["first_use"]] == [7]
    assert [(p["first_line"], p["last_line"]) for p in found["function"]] == [(2, 3)]


def test_judge():
    place = {"file": "m.py", "first_line": 3, "last_line": 4}
    side = {"statement": [place], "function": [{"file": "m.py", "first_line": 1, "last_line": 9}], "first_use": [{**place, "file": "n.py"}]}
    known = {"a": side, "b": side}

    def answer(file, line, **more):
        return {"verdict": "diverged", "pivot": {"a": None, "b": {"file": file, "line": line}}, "candidates": [], **more}

    assert judge(known, answer("m.py", 4)) == "statement"
    assert judge(known, answer("n.py", 3)) == "first_use"
    assert judge(known, answer("m.py", 8)) == "function"
    assert judge(known, answer("o.py", 8, candidates=[answer("m.py", 3)["pivot"]])) == "candidate"
    assert judge(known, answer("o.py", 8)) == "wrong"
    assert judge(known, {"verdict": "identical", "pivot": None}) == "false_identical"
    assert judge(known, {"verdict": "inconclusive", "pivot": None}) == "inconclusive"
    assert judge(known, None) == "no_answer"
    assert judge({}, {"verdict": "identical"}) == "right" and judge({}, answer("m.py", 4)) == "false_alarm"


def test_wilson():
    low, high = wilson(291, 300)
    assert 0.943 < low < 0.945 and 0.984 < high < 0.985
    assert wilson(0, 0) == (0.0, 1.0)


def test_programs_parse():
    assert len(PROGRAMS) >= 12
    for program in PROGRAMS.values():
        file = program.source or Path(operators.__file__).parent / "programs" / program.main
        ast.parse(file.read_text())


PROGRAM = """import torch


def scale_of(width):
    return width**-0.5


def attend(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) * scale_of(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v + v


torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(4, 4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(2):
    x = torch.randn(3, 4)
    loss = attend(x @ weight, x, x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", repr(loss.item()))
"""


@pytest.fixture(scope="module")
def runner():
    pytest.importorskip("torch")
    runner = Runner(Path(sys.prefix), 300)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory, runner):
    folder = tmp_path_factory.mktemp("program")
    (folder / "source").mkdir()
    (folder / "source" / "prog.py").write_text(PROGRAM)
    return Base(Program("prog", (), source=folder / "source" / "prog.py"), folder / "base", None, runner)


def test_a_traced_run_knows_lines_and_kinds(base):
    src = base.source("prog.py")
    kinds = src.kinds
    assert base.files() == ["prog.py"] and {5, 9, 10, 11, 18} <= kinds.lines
    assert kinds.names["8"]["scores"].startswith("tensor float32 2 ") and kinds.names["4"]["width"] == "int"


def test_a_drawn_mutant_changes_what_counts_and_its_truth_is_known(base, runner, tmp_path):
    places = Places(lambda name: base)
    for number in range(2):  # draws with and without refactorings
        found, trees = draw_mutant(generator(5, "m", number), ["prog"], places, lambda name: base, tmp_path / f"m{number}", runner, "arithmetic")
        outcomes = [trees.outcome(side) for side in "ab"]
        assert outcomes[0] == base.outcome != outcomes[1]
        known = truth_of(found, base)
        for side in "ab":
            text = (tmp_path / f"m{number}" / side / "prog.py").read_text().splitlines()
            assert known[side]["statement"] and all("=" in text[p["first_line"] - 1] or "return" in text[p["first_line"] - 1] for p in known[side]["statement"])


def test_a_drawn_control_keeps_every_bit(base, runner, tmp_path):
    found, trees = draw_control(generator(5, "c", 0), ["prog"], lambda name: base, tmp_path / "c", runner)
    assert trees.outcome("a") == trees.outcome("b") == base.outcome and len(found.refactorings) in (3, 10)
    assert (tmp_path / "c" / "a" / "prog.py").read_text() == PROGRAM != (tmp_path / "c" / "b" / "prog.py").read_text()
    assert truth_of(found, base) == {}
