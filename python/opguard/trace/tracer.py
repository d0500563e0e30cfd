"""The preflight: which expression of the user's source dispatched which ATen operators.

A dispatch mode is entered when torch has been imported and stays for the whole program, in every thread.
It must never change what the program does: an operator is passed on as it came, and an error of ours is
counted, not raised.

    attention.py 14:8   y = softmax(s, dim=-1)      a use: {aten::softmax.int: 12}
    backward            _softmax_backward_data      the same use, through the node that it made
    optimizer.step()    aten::_foreach_add_         the use of the call, where the frame below is torch's

An operator belongs to the innermost frame of the user's, and there to the expression that is being executed.
One that the autograd engine dispatches has no such frame; graph.py knows which use made its node.

Counterexample: sys.settrace would see every line, and none of what a line dispatches. It would cost a call a
line; this costs one a dispatched operator. Tracing ends by itself when nothing new comes any more."""

import functools
import os
import sys
import threading
import time

from opguard.load import exits, messages, roots
from opguard.record import hook_numbers
from opguard.trace import calls, compiling, device, file, graph, kernels, marks, mode, script
from opguard.trace.compute import computes_cached
from opguard.trace.positions import Positions

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # the package
_WRITE_EVERY_S = 2.0
_FEWEST_QUIET_STEPS = 16  # a program may log or validate every ten steps
_WATCHED_CALLS = 8  # of each expression, for arguments it writes: to read them all twice is slow
_FUNCTION_FILE = os.path.join("torch", "autograd", "function.py")

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip


class Use:
    """One expression under which operators were dispatched."""

    __slots__ = ("path", "place", "callee", "order", "activities", "backward", "phases", "compute", "dtypes", "writes", "watched",
                 "kernels", "transfers", "kernel_phases", "streams", "device_ns", "draws")  # fmt: skip

    def __init__(self, path, place, callee, order, dtypes):
        self.path, self.place, self.callee, self.order, self.dtypes = path, place, callee, order, dtypes
        self.activities = {}  # dispatched under the expression itself
        self.backward = {}  # dispatched by the autograd engine for nodes that the expression made
        self.phases = {}  # all of these
        self.compute = {}  # of these, those that compute
        self.writes = set()  # arguments changed behind the version counters
        self.watched = 0  # calls that were looked at for it
        self.draws = False  # an operator below takes random numbers from a generator
        # Of devices (trace/device.py): kernels, copies and the like below both; kernels by phase.
        self.kernels, self.transfers, self.kernel_phases = {}, {}, {}
        self.streams, self.device_ns = set(), 0


class Pass:
    """A backward pass under way: where it was called, whether it makes a graph, whose thread called it."""

    __slots__ = ("found", "creates_graph", "sites")

    def __init__(self, found, creates_graph, sites):
        self.found, self.creates_graph, self.sites = found, creates_graph, sites


class Tracer:
    def __init__(self, torch, options):
        self.torch, self.options = torch, options
        self.roots = roots.Roots(options.tree, options.packages, options.left_out)
        self.graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self.seeded = getattr(getattr(torch, "Tag", None), "nondeterministic_seeded", None)
        self.lock = threading.Lock()
        self.kinds = {}  # id(code) -> (path, is_ours, code)
        self.engines = set()  # ids of code below which the autograd engine runs: kept alive by `kinds`
        self.active = True
        # The main thread's mode. Torch 2.4 crashes where its stack holds the only reference.
        self.mode = self.mode_thread = None
        self.forked = False
        self.devices = None
        self.reset()

    def fork(self):
        """In a forked child: what the parent saw is the parent's."""
        self.reset()
        self.forked = True
        if self.devices is not None:
            self.devices.fork()

    def failed(self):
        """Something of ours went wrong: the program goes on."""
        self.errors += 1

    def reset(self):
        self.positions = Positions()
        self.graph = graph.Graph(self.torch)
        self.writes = kernels.Writes(self.torch)
        self.uses = {}
        self.calls = calls.Calls(self.kind_of, self.positions)
        self.activities = self.foreign = self.errors = self.steps = self.all_steps = 0
        self.newest = 0  # the step, from 1, in which something was seen that no earlier one had
        self.ended = False  # since nothing new had come for long enough
        self.foreign_compute = {}  # phase -> {activity: count}, no user frame
        self.accumulated = {}  # activity -> count, into a parameter's gradient
        self.passes = []  # Pass, any thread
        self.micro_batches = {}  # backward passes of a step -> how many such steps
        self.backwards = 0  # passes since the last step
        self.local = threading.local()
        self.lock = threading.Lock()
        self.file = file.TraceFile(self.options.trace)
        self.written_s = time.monotonic()

    # -- what happens in the program

    def saw(self, func, name, args, kwargs):
        """An operator, from __torch_dispatch__; `name` as in its schema, with the overload. (its use or None, the
        number its launches get or 0)"""
        if not self.active or getattr(self.local, "busy", False):
            return None, 0
        try:
            # Of the mode's own caller: none in a device thread of the autograd engine, which comes from C++.
            frame = sys._getframe(1).f_back
            found, engine, phase = self.locate(frame, name.rpartition(".")[0] or name)
            if engine:
                number = self.graph.running()
                if number == graph.ACCUMULATE and not name.startswith("c10d::"):
                    self.accumulate(func, name)
                    return None, self.launches(device.Devices.ACCUMULATED, "backward")
                found, engine = self.linked(number, found)
            if self.graph.links:
                grad = self.torch.is_grad_enabled()
                self.graph.dispatched(found, grad, args, lambda: self.outside(frame))
            use = self.count(name, found, phase, args, kwargs, computes_cached(name, func), engine)
            if use is not None and not engine and not use.draws:
                use.draws = self.seeded in getattr(func, "tags", ())
            return use, self.launches(use, phase)
        except Exception:
            self.errors += 1
            return None, 0

    def launches(self, use, phase):
        """The number of what a device does for `use`, None: for no expression. 0 without devices."""
        return self.devices.number((use, phase)) if self.devices is not None else 0

    def linked(self, number, found):
        """(the site whose execution made the node `number`, True), or (the backward call's site, False)."""
        caller = self.current_pass()
        site = None
        if number is not None:
            site = self.graph.site_of(number, caller.sites if caller else None)
        return site or found or (caller.found if caller else None), site is not None

    def current_pass(self):
        """The innermost pass of this thread; of any thread in the engine's own. None if there is none."""
        own = getattr(self.local, "passes", None)
        newest = (own or self.passes)[-1:]  # another thread may end its pass meanwhile
        return newest[0] if newest else None

    def outside(self, frame):
        """The site that called the innermost custom autograd.Function, None if there is none."""
        while frame is not None:
            code = frame.f_code
            if code.co_name == "apply" and code.co_filename.endswith(_FUNCTION_FILE):
                return self.locate(frame.f_back, "apply")[0]
            frame = frame.f_back
        return None

    def mark(self, name, frame, args=(), kwargs=None, compute=False):
        """An activity that is no operator of the dispatcher's. (use, (path, place, callee), its launches' number),
        (None, None, 0) without a user frame."""
        try:
            found, engine, phase = self.locate(frame, name)
            if not compute and (engine or found is None):
                return None, None, 0  # the library's own affair
            if engine:
                found, engine = self.linked(self.graph.running(), found)
            use = self.count(name, found, phase, args, kwargs or {}, compute, engine)
            return use, found, self.launches(use, phase)
        except Exception:
            self.errors += 1
            return None, None, 0

    def below(self, launches, call):
        """call(), with what it launches under that number."""
        return self.devices.below(launches, call) if launches else call()

    def locate(self, frame, operator):
        """((path, place, callee) of the innermost user frame or None, whether the autograd engine is nearer, phase).

        callee: the outermost function below that frame that is not the user's, as `softmax`, else the operator's name.
        The walk goes up the stack until a user's frame, so a deep library costs more an operator."""
        callee = operator
        kinds, engines = self.kinds, self.engines
        in_pass = self.graph_task() != -1
        engine = False
        while frame is not None:
            code = frame.f_code
            # By id, the code kept with it: equal code of two files is equal to Python.
            kind = kinds.get(id(code)) or self.kind_of(code)
            if kind[0]:
                place = self.positions.of(frame)
                self.calls.note(frame)
                # What another module runs while it is imported is no part of a training step.
                phase = "import" if place.opcode.startswith("IMPORT_") else self.phase(in_pass)
                return (kind[0], place, callee), engine, phase
            if not kind[1]:
                callee = code.co_name
            elif in_pass and id(code) in engines:
                engine = True
            frame = frame.f_back
        # A device thread of the engine has no frame of the user's.
        return None, engine or in_pass, self.phase(in_pass)

    def kind_of(self, code):
        """(its path if it is the user's, else "", whether it is ours, the code that keeps the id alive)"""
        known = self.kinds.get(id(code))
        if known is not None:
            return known
        filename = code.co_filename
        ours = filename.startswith(_OWN)
        kind = self.kinds[id(code)] = ("" if ours else self.roots.path_of(filename), ours, code)
        if ours and code.co_name == "watched":
            self.engines.add(id(code))
        return kind

    def phase(self, in_pass):
        if in_pass:
            # Gradients are recorded inside a backward pass by a recomputed forward, or all over a pass
            # that itself is to be differentiated.
            if not self.torch.is_grad_enabled():
                return "backward"
            under = self.current_pass()
            return "backward" if under is not None and under.creates_graph else "recompute"
        if getattr(self.local, "passes", None):
            return "backward"  # before and after the engine: the first gradients
        if getattr(self.local, "optimizer", 0) and not self.torch.is_grad_enabled():
            return "optimizer"
        return "forward"

    def count(self, name, found, phase, args, kwargs, compute, engine):
        """Counts one activity; returns its Use, or None where no user frame is above it.

        `engine`: it counts as backward of the expression that made the node. A use's `order` is its place in first
        execution."""
        with self.lock:
            self.activities += 1
            if found is None:
                self.foreign += 1
                if compute:
                    names = self.foreign_compute.setdefault(phase, {})
                    names[name] = names.get(name, 0) + 1
                return None
            path, place, callee = found
            key = (path, place.line, place.column, place.end_line, place.end_column, place.opcode, place.nth, place.tested)
            if place.column < 0:
                key += (callee,)  # a line is all that is known: its callees tell the expressions apart
            use = self.uses.get(key)
            if use is None:
                use = self.uses[key] = Use(path, place, callee, len(self.uses), self.describe(args, kwargs))
            names = use.backward if engine else use.activities
            known = names.get(name, 0)
            names[name] = known + 1
            if not known:
                self.newest = self.steps + 1
            use.phases[phase] = use.phases.get(phase, 0) + 1
            if compute:
                use.compute[phase] = use.compute.get(phase, 0) + 1
            return use

    def accumulate(self, func, name):
        """AccumulateGrad adds to a parameter's gradient. Its node was made where the parameter was first used, which
        says nothing of this pass: no use has it."""
        with self.lock:
            self.activities += 1
            if computes_cached(name, func):
                self.accumulated[name] = self.accumulated.get(name, 0) + 1

    def watch_writes(self, use, args, kwargs, call):
        """call(), and into `use` which tensor arguments it changed behind the version counters."""
        if use is None or use.watched >= _WATCHED_CALLS or device.capturing(self.torch):
            return call()  # beside a capture the device may not be waited for
        use.watched += 1
        before = self.unseen(lambda: self.writes.before(args, kwargs)) or []
        result = call()
        use.writes.update(self.unseen(lambda: self.writes.after(before)) or ())
        return result

    def unseen(self, ask):
        """ask(): what we ask of tensors is not the program's."""
        self.local.busy = True
        try:
            return self.below(device.OWN if self.devices is not None else 0, ask)
        except Exception:
            self.errors += 1
            return None
        finally:
            self.local.busy = False

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
        if depth == 1:
            self.count_step()
        if depth != 1 or not self.active:
            return
        self.steps += 1
        self.micro_batches[self.backwards] = self.micro_batches.get(self.backwards, 0) + 1
        self.backwards = 0
        self.ended = self.options.steps is None and self.steps - self.newest >= max(self.newest, _FEWEST_QUIET_STEPS)
        if self.ended or self.options.steps and self.steps >= self.options.steps:
            self.active = False
            self.write(True)
            # Under other modes, and in other threads, it stays, idle.
            if self.mode_thread == threading.get_ident():
                mode.leave(self.mode)
        elif time.monotonic() - self.written_s > _WRITE_EVERY_S:
            # For a program that is killed later.
            self.write(False)

    def count_step(self):
        """For who waits for the runs that follow: also when tracing has ended."""
        self.all_steps += 1
        if not self.options.progress or self.options.rank != 0:
            return
        try:
            with open(self.options.progress, "w", encoding="ascii") as file:
                file.write("%d\n" % self.all_steps)
        except OSError:
            pass  # a run that is not counted is none the worse

    def watch(self, function, graph_argument, counts):
        """torch.autograd.backward or .grad, marked and otherwise as it is. counts: it ends a micro-batch."""

        @functools.wraps(function)
        def watched(*args, **kwargs):
            if not self.active:
                return function(*args, **kwargs)
            _, found, launches = self.mark("opguard::backward", sys._getframe(1))
            given = kwargs.get("create_graph", args[graph_argument] if len(args) > graph_argument else False)
            outer = self.current_pass() if found is None and self.graph_task() != -1 else None
            if outer is not None:
                found = outer.found  # a checkpoint's own pass within the user's
            entry = Pass(found, bool(given), self.graph.here() if self.graph.links else None)
            if counts and self.graph_task() == -1:
                self.backwards += 1
            self.passes.append(entry)
            if not hasattr(self.local, "passes"):
                self.local.passes = []
            own = self.local.passes
            own.append(entry)
            try:
                if launches:
                    return self.devices.below(launches, lambda: function(*args, **kwargs))
                return function(*args, **kwargs)
            finally:
                own.remove(entry)
                if entry in self.passes:
                    self.passes.remove(entry)

        return watched

    def write(self, complete):
        self.written_s = time.monotonic()
        try:
            if self.devices is not None:
                self.devices.drain(complete and not device.capturing(self.torch))
                if complete:
                    self.devices.stop()
            with self.lock:
                document = file.document(self, complete)
            self.file.write(document)
        except Exception as error:
            messages.complain("the trace could not be written: %s: %s" % (type(error).__name__, error))

    def finish(self):
        if self.active:
            self.active = False
            if self.activities or not self.forked:
                self.write(True)


def install(torch, options):
    """Right after torch has been imported, in the thread that imported it."""
    tracer = Tracer(torch, options)
    tracer.devices = device.install(torch, options, tracer.failed)
    mode_class = mode.make_mode(torch, tracer)
    mode.let_higher_order_pass(torch, mode_class)
    for name, graph_argument in (("backward", 3), ("grad", 4)):
        original = getattr(torch.autograd, name)
        watched = tracer.watch(original, graph_argument, name == "backward")
        marks.replace(torch.autograd, name, original, watched)
    steps = sys.modules.get("torch.optim.optimizer")
    if hasattr(steps, "register_optimizer_step_pre_hook"):
        with hook_numbers.apart():
            steps.register_optimizer_step_pre_hook(tracer.before_step)
        with hook_numbers.apart():
            steps.register_optimizer_step_post_hook(tracer.after_step)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=tracer.fork)
    marks.install(tracer)
    kernels.install(tracer)
    script.install(torch, mode_class)
    if options.compiling:
        compiling.install(torch, tracer)
    exits.at_exit(tracer.finish)
    mode.follow_threads(mode_class)
    tracer.mode = mode_class()
    tracer.mode.__enter__()
    tracer.mode_thread = threading.get_ident()
    return tracer
