"""What is recorded of views, whose digests are folded from rows that were read (src/runtime/fingerprint/row_hashes.h), is what
reading gives: in each mode, and where memory is written behind torch's back.
"""

import json

import pytest

from runtime_log import CARRIED, record

pytest.importorskip("torch")

# A view, a write, or a use; every result and every used tensor is hashed by the program itself.
PROGRAM = """
import ctypes, json, random, sys
import torch
from opguard import _rt
pick = random.Random(SEED)
torch.manual_seed(SEED)
for _ in range(40):
    og('warm', torch.relu)(torch.ones(4))
told = []
def tell(site, *tensors):
    told.append([site, [list(_rt.fingerprint(t, 'all')) for t in tensors]])
def clobber(t):
    # One element, behind torch's back: no counter counts it.
    ctypes.memmove(t.data_ptr(), ctypes.byref(ctypes.c_float(pick.random())), 4)
VIEWS = [
    lambda t: t.view(-1, t.shape[-1]), lambda t: t.view(4, -1, t.shape[-1]), lambda t: t.view(2, 4, -1, t.shape[-1]),
    lambda t: t.transpose(0, -2) if t.dim() > 2 else t, lambda t: t.t() if t.dim() == 2 else t.transpose(-1, -2),
    lambda t: t.unsqueeze(1), lambda t: t.flatten(), lambda t: t[: t.shape[0] // 2], lambda t: t.detach(),
    lambda t: t.view(t.shape[0], -1), lambda t: t.chunk(2, -1)[1],
]
def contiguous_enough(view, t):
    try:
        return view(t)
    except (RuntimeError, IndexError):
        return t
for step in range(60):
    base = torch.randn(pick.choice([32, 64, 96]), pick.choice([64, 128, 258]))
    og('start', torch.add)(base, 0)
    tensors = [base]
    for _ in range(8):
        t = pick.choice(tensors)
        move = pick.random()
        if move < 0.6:
            view = pick.choice(VIEWS)
            made = og('view', contiguous_enough)(view, t)
            tell('view', made)
            tensors.append(made)
        elif move < 0.75:
            t.mul_(2)
        elif move < 0.85 and BEHIND:
            clobber(t)
        else:
            tell('use', t)
            og('use', torch.relu)(t)
json.dump(told, open(sys.argv[1], 'w'))
"""


@pytest.mark.parametrize("mode", ["full", "default"])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_view_is_recorded_as_it_is_read(tmp_path, mode, seed):
    told = tmp_path / "told.json"
    source = PROGRAM.replace("SEED", str(seed)).replace("BEHIND", str(mode == "full")).replace("sys.argv[1]", repr(str(told)))
    log = record(source, tmp_path / "log", env={"OPGUARD_MODE": mode})
    recorded = {"view": [], "use": []}
    for event in log.events:
        if event.boundary == "view" and event.kind == "op":
            recorded["view"].append(event.get("out", "out0"))
        elif event.boundary == "use" and event.kind == "op":
            recorded["use"].append(next(s for s in event.slots if s.kind == "in"))
    expected = {"view": [], "use": []}
    for site, tensors in json.loads(told.read_text()):
        expected[site] += tensors
    for site in ("view", "use"):
        assert len(recorded[site]) == len(expected[site]) > 30
        for slot, (h, m, flat, _, digest) in zip(recorded[site], expected[site]):
            assert (slot.value, slot.flat, slot.digest) == ((h, m), flat, digest), slot


BACKWARD = """
import json
import torch
from opguard import _rt
torch.manual_seed(1)
for _ in range(40):
    og('warm', torch.relu)(torch.ones(4))
x = torch.randn(64, 256, requires_grad=True)
y = og('view', x.view)(4, 16, 256)
(y * torch.randn(4, 16, 256)).sum().backward()
json.dump(list(_rt.fingerprint(x.grad, 'all')), open(PATH, 'w'))
"""


@pytest.mark.parametrize("mode", ["full", "default"])
def test_a_views_gradient_is_folded_from_the_one_beside_it(tmp_path, mode):
    told = tmp_path / "told.json"
    log = record(BACKWARD.replace("PATH", repr(str(told))), tmp_path / "log", env={"OPGUARD_MODE": mode})
    (node,) = [e for e in log.events if e.node == "ViewBackward0"]
    h, m, flat, _, digest = json.loads(told.read_text())
    slot = node.get("out", "out0")
    assert (slot.value, slot.flat, slot.digest) == ((h, m), flat, digest) and not slot.flags & CARRIED
    assert slot.value != node.get("in", "grad0").value and slot.flat == node.get("in", "grad0").flat
