"""Graphs of a device (torch.cuda.CUDAGraph; torch.cuda.graph, make_graphed_callables and Inductor's graph trees use
it). What the program does during a capture is noted, and recorded at each replay
(src/runtime/recorder/captured_graph.h).

    with torch.cuda.graph(g): y = model(x)      nothing runs yet: the events are a list that belongs to g
    g.replay()                                  each event of the list, with the values of this replay

A replay runs no Python, so nothing else would be seen of it. Counterexample: a graph that was captured before the log
began has no list, and its replays have no events."""

import functools
import weakref

from opguard import _rt

_captures = weakref.WeakKeyDictionary()  # graph -> opguard._rt.Capture


def install(torch):
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    if graph is not None:
        wrap(graph)


def wrap(graph):
    """graph: a class with capture_begin, capture_end, replay and reset."""
    if hasattr(graph.replay, "_opguard"):
        return
    begin, end, replay, reset = graph.capture_begin, graph.capture_end, graph.replay, graph.reset

    @functools.wraps(begin)
    def capture_begin(self, *args, **kwargs):
        _captures.pop(self, None)
        # Before: a log that begins here reads the generators' states, which a capture does not allow.
        capture = _rt.capture() if _rt.recording() else None
        try:
            begin(self, *args, **kwargs)
        except BaseException:
            if capture is not None:
                capture.end()
            raise
        if capture is not None:
            _captures[self] = capture

    @functools.wraps(end)
    def capture_end(self, *args, **kwargs):
        try:
            return end(self, *args, **kwargs)
        finally:
            capture = _captures.get(self)
            if capture is not None:
                capture.end()

    @functools.wraps(replay)
    def replayed(self, *args, **kwargs):
        capture = _captures.get(self)
        if capture is None:
            return replay(self, *args, **kwargs)
        failed = True
        capture.replays()
        try:
            result = replay(self, *args, **kwargs)
            failed = False
            return result
        finally:
            capture.replayed(failed)

    @functools.wraps(reset)
    def forgotten(self, *args, **kwargs):
        _captures.pop(self, None)
        return reset(self, *args, **kwargs)

    replayed._opguard = replay
    graph.capture_begin, graph.capture_end, graph.replay, graph.reset = capture_begin, capture_end, replayed, forgotten
