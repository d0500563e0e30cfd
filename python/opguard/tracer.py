"""The preflight: which expression of the user's source dispatched which ATen operators.

A dispatch mode is entered when torch has been imported and stays for the whole program, in every thread.
It must never change what the program does: an operator is passed on as it came, and an error of ours is
counted, not raised."""

import functools
import os
import sys
import threading
import time

from opguard import exits, roots, trace_file
from opguard.positions import Positions

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_WRITE_EVERY_S = 2.0

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip


class Use:
    """One expression under which operators were dispatched."""

    __slots__ = ("path", "place", "callee", "order", "activities", "phases", "dtypes")

    def __init__(self, path, place, callee, order, dtypes):
        self.path, self.place, self.callee, self.order, self.dtypes = path, place, callee, order, dtypes
        self.activities = {}
        self.phases = {}


class Tracer:
    def __init__(self, torch, options):
        self.torch, self.options = torch, options
        self.roots = roots.Roots(options.tree, options.packages)
        self.graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self.lock = threading.Lock()
        self.kinds = {}  # id(code) -> (path, is_ours, code)
        self.active = True
        # The main thread's mode. Torch 2.4 crashes where its stack holds the only reference.
        self.mode = None
        self.forked = False
        self.reset()

    def fork(self):
        """In a forked child: what the parent saw is the parent's."""
        self.reset()
        self.forked = True

    def reset(self):
        self.positions = Positions()
        self.uses = {}
        self.activities = self.foreign = self.errors = self.steps = 0
        self.backwards = []  # (path, place, callee, create_graph) of backward passes under way, any thread
        self.local = threading.local()
        self.lock = threading.Lock()
        self.file = trace_file.TraceFile(self.options.trace)
        self.written_s = time.monotonic()

    # -- what happens in the program

    def saw(self, name, args, kwargs):
        """An operator, from __torch_dispatch__; `name` as in its schema, with the overload."""
        if not self.active:
            return
        try:
            found = self.locate(sys._getframe(2), name.rpartition(".")[0] or name)
            phase = self.phase()
            if found is None and phase != "forward" and self.backwards:
                # A device thread of the autograd engine has no frame of the user's: its call site has.
                found = self.backwards[-1][:3]
            self.count(name, found, phase, args, kwargs)
        except Exception:
            self.errors += 1

    def mark(self, name, frame):
        """A pseudo activity: a boundary even where all below it is the user's own code."""
        found = None
        try:
            found = self.locate(frame, name)
            self.count(name, found, self.phase(), (), {})
        except Exception:
            self.errors += 1
        return found

    def locate(self, frame, operator):
        """(path, place, callee) of the innermost user frame, None if there is none."""
        callee = operator
        kinds = self.kinds
        while frame is not None:
            code = frame.f_code
            # By id, the code kept with it: equal code of two files is equal to Python.
            kind = kinds.get(id(code))
            if kind is None:
                filename = code.co_filename
                ours = filename.startswith(_OWN)
                kind = kinds[id(code)] = ("" if ours else self.roots.path_of(filename), ours, code)
            if kind[0]:
                return kind[0], self.positions.of(frame), callee
            if not kind[1]:
                callee = code.co_name
            frame = frame.f_back
        return None

    def phase(self):
        if self.graph_task() != -1:
            # Gradients are recorded inside a backward pass by a recomputed forward, or all over a pass
            # that itself is to be differentiated.
            creates_graph = bool(self.backwards) and self.backwards[-1][3]
            return "recompute" if self.torch.is_grad_enabled() and not creates_graph else "backward"
        if getattr(self.local, "optimizer", 0) and not self.torch.is_grad_enabled():
            return "optimizer"
        return "forward"

    def count(self, name, found, phase, args, kwargs):
        with self.lock:
            self.activities += 1
            if found is None:
                self.foreign += 1
                return
            path, place, callee = found
            key = (path, place.line, place.column, place.end_line, place.end_column, place.opcode)
            if place.column < 0:
                key += (callee,)  # a line is all that is known: its callees tell the expressions apart
            use = self.uses.get(key)
            if use is None:
                use = self.uses[key] = Use(path, place, callee, len(self.uses), self.describe(args, kwargs))
            use.activities[name] = use.activities.get(name, 0) + 1
            use.phases[phase] = use.phases.get(phase, 0) + 1

    def describe(self, args, kwargs):
        found = []  # the first few: a fused optimizer takes hundreds
        for value in list(args) + list(kwargs.values()):
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, self.torch.Tensor) and len(found) < 16:
                    dtype = str(item.dtype).rpartition(".")[2]
                    shape = ",".join(str(n) for n in item.shape)  # int() would fix a symbolic size
                    found.append("%s[%s]" % (_DTYPES.get(dtype, dtype), shape))
        return found

    # -- steps and passes

    def before_step(self, optimizer, args, kwargs):
        depth = getattr(self.local, "optimizer", 0)
        if self.active and depth == 0:
            self.mark("opguard::optimizer_step", sys._getframe(1))
        self.local.optimizer = depth + 1

    def after_step(self, optimizer, args, kwargs):
        depth = getattr(self.local, "optimizer", 0)
        self.local.optimizer = max(0, depth - 1)
        if depth != 1 or not self.active:
            return
        self.steps += 1
        if self.options.steps and self.steps >= self.options.steps:
            self.active = False  # the mode stays, idle: under other modes it could not be taken out
            self.write(True)
        elif time.monotonic() - self.written_s > _WRITE_EVERY_S:
            # For a program that is killed later.
            self.write(False)

    def watch(self, function, graph_argument):
        """torch.autograd.backward or .grad, marked and otherwise as it is."""

        @functools.wraps(function)
        def watched(*args, **kwargs):
            if not self.active:
                return function(*args, **kwargs)
            found = self.mark("opguard::backward", sys._getframe(1)) or (None, None, None)
            given = kwargs.get("create_graph", args[graph_argument] if len(args) > graph_argument else False)
            entry = found + (bool(given),)
            if found[0] is not None:
                self.backwards.append(entry)
            try:
                return function(*args, **kwargs)
            finally:
                if found[0] is not None and entry in self.backwards:
                    self.backwards.remove(entry)

        return watched

    def write(self, complete):
        self.written_s = time.monotonic()
        try:
            with self.lock:
                document = trace_file.document(self, complete)
            self.file.write(document)
        except Exception as error:
            from opguard import startup

            startup.complain("the trace could not be written: %s: %s" % (type(error).__name__, error))

    def finish(self):
        if self.active:
            self.active = False
            if self.activities or not self.forked:
                self.write(True)


def _make_mode(torch, tracer):
    from torch.utils import _python_dispatch as dispatch

    class TracerMode(dispatch.TorchDispatchMode):
        # cond, flex_attention and the like come through as operators.
        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else the first operator would import torch._dynamo

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            tracer.saw(_name(func), args, kwargs)
            return func(*args, **kwargs)

    return TracerMode


_names = {}


def _name(func):
    name = _names.get(func)
    if name is None:
        schema = getattr(func, "_schema", None)
        if schema is None:
            name = "higher_order::%s" % getattr(func, "__name__", "unknown")
        else:
            name = "%s.%s" % (schema.name, schema.overload_name) if schema.overload_name else schema.name
        _names[func] = name
    return name


def _let_higher_order_pass(torch, mode_class):
    """Before torch 2.7 a mode unknown to a higher order operator is an error there."""
    from torch.utils import _python_dispatch as dispatch

    if hasattr(dispatch.TorchDispatchMode, "supports_higher_order_operators"):
        return
    operator = getattr(torch._ops, "HigherOrderOperator", None)
    inner = getattr(operator, "dispatch", None)
    if inner is None or not hasattr(dispatch, "_pop_mode_temporarily"):
        return

    @functools.wraps(inner)
    def passed(self, key, *args, **kwargs):
        if key == torch._C.DispatchKey.Python and type(dispatch._get_current_dispatch_mode()) is mode_class:
            with dispatch._pop_mode_temporarily():
                return self(*args, **kwargs)
        return inner(self, key, *args, **kwargs)

    operator.dispatch = passed


def _follow_threads(mode_class):
    """Modes are per thread: each later thread gets one of its own."""
    begin = getattr(threading.Thread, "_bootstrap_inner", None)
    if begin is None:
        return

    @functools.wraps(begin)
    def _bootstrap_inner(self):
        try:
            mode = mode_class()
            mode.__enter__()
        except Exception:
            mode = None
        try:
            begin(self)
        finally:
            _leave(mode)

    threading.Thread._bootstrap_inner = _bootstrap_inner


def _leave(mode):
    """Takes the mode out where nothing the program has pushed is above it."""
    try:
        from torch.utils import _python_dispatch as dispatch

        if mode is not None and dispatch._get_current_dispatch_mode() is mode:
            mode.__exit__(None, None, None)
    except Exception:
        pass  # it goes with the thread


def install(torch, options):
    """Right after torch has been imported, in the thread that imported it."""
    tracer = Tracer(torch, options)
    mode_class = _make_mode(torch, tracer)
    _let_higher_order_pass(torch, mode_class)
    torch.autograd.backward = tracer.watch(torch.autograd.backward, 3)
    torch.autograd.grad = tracer.watch(torch.autograd.grad, 4)
    steps = sys.modules.get("torch.optim.optimizer")
    if hasattr(steps, "register_optimizer_step_pre_hook"):
        steps.register_optimizer_step_pre_hook(tracer.before_step)
        steps.register_optimizer_step_post_hook(tracer.after_step)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=tracer.fork)
    exits.at_exit(tracer.finish)
    _follow_threads(mode_class)
    tracer.mode = mode_class()
    tracer.mode.__enter__()
    return tracer
