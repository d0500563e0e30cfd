"""Kernels outside the dispatcher: Triton launches, native extensions, and the arguments they write."""

import importlib.util
import os
import shutil
import subprocess
import sysconfig

import pytest

from tracing import by_text, program, trace  # noqa: F401  (program is a fixture)

torch = pytest.importorskip("torch")

TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

@triton.autotune([triton.Config({"BLOCK": 4})], key=["n"])
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(out + at, mask=at < n) + 1, mask=at < n)

x, out = torch.arange(8.0), torch.empty(8)
for _ in range(3):
    scale[(2,)](x, out=out, n=8, BLOCK=4)
tuned[(2,)](x, out, 8)
print(out.tolist(), x.tolist())
"""


def needs_columns(program):
    if not program.has_columns:
        pytest.skip("no columns before Python 3.11")


def test_triton_launches(program):
    needs_columns(program)
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no triton")
    program.write("train.py", TRITON)
    program.environment["TRITON_INTERPRET"] = "1"
    uses = by_text(program, trace(program, "train.py"))
    launch = uses["scale[(2,)](x, out=out, n=8, BLOCK=4)"]
    assert launch["activities"]["triton::scale"] == 3 and launch["writes"] == ["out"]
    assert launch["compute"]["forward"] >= 3
    # The autotuner's own launches are one to the user.
    assert uses["tuned[(2,)](x, out, 8)"]["activities"]["triton::tuned"] == 1
    assert uses["tuned[(2,)](x, out, 8)"]["writes"] == ["arg0"]


OPERATOR = """
import torch
torch.library.define("mine::fill", "(Tensor x, Tensor out) -> ()")
torch.library.define("mine::said", "(Tensor x, Tensor(a!) out) -> ()")

def fill(x, out):
    out.numpy()[:] = x.numpy() * 2

torch.library.impl("mine::fill", "cpu", fill)
torch.library.impl("mine::said", "cpu", fill)
x, out = torch.ones(3), torch.zeros(3)
torch.ops.mine.fill(x, out)
torch.ops.mine.said(x + 1, out)
same = torch.ops.mine.fill(x, x.clone())
"""


def test_custom_operators(program):
    needs_columns(program)
    program.write("train.py", OPERATOR)
    uses = by_text(program, trace(program, "train.py"))
    fill = uses["torch.ops.mine.fill(x, out)"]
    assert fill["activities"] == {"mine::fill": 1} and fill["compute"] == {"forward": 1}
    assert fill["writes"] == ["arg1"]
    # Its schema says it: the version counter tells.
    assert uses["torch.ops.mine.said(x + 1, out)"]["writes"] == []


# Writes through the pointer, as kernels do; bound to libc10 by name only, so that it compiles in a moment.
EXTENSION = """
#include <Python.h>
static PyObject* twice(PyObject* self, PyObject* args) {
  PyObject *x, *out;
  if (!PyArg_ParseTuple(args, "OO", &x, &out)) return 0;
  PyObject *from = PyObject_CallMethod(x, "data_ptr", 0), *to = PyObject_CallMethod(out, "data_ptr", 0);
  PyObject *n = PyObject_CallMethod(x, "numel", 0);
  float *a = PyLong_AsVoidPtr(from), *b = PyLong_AsVoidPtr(to);
  for (long i = 0; i < PyLong_AsLong(n); ++i) b[i] = 2 * a[i];
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"twice", twice, METH_VARARGS, "b = 2 * a"}, {0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", 0, -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""


@pytest.mark.parametrize("linked", [True, False])
def test_native_extensions(program, linked):
    needs_columns(program)
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = program.write("fast.c", EXTENSION)
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
    command = [compiler, "-shared", "-fPIC", "-I" + sysconfig.get_paths()["include"], str(source), "-o", str(program.tree / "fast.so")]
    if linked:
        command += ["-Wl,--no-as-needed", "-L" + library, "-lc10", "-Wl,-rpath," + library, "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)
    program.write(
        "train.py",
        "import pickle, torch, fast\nx, out = torch.ones(3), torch.zeros(3)\nfast.twice(x, out)\nprint(out.tolist(), fast.twice.__doc__)\n"
        "class Layer:\n    op = fast.twice\nLayer().op(x, out)\nassert pickle.loads(pickle.dumps(fast.twice)) is fast.twice\n"
        "try:\n    fast.twice(1)\nexcept TypeError as error:\n    print(error)\n",
    )
    bare = program.run("train.py", python=program.python, environment={"OPGUARD_TRACE": ""})
    assert bare.returncode == 0, bare.stderr
    document = trace(program, "train.py")
    assert document["errors"] == 0
    uses = by_text(program, document)
    if linked:
        use = uses["fast.twice(x, out)"]
        assert use["activities"] == {"native::fast.twice": 1} and use["compute"] == {"forward": 1}
        assert use["writes"] == ["arg1"]
        assert "Layer().op(x, out)" in uses
    else:
        assert not any(name.startswith("native::") for use in uses.values() for name in use["activities"])
    assert program.run("train.py", python=program.python).stdout == bare.stdout
