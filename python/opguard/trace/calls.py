"""The preflight: which expression of the user's called which of the user's functions.

    attention.py:32   x = rotate(q, cos)          the caller: this expression, in Attention.forward
    rope.py:9         def rotate(x, cos):         the callee, below which aten::mul was dispatched

Frames between the two that are not the user's (torch's Module.__call__) are passed over. Counterexample: a function
below which nothing is dispatched has no call here. The cost: an entry for each (function, caller, instruction)."""


class Calls:
    """kind_of: Tracer.kind_of; positions: the tracer's, which it shares."""

    def __init__(self, kind_of, positions):
        self.kind_of, self.positions = kind_of, positions
        self.found = {}  # (id(code), id(caller's code), its instruction) -> (code, path, caller's path, Place)

    def note(self, frame):
        """How the user's functions came to this frame, a user's, from the inside outward. Two calls in a row that are
        known end it: what is further out was seen when they were. Cost: a few frames an operator."""
        code, caller, known = frame.f_code, frame.f_back, 0
        while caller is not None and known < 2:
            path = self.kind_of(caller.f_code)[0]
            if path:
                key = (id(code), id(caller.f_code), caller.f_lasti)
                if key in self.found:
                    known += 1
                else:
                    known = 0
                    self.found[key] = (code, self.kind_of(code)[0], path, self.positions.of(caller))
                code = caller.f_code
            caller = caller.f_back

    def describe(self):
        # Another thread may note one meanwhile.
        return [_call(*found) for found in list(self.found.values())]


def _call(code, path, caller_path, place):
    scope = getattr(code, "co_qualname", code.co_name)
    return {"path": path, "scope": scope, "line": code.co_firstlineno, "caller": {"path": caller_path, **place.describe()}}
