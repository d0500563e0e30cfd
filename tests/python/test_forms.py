"""Each operator form recorded with real torch: the same result as bare, and an event with its inputs and outputs."""

import pytest
from runtime_log import logs_in, record, run_program

torch = pytest.importorskip("torch")


def test_marks_are_probes_and_writes_reads_arguments_again(tmp_path):
    log = record(
        """
import torch, ctypes
def kernel(x, y):  # behind the version counter, as a raw pointer would
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
x, y = torch.ones(4), torch.ones(4)
og("plain", kernel)(x.clone(), y)
og.writes("kernel", kernel)(x, y)
og.step("step", torch.add)(x, y)
og.micro_batch("micro", torch.mul)(x, y)
""",
        tmp_path / "log",
    )
    assert log.of("plain")[0].names("written") == []
    (event,) = log.of("kernel")
    assert event.names("written") == ["arg0"] and event.get("written", "arg0").value != event.get("in", "arg0").value
    assert [log.of(b)[0].names("out") for b in ("step", "micro")] == [["out0"], ["out0"]]


# form, statements with a probe, inputs, outputs and written slots of its event. `bare` is the same without og.
FORMS = [
    ("read", "r = og('m.read:ab12', h).twice", [], ["out0"], []),
    ("write", "og('m.data:ab12', p).data = x; r = p", ["self", "arg0"], [], ["self"]),
    ("enter", "with og('m.with:ab12', h) as r: pass", None, ["out0"], []),
    ("truth", "r = x if og('m.bool:ab12', x.sum()) else y", ["self"], [], []),
    ("not", "r = not og('m.bool:ab12', x.sum())", ["self"], [], []),
    ("contains", "r = 2.0 in og('m.in:ab12', x)", ["self"], [], []),
    ("format", "r = f\"{og('m.format:ab12', x.sum()):.3f}\"", ["self"], [], []),
    ("unpack", "r, _ = og('m.iter:ab12', x)", ["self"], ["out0"], []),
    ("star", "r = torch.stack([*og('m.iter:ab12', x)])", ["self"], ["out0"], []),
    ("chain", "r = og('m.lt:ab12', x[0]) < og('m.lt:cd34', x[1]) < y[1]", ["self", "arg0"], ["out0"], []),
    ("await", "r = run(lambda: og('m.await:ab12', later(x)))", None, ["out0"], []),
    ("decorator", "@og('m.call:ab12', once)\ndef r(): return x * 2\n", None, ["out0"], []),
    ("kernel", "r = torch.zeros(2); og.writes('m.kernel:ab12', og('g', table)['fill'])(r)", ["arg0"], [], ["arg0"]),
    ("out=", "r = torch.zeros(2); og('m.add:ab12', torch.add)(x, y, out=r)", ["arg0", "arg1", "out"], ["out0"], ["out"]),
    ("star call", "r = og('m.add:ab12', torch.add)(*(x, y))", ["arg0", "arg1"], ["out0"], []),
    ("generator", "r = og('m.sum:ab12', sum)(i * 2 for i in x)", None, ["out0"], []),
    ("chained call", "r = og('m.make:ab12', og('i', make)(2))(x)", ["arg0"], ["out0"], []),
    ("super", "r = H2().twice_super()", None, ["out0"], []),
    ("reflected", "r = og('m.sub:ab12', 3.0) - x", ["arg0"], ["out0"], []),
]  # fmt: skip

PROGRAM = """
import asyncio, ctypes, re, torch
x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
p = torch.nn.Parameter(torch.zeros(2))
class H:
    @property
    def twice(self): return x * 2
    def __enter__(self): return x + 1
    def __exit__(self, *error): return None
    def f(self, z): return z * 3
class H2(H):
    def twice_super(self): return og('m.super:ab12', super().f)(x)
h = H()
def once(f): return f()
def make(n): return lambda z: z * n
def fill(z): ctypes.memset(z.data_ptr(), 1, 8)
table = {'fill': fill}
async def later(z):
    await asyncio.sleep(0)
    return z + 1
async def main(make): return await make()
def run(make): return asyncio.run(main(make))
def answer(text):
    names = dict(globals())
    exec(text, names)
    return repr(names['r'])
for form, text in FORMS:
    bare = re.sub(r"og(?:\\.writes)?\\('[^']*', ", "(", text)
    print(form, answer(text) == answer(bare))
"""


def test_every_form_has_its_event_and_its_result(tmp_path):
    # One program for all: each form's boundaries end in its number.
    forms = [(form, text.replace("ab12", f"n{i:02}")) for i, (form, text, *_) in enumerate(FORMS)]
    program = PROGRAM.replace("m.super:ab12", f"m.super:n{[f for f, _ in forms].index('super'):02}")
    assert run_program(f"FORMS = {forms!r}\n" + program, tmp_path / "log").stdout.splitlines() == [
        f"{form} True" for form, _ in forms
    ]
    (log,) = logs_in(tmp_path / "log")
    for i, (form, _, inputs, outputs, written) in enumerate(FORMS):
        events = [e for e in log.events if e.kind == "op" and e.boundary.endswith(f":n{i:02}")]
        assert events, form
        event = events[0]
        assert event.names("out") == outputs and event.names("written") == written, (form, event)
        if inputs is not None:
            assert event.names("in") == inputs, (form, event)
