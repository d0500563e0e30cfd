"""What a program does only while it is compiled, seen without compiling it.

    if torch.compiler.is_compiling():
        return F.normalize(x)          a compiled run takes this branch
    return x / x.norm()                a preflight compiles nothing, and would take that

So the program is told that it is being compiled where a compiled run would be told so: below a function or a module
that it gave to torch.compile. Torch's own functions are not, since they would then expect what only dynamo can give.

Counterexample: a call below a graph break. A compiled run is not compiling there, and this cannot be known before.
"""

import contextlib
import functools
import os
import sys
import weakref

from opguard.trace import marks

_ASKED = ("is_compiling", "is_dynamo_compiling")


class _Compiled:
    """What was given to torch.compile: functions by their code, modules."""

    def __init__(self, torch):
        self.torch, self.codes, self.modules, self.said = torch, set(), weakref.WeakSet(), False

    def add(self, given):
        given = getattr(given, "__self__", given)  # module.compile() gives its _call_impl
        if isinstance(given, self.torch.nn.Module):
            self.modules.add(given)
        else:
            code = getattr(given, "__code__", None)
            if code is not None:
                self.codes.add(code)

    def say_told(self, folder):
        """To preflight.cc: a program that fails may do so because it was told."""
        if not self.said:
            self.said = True
            with contextlib.suppress(OSError):
                open(os.path.join(folder, "told-compiling"), "w").close()

    def runs(self, frame):
        """Is the frame not torch's, and below one of these?"""
        if _package(frame) == "torch" or not (self.codes or self.modules):
            return False
        call = self.torch.nn.Module._call_impl.__code__
        while frame is not None:
            code = frame.f_code
            if code in self.codes:
                return True
            if code is call and frame.f_locals.get("self") in self.modules:
                return True
            if code.co_name == "_fn" and getattr(code, "co_qualname", "").startswith("DisableContext."):
                return False  # below torch.compiler.disable
            frame = frame.f_back
        return False


def _package(frame):
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else None


def install(torch, tracer):
    """Right after torch has been imported: who takes these functions by name takes ours."""
    compiler, original = getattr(torch, "compiler", None), getattr(torch, "compile", None)
    if compiler is None or original is None:
        return
    compiled = _Compiled(torch)
    marks.replace(torch, "compile", original, _noting(original, compiled))
    for name in _ASKED:
        asked = getattr(compiler, name, None)
        if asked is not None:
            marks.replace(compiler, name, asked, _told(asked, tracer, compiled))


def _noting(original, compiled):
    """torch.compile as it is; also as a decorator with options, @torch.compile(dynamic=True), which comes without a
    model."""

    @functools.wraps(original)
    def compile(model=None, **kwargs):
        if model is None:
            return functools.partial(compile, **kwargs)
        if not kwargs.get("disable"):
            compiled.add(model)
        return original(model, **kwargs)

    return compile


def _told(original, tracer, compiled):
    """is_compiling(), for the program. Torch's own callers get torch's answer, and so does who asks when tracing has
    ended.

    The caller's frame is looked at, not the thread: the same function may run compiled and not."""

    @functools.wraps(original)
    def asked():
        if original():
            return True
        if not (tracer.active and compiled.runs(sys._getframe(1))):
            return False
        compiled.say_told(tracer.options.trace)
        return True

    return asked
