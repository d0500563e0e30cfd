"""`--drill`: every ATen operator inside one event, with og1 fingerprints of what it reads and leaves
(docs/design/proof.md).

    y = og("block.softmax:4kq1", f)(x)      {"name": "aten._softmax.default", "scalars": "arg1=-1, ...",
                                             "in": [arg0 ...], "out": [out0 ...], "written": []}, one for each operator

The runtime opens a window when an event of a wanted boundary begins and closes it when the operator has returned. A
dispatch mode is active between the two and nowhere else. It calls each operator as it is and looks at its tensors, so
that results are what they would have been. The cost: each tensor is read for each operator that has it. Counterexample:
a kernel that is no operator shows here only by what the next operator reads."""

import json
import os
import sys

from opguard import _rt

# Of tensors, in the order of an operator's arguments and results; more than this is cut.
# So an optimizer that steps ten thousand parameters in one operator is told in part.
_MOST = 512


class Driller:
    """What the runtime calls: begin() -> window; end(window); keep(window, facts) for the one execution meant."""

    def __init__(self, folder, rank):
        self._folder, self._rank, self._files, self._mode = folder, rank, 0, None

    def begin(self):
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        if self._mode is None:
            self._mode = _mode_class(torch)
        window = self._mode()
        window.__enter__()
        return window

    def end(self, window):
        if window is not None:
            window.__exit__(None, None, None)

    def keep(self, window, boundary, occurrence, kind, phase, node, step):
        """The one execution that was meant: its operators as a file, drill-rank0-<pid>-0.json. It gets its name when it
        is whole. Windows of other executions are dropped."""
        if window is None:
            return
        path = os.path.join(self._folder, "drill-rank%d-%d-%d.json" % (self._rank, os.getpid(), self._files))
        self._files += 1
        facts = dict(boundary=boundary, occurrence=occurrence, kind=kind, phase=phase, node=node, step=step,
                     rank=self._rank, pid=os.getpid(), operators=window.operators)  # fmt: skip
        with open(path + ".incomplete", "w", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(path + ".incomplete", path)


def _mode_class(torch):
    """The window: a mode that notes operators. An operator that raises stays in the list with "raised": true."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Window(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.operators = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            entry = {"name": str(func), "scalars": _scalars(args, kwargs), "in": _tensors(torch, args, kwargs), "raised": True}
            self.operators.append(entry)
            result = func(*args, **kwargs)
            entry["raised"] = False
            entry["out"] = _tensors(torch, result if isinstance(result, (tuple, list)) else (result,), {}, "out")
            entry["written"] = _written(torch, func, args, kwargs)
            return result

    return Window


def _tensors(torch, args, kwargs, name="arg"):
    found = []

    def add(label, value):
        if len(found) >= _MOST:
            return
        if isinstance(value, torch.Tensor):
            found.append(_describe(label, value))
        elif isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                add("%s[%d]" % (label, i), item)

    for i, value in enumerate(args):
        add(name + str(i), value)
    for key, value in kwargs.items():
        add(key, value)
    return found


def _describe(label, tensor):
    """A tensor by form and fingerprint; the value None where it has no bytes to read, as a fake or sparse one."""
    value = None
    try:
        value = _rt.fingerprint(tensor)
    except Exception:
        pass  # no bytes to read
    return {
        "name": label,
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "shape": [int(n) for n in tensor.shape],
        "value": None if value is None else "%016x:%016x" % value,
    }


def _scalars(args, kwargs):
    """"arg1=-1, dim=[0, 1]": arguments that are not all tensors. In a list of both a tensor is "T"."""
    import torch

    def plain(value):
        if isinstance(value, torch.Tensor):
            return "T"
        if isinstance(value, (tuple, list)):
            return "[" + ", ".join(plain(v) for v in value) + "]"
        return _rt.describe(value)

    def only_tensors(value):
        if isinstance(value, (tuple, list)):
            return bool(value) and all(only_tensors(v) for v in value)
        return isinstance(value, torch.Tensor)

    named = [("arg%d" % i, v) for i, v in enumerate(args)] + list(kwargs.items())
    return ", ".join("%s=%s" % (name, plain(v)) for name, v in named if not only_tensors(v))


def _written(torch, func, args, kwargs):
    """What the schema says that the operator writes, as it is afterwards."""
    found = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = kwargs.get(argument.name) if argument.name in kwargs else args[i] if i < len(args) else None
        if value is not None:
            label = "arg%d" % i if argument.name not in kwargs else argument.name
            found += _tensors(torch, (), {label: value})
    return found
