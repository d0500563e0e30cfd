"""Backward passes: what the autograd engine dispatches belongs to the expression that made its node."""

import pytest

from tracing import by_text, counts, program, trace  # noqa: F401  (program is a fixture)

torch = pytest.importorskip("torch")
if not hasattr(torch._C, "_current_autograd_node"):
    pytest.skip("this torch does not say which node runs", allow_module_level=True)

SETUP = """import torch
from torch.utils.checkpoint import checkpoint
w = torch.randn(3, 3, requires_grad=True)
x = torch.ones(2, 3)
"""


@pytest.fixture
def seen(program):
    if not program.has_columns:
        pytest.skip("no columns before Python 3.11")

    def run(body):
        program.write("train.py", SETUP + body)
        document = trace(program, "train.py")
        assert document["errors"] == 0 and document["foreign"] == 0
        return by_text(program, document), document

    return run


def test_each_node_to_its_expression(seen):
    uses, document = seen("y = (torch.tanh(x @ w) * 2 + w.sum()).mean()\ny.backward()\n")
    backward = {text: counts(use, "backward") for text, use in uses.items() if use["backward"]}
    assert set(backward) == {"x @ w", "torch.tanh(x @ w)", "torch.tanh(x @ w) * 2", "torch.tanh(x @ w) * 2 + w.sum()", "w.sum()",
                             "(torch.tanh(x @ w) * 2 + w.sum()).mean()"}  # fmt: skip
    assert backward["torch.tanh(x @ w)"]["aten::tanh_backward"] == 1
    assert backward["x @ w"]["aten::mm"] == 1
    assert backward["torch.tanh(x @ w) * 2"]["aten::mul"] == 1
    # The call keeps what torch does before the engine runs.
    assert counts(uses["y.backward()"], "activities") == {"opguard::backward": 1, "aten::ones_like": 1}
    assert uses["x @ w"]["compute"]["backward"] >= 1 and uses["x @ w"]["phases"]["forward"] == 1


def test_parameters_take_their_gradients_themselves(seen):
    uses, document = seen("for _ in range(3):\n    (x @ w).sum().backward()\n")
    assert document["accumulated"] == {"aten::add_.Tensor": 2}  # the first gradient is taken as it is
    assert not any("aten::add_.Tensor" in {**use["activities"], **use["backward"]} for use in uses.values())


def test_in_place_on_a_view(seen):
    # The operator makes a node before it runs and one after it, when its view is bound to the base.
    uses, _ = seen("y = w.clone()\ny[0].mul_(2)\nz = y.exp()\nz.sum().backward()\n")
    assert counts(uses["y[0].mul_(2)"], "backward")["aten::mul"] == 1
    assert "aten::clone" in counts(uses["y[0].mul_(2)"], "backward")
    assert counts(uses["y.exp()"], "backward") == {"aten::mul": 1}


def test_custom_functions(seen):
    uses, _ = seen(
        "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        return v * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g + g\n"
        "y = Double.apply(w)\n(y + y).sum().backward()\n"
    )
    # The body of backward is the user's own source.
    assert counts(uses["g + g"], "activities") == {"aten::add": 1} and uses["g + g"]["phases"] == {"backward": 1}
    assert uses["v * 2"]["phases"] == {"forward": 1} and uses["v * 2"]["backward"] == {}
    # The node is the call's: gradients that meet in it are summed under it or the addition.
    summed = [t for t, use in uses.items() if "aten::add" in counts(use, "backward")]
    assert summed in (["Double.apply(w)"], ["y + y"])


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputed_forwards(seen, reentrant):
    uses, _ = seen("f = lambda v: torch.tanh(v @ w)\ncheckpoint(f, w, use_reentrant=%s).sum().backward()\n" % reentrant)
    tanh = uses["torch.tanh(v @ w)"]
    assert tanh["compute"] == {"forward": 1, "recompute": 1, "backward": 1}
    assert counts(tanh, "backward")["aten::tanh_backward"] == 1
    assert counts(uses["v @ w"], "backward")["aten::mm"] == 2
    assert uses["v @ w"]["compute"] == {"forward": 1, "recompute": 1, "backward": 2 + (not reentrant)}  # the sum of the gradients


def test_double_backward(seen):
    uses, _ = seen("y = torch.sin(w)\n(g,) = torch.autograd.grad(y.sum(), w, create_graph=True)\ng.sum().backward()\n")
    # Nodes that the first pass made for sin belong to sin in the second.
    sin = counts(uses["torch.sin(w)"], "backward")
    assert sin["aten::cos"] == 1 and sin["aten::sin"] == 1 and sin["aten::neg"] == 1
    assert set(uses["torch.sin(w)"]["phases"]) == {"forward", "backward"}


def test_hooks_are_sites_of_their_own(seen):
    uses, _ = seen("y = torch.sin(w)\ny.register_hook(lambda g: g * 3)\ny.sum().backward()\n")
    assert uses["g * 3"]["phases"] == {"backward": 1}


def test_each_thread_numbers_its_own_nodes(seen):
    uses, _ = seen(
        "import threading\ndef a():\n    for _ in range(40):\n        w.cos().sum().backward()\n"
        "def b():\n    for _ in range(40):\n        w.exp().mean().backward()\n"
        "threads = [threading.Thread(target=f) for f in (a, b)]\n[t.start() for t in threads]\n[t.join() for t in threads]\n"
    )
    assert counts(uses["w.cos()"], "backward") == {"aten::sin": 40, "aten::neg": 40, "aten::mul": 40}
    assert counts(uses["w.exp()"], "backward") == {"aten::mul": 40}


def test_a_graph_of_another_thread(seen):
    uses, _ = seen("import threading\ny = w.cos().sum()\nt = threading.Thread(target=lambda: y.backward())\nt.start()\nt.join()\n")
    assert counts(uses["w.cos()"], "backward") == {"aten::sin": 1, "aten::neg": 1, "aten::mul": 1}


def test_views_do_not_compute(seen):
    uses, _ = seen("y = w.t()[0].view(3, 1).expand(3, 2).detach()\ne = torch.empty(4)\ny.is_same_size(e)\nz = y.contiguous()\n")
    assert {text for text, use in uses.items() if use["compute"]} == {"torch.randn(3, 3, requires_grad=True)", "torch.ones(2, 3)", "y.contiguous()"}


def test_micro_batches_of_a_step(seen):
    _, document = seen(
        "o = torch.optim.SGD([w], lr=0.1)\nfor step in range(3):\n    for _ in range(1 + step // 2):\n"
        "        checkpoint(torch.sin, w, use_reentrant=True).sum().backward()\n    o.step()\n"
    )
    assert document["steps"] == 3 and document["micro_batches"] == {"1": 2, "2": 1}


def test_torch_that_does_not_say_which_node_runs(program):
    # As torch 2.1: everything the engine dispatches is the call's.
    graph = program.package / "trace" / "graph.py"
    text = graph.read_text()
    assert '"_current_autograd_node"' in text
    graph.write_text(text.replace('"_current_autograd_node"', '"_absent"'))
    program.write("train.py", SETUP + "y = torch.tanh(x @ w).sum()\ny.backward()\ntorch.autograd.grad((w * w).sum(), w)\n")
    document = trace(program, "train.py")
    uses = by_text(program, document)
    assert document["errors"] == document["foreign"] == 0
    assert not any(use["backward"] for use in document["uses"])
    assert counts(uses["y.backward()"], "activities")["aten::tanh_backward"] == 1
