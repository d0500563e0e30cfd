"""A probe behaves as its operand: each form against the same text without probes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import build_dir
from runtime_log import run_program

# (bare, probed); evaluated with equal starting names. No torch: these run on every Python.
PAIRS = [
    ("max(3, 9)", "og('i', max)(3, 9)"),
    ("sorted([2, 3, 1], reverse=True)", "og('i', sorted)([2, 3, 1], reverse=True)"),
    ("f(*a, **k)", "og('i', f)(*a, **k)"),
    ("'a,b'.split(',')", "og('i', 'a,b'.split)(',')"),
    ("7 + 2.5", "og('i', 7) + 2.5"),
    ("7 - y", "og('i', 7) - y"),
    ("7 * [1]", "og('i', 7) * [1]"),
    ("[1] * 3", "og('i', [1]) * 3"),
    ("[1] + [2]", "og('i', [1]) + [2]"),
    ("x @ y", "og('i', x) @ y"),
    ("y @ x", "og('i', y) @ x"),
    ("7 / 2", "og('i', 7) / 2"),
    ("7 // 2", "og('i', 7) // 2"),
    ("-7 % 4", "-og('i', 7) % 4"),
    ("'%s-%d' % ('a', 3)", "og('i', '%s-%d') % ('a', 3)"),
    ("2 ** 10", "og('i', 2) ** 10"),
    ("2 ** x", "og('i', 2) ** x"),
    ("1 << 5", "og('i', 1) << 5"),
    ("77 >> 2", "og('i', 77) >> 2"),
    ("6 & 3", "og('i', 6) & 3"),
    ("6 | 3", "og('i', 6) | 3"),
    ("{1} ^ {2}", "og('i', {1}) ^ {2}"),
    ("-y, +y, ~y", "-og('i', y), +og('i', y), ~og('i', y)"),
    ("3 < 4, 3 > 4, 3 == 4, 3 != 4", "og('i', 3) < 4, og('i', 3) > 4, og('i', 3) == 4, og('i', 3) != 4"),
    ("3 <= x, 3 >= x", "og('i', 3) <= x, og('i', 3) >= x"),
    ("x < 3, y == 3", "og('i', x) < 3, og('i', y) == 3"),
    ("'abc'[1], 'abc'[::-1]", "og('i', 'abc')[1], og('i', 'abc')[::-1]"),
    ("{'a': 1}['a']", "og('i', {'a': 1})['a']"),
    ("list[int]", "og('i', list)[int]"),
    ("[c for c in 'abc']", "[c for c in og('i', 'abc')]"),
    ("{k: v for k, v in {1: 2}.items()}", "{k: v for k, v in og('i', {1: 2}.items())}"),
    ("o.v, type(o).__name__", "og('i', o).v, og('i', type(o)).__name__"),
    ("bool(o), not [], 'y' if {} else 'n'", "bool(og('i', o)), not og('i', []), 'y' if og('i', {}) else 'n'"),
    ("3 in [1, 3], 3 not in (1, 3), 'a' in 'abc'", "3 in og('i', [1, 3]), 3 not in og('i', (1, 3)), 'a' in og('i', 'abc')"),
    ("f'{3.14159:.2f} {o!s:>6} {[1]!r} {chr(233)!a} {7}'", "f'{og(\"i\", 3.14159):.2f} {og(\"i\", o)!s:>6} {og(\"i\", [1])!r} {og(\"i\", chr(233))!a} {og(\"i\", 7)}'"),
    ("[*a, *'xy'], f(*a), {*a}", "[*og('i', a), *og('i', 'xy')], f(*og('i', a)), {*og('i', a)}"),
    ("1 < 2 < 3, 3 > 2 > 2, x < 3 < 2", "og('i', 1) < og('j', 2) < 3, og('i', 3) > og('j', 2) > 2, og('i', x) < og('j', 3) < 2"),
    # Errors: class and text.
    ("o.nope", "og('i', o).nope"),
    ("3 in 5", "3 in og('i', 5)"),
    ("f'{[]:d}'", "f'{og(\"i\", []):d}'"),
    ("not bad", "not og('i', bad)"),
    ("[*5]", "[*og('i', 5)]"),
    ("1 + 'a'", "og('i', 1) + 'a'"),
    ("'a' + 1", "og('i', 'a') + 1"),
    ("None()", "og('i', None)()"),
    ("max()", "og('i', max)()"),
    ("f(1, nope=2)", "og('i', f)(1, nope=2)"),
    ("5[0]", "og('i', 5)[0]"),
    ("{}['x']", "og('i', {})['x']"),
    ("[][3]", "og('i', [])[3]"),
    ("[z for z in 5]", "[z for z in og('i', 5)]"),
    ("None < 3", "og('i', None) < 3"),
    ("-'a'", "-og('i', 'a')"),
    ("(1, 2) @ 3", "og('i', (1, 2)) @ 3"),
    ("2 ** 'a'", "og('i', 2) ** 'a'"),
    ("y + [1]", "og('i', y) + [1]"),
]  # fmt: skip

# Statements: the value of `out` and of what they change.
STATEMENTS = [
    ("n = [1]; m = n; n += (2,); out = (n is m, n)", "n = [1]; m = n; n = og('i', n).iadd((2,)); out = (n is m, n)"),
    ("n = 5; n += 2; out = n", "n = 5; n = og('i', n).iadd(2); out = n"),
    ("n = 5; n **= 2; out = n", "n = 5; n = og('i', n).ipow(2); out = n"),
    ("n = 5; n -= 'a'", "n = 5; n = og('i', n).isub('a')"),
    ("n = 5; n **= 'a'", "n = 5; n = og('i', n).ipow('a')"),
    ("o.v = [1]; w = o.v; o.v += [2]; out = (o.v, w is o.v)", "o.v = [1]; w = o.v; og.aug('i', o).v += [2]; out = (o.v, w is o.v)"),
    ("o.v = 3; o.v *= 4; out = o.v", "o.v = 3; og.aug('i', o).v *= 4; out = o.v"),
    ("o.nope += 1", "og.aug('i', o).nope += 1"),
    ("d = {'k': 1}; d['k'] -= 3; out = d", "d = {'k': 1}; og.aug('i', d)['k'] -= 3; out = d"),
    ("d = ([],); d[0] += [1]", "d = ([],); og.aug('i', d)[0] += [1]"),
    ("d = [[1], 2]; d[0] *= 3; d[1] <<= 4; out = d", "d = [[1], 2]; og.aug('i', d)[0] *= 3; og.aug('i', d)[1] <<= 4; out = d"),
    ("d = {}; d[1] = 2; del d[1]; d[3] = 4; out = d", "d = {}; og('i', d)[1] = 2; del og('i', d)[1]; og('i', d)[3] = 4; out = d"),
    ("o.w = 3; out = o.w; del o.w", "og('i', o).w = 3; out = o.w; del og('i', o).w"),
    ("o.v, k['q'] = 4, 5; out = (o.v, k)", "og('i', o).v, og('i', k)['q'] = 4, 5; out = (o.v, k)"),
    ("(1).real = 2", "og('i', 1).real = 2"),
    ("p, q = gen(2)", "p, q = og('i', gen(2))"),
    ("p, q = [1]", "p, q = og('i', [1])"),
    ("p, *q = 'abc'; out = p, q", "p, *q = og('i', 'abc'); out = p, q"),
    ("p, q = 5", "p, q = og('i', 5)"),
    ("with c as out: seen.append('in')", "with og('i', c) as out: seen.append('in')"),
    ("with c as d: raise KeyError(7)\nout = seen[:]", "with og('i', c) as d: raise KeyError(7)\nout = seen[:]"),
    ("with c as d: raise ValueError(7)", "with og('i', c) as d: raise ValueError(7)"),
    ("with o: pass", "with og('i', o): pass"),
    ("with half: pass", "with og('i', half): pass"),
    ("out = run('async with c as d: seen.append(d)\\nreturn seen[:]')", "out = run('async with og(\"i\", c) as d: seen.append(d)\\nreturn seen[:]')"),
    ("run('async with c as d: raise ValueError(d)')", "run('async with og(\"i\", c) as d: raise ValueError(d)')"),
    ("run('async with o: pass')", "run('async with og(\"i\", o): pass')"),
    ("out = run('return [i async for i in agen(3)]')", "out = run('return [i async for i in og(\"i\", agen(3))]')"),
    ("run('async for i in o: pass')", "run('async for i in og(\"i\", o): pass')"),
    ("run('async for i in agen(-1): pass')", "run('async for i in og(\"i\", agen(-1)): pass')"),
    ("out = run('return await later(3), await later(None)')", "out = run('return await og(\"i\", later(3)), await og(\"j\", later(None))')"),
    ("out = run('return await old(3)')", "out = run('return await og(\"i\", old(3))')"),
    ("run('return await later(-1)')", "run('return await og(\"i\", later(-1))')"),
    ("run('await 5')", "run('await og(\"i\", 5)')"),
    ("out = run('try: await wait_for(sleep(9), 0.001)\\nexcept TimeoutErrors: return 7')",
     "out = run('try: await og(\"i\", wait_for(og(\"j\", sleep)(9), 0.001))\\nexcept TimeoutErrors: return 7')"),
    ("(1,)[0] = 2", "og('i', (1,))[0] = 2"),
    ("out = []\nfor c in gen(3): out.append(c)", "out = []\nfor c in og('i', gen(3)): out.append(c)"),
    ("g = outer(gen); out = [next(g), g.send(7), next(g), list(g), g.gi_frame]",
     "g = outer(lambda n: og('i', gen(n))); out = [next(g), g.send(7), next(g), list(g), g.gi_frame]"),
    ("g = outer(gen); next(g); out = g.throw(KeyError('k'))", "g = outer(lambda n: og('i', gen(n))); next(g); out = g.throw(KeyError('k'))"),
    ("g = outer(gen); next(g); g.close(); out = seen[:]", "g = outer(lambda n: og('i', gen(n))); next(g); g.close(); out = seen[:]"),
    ("g = outer(lambda n: iter([n, n])); next(g); g.send(1)", "g = outer(lambda n: og('i', iter([n, n]))); next(g); g.send(1)"),
]  # fmt: skip

HARNESS = r"""
import asyncio, traceback, types
TimeoutErrors = (TimeoutError, asyncio.TimeoutError)
from asyncio import sleep, wait_for
seen = []
class X:
    def __matmul__(self, other): return ("matmul", type(other).__name__)
    def __rpow__(self, other): return ("rpow", other)
    def __lt__(self, other): return "lt"
    def __ge__(self, other): return "reflected ge"
    def __le__(self, other): return "reflected le"
class Y:
    def __rmatmul__(self, other): return ("rmatmul", type(other).__name__)
    def __rsub__(self, other): return ("rsub", other)
    def __neg__(self): return "neg"
    def __pos__(self): return "pos"
    def __invert__(self): return "invert"
    def __eq__(self, other): return "eq"
    __hash__ = None
class O:
    v = 2
    def __str__(self): return "O!"
class Bad:
    def __bool__(self): raise ZeroDivisionError("no truth")
class C:
    def __enter__(self): seen.append("enter"); return "entered"
    def __exit__(self, kind, value, tb): seen.append(kind and kind.__name__); return kind is KeyError
    async def __aenter__(self): await asyncio.sleep(0); return "aentered"
    async def __aexit__(self, kind, value, tb): seen.append(("aexit", kind and kind.__name__))
class Half:
    def __enter__(self): seen.append("never")
async def agen(n):
    if n < 0: raise KeyError(n)
    for i in range(n): yield i
async def later(n):
    await asyncio.sleep(0)
    if n is not None and n < 0: raise KeyError(n)
    return n
@types.coroutine
def old(n):
    yield
    return n
def run(body):
    names = dict(globals(), c=C(), o=O())
    text = "async def main():\n " + body.replace("\n", "\n ")
    exec(text, names)
    return asyncio.run(names["main"]())
def f(*args, **kwargs):
    if "nope" in kwargs: raise TypeError("not nope")
    return args, kwargs
def gen(n):
    try:
        got = yield 1
        seen.append(got)
        try:
            got = yield 2
        except KeyError as e:
            yield ("caught", e.args)
        yield 3
        return "returned"
    finally:
        seen.append("closed")
def outer(make):
    value = yield from make(3)
    yield ("end", value)
def attempt(text, mode):
    seen.clear()
    names = dict(og=og, x=X(), y=Y(), f=f, a=(1, 2), k={"z": 3}, o=O(), gen=gen, outer=outer, seen=seen,
                 bad=Bad(), c=C(), half=Half(), run=run)
    try:
        if mode == "eval":
            return repr(eval(text, names))
        exec(text, names)
        return repr(names.get("out"))
    except BaseException as e:
        frames = [(t.name, t.lineno) for t in traceback.extract_tb(e.__traceback__) if t.name != "<lambda>"]
        return type(e).__name__, str(e), frames
bad = 0
for mode, pairs in (("eval", PAIRS), ("exec", STATEMENTS)):
    for bare, probed in pairs:
        want, got = attempt(bare, mode), attempt(probed, mode)
        if want != got:
            bad += 1
            print(bare, "gives", want, "and", probed, "gives", got)
print("compared", len(PAIRS) + len(STATEMENTS), "bad", bad)
"""


def interpreters():
    """This one, and every other one pyenv or the system has that the extension serves."""
    found = {sys.version_info[:2]: sys.executable}
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    candidates = [p for root in roots if root.is_dir() for p in sorted(root.glob("3.*/bin/python"))]
    for python in candidates + [Path(f"/usr/bin/python3.{minor}") for minor in range(10, 14)]:
        if not python.exists():
            continue
        code = "import sys; print(*sys.version_info[:2])"
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.split()
        version = tuple(map(int, answer))
        if (3, 10) <= version <= (3, 13):
            found.setdefault(version, str(python))
    return sorted(found.values())


@pytest.mark.parametrize("python", interpreters())
@pytest.mark.parametrize("recording", [True, False])
def test_every_form_behaves_as_its_operand(python, recording, tmp_path):
    source = f"PAIRS = {PAIRS!r}\nSTATEMENTS = {STATEMENTS!r}\n" + HARNESS
    # The probe of an iterator over a list has no send, like the iterator itself: its class is named.
    result = run_program(source, tmp_path / "log" if recording else None, python=python)
    assert result.stdout == f"compared {len(PAIRS) + len(STATEMENTS)} bad 0\n", result.stdout
    assert "opguard:" not in result.stderr


def test_no_frame_and_lexical_names(tmp_path):
    source = """
import sys, warnings
class A:
    def f(self): return "A.f", sys._getframe(1).f_code.co_name
class B(A):
    def f(self):
        return og("i", super().f)()
assert B().f() == ("A.f", "f")
def names():
    inside = 3
    return og("i", locals)()
assert names() == {"inside": 3}
def warn():
    og("i", warnings.warn)("here", stacklevel=1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warn()
line = warn.__code__.co_firstlineno + 1
assert caught[0].lineno == line, (caught[0].lineno, line)
r = object()
assert og("i", lambda: r)() is r
"""
    run_program(source, tmp_path / "log")


def test_operand_is_released_after_the_operator(tmp_path):
    source = """
import sys, weakref
class X:
    def __call__(self): return None
    def __add__(self, other): return other
x, n = X(), []
before = sys.getrefcount(x), sys.getrefcount(n), sys.getrefcount("i")
for _ in range(100):
    og("i", x)(); og("i", x) + n; og("i", n).iadd([]); [z for z in og("i", n)]
    try: og("i", x)[0]
    except TypeError: pass
    try: og.aug("i", x).nope += 1
    except AttributeError: pass
assert (sys.getrefcount(x), sys.getrefcount(n)) == before[:2]
w = weakref.ref(x)
del x
assert w() is None
"""
    run_program(source, tmp_path / "log")
    run_program(source)


# Each holds its owner from a stack that is kept: a cycle through what stands for the operand.
CYCLES = {
    "for": "def body(owner):\n    for _ in og('i', owner.items()): yield",
    "comprehension": "def body(owner): return (x for x in og('i', owner.items()))",
    "with": "def body(owner):\n    with og('i', owner): yield",
    "argument": "def body(owner): og('i', owner.take)((yield))",
    "operand": "def body(owner): og('i', owner) + (yield)",
    "augmented": "def body(owner): og.aug('i', owner).value += (yield)",
    "await": "async def body(owner): await og('i', owner)",
    "async for": "async def body(owner):\n    async for _ in og('i', owner): await owner",
    "async with": "async def body(owner):\n    async with og('i', owner): await owner",
}


@pytest.mark.parametrize("recording", [False, True])
def test_a_cycle_through_a_stand_in_is_collected(recording, tmp_path):
    run_program("""
import gc, types, weakref
gc.disable()
class Owner:
    value = 1
    def items(self): return map(self.take, [1, 2, 3])
    def take(self, x): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def __add__(self, other): return other
    def __await__(self): yield
    def __aiter__(self): return self
    async def __anext__(self): return 1
    async def __aenter__(self): return self
    async def __aexit__(self, *error): pass
for name, text in %r.items():
    exec(text)
    dead = []
    for _ in range(3):
        owner = Owner()
        owner.frame = body(owner)  # stays where it first waits
        owner.frame.send(None)
        dead.append(weakref.ref(owner))
        del owner
    assert all(ref() is not None for ref in dead), name
    gc.collect()
    assert all(ref() is None for ref in dead), name
assert og("i", 3) is not None and weakref.ref(og("i", 3))() is None
""" % CYCLES, tmp_path if recording else None)  # fmt: skip


def test_extension_is_one_file():
    names = sorted(p.name for p in (build_dir() / "python" / "opguard").glob("_rt*"))
    assert names == ["_rt.abi3.so"]
