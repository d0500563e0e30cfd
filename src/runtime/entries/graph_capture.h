// runtime/entries/graph_capture.h: the capture of a device graph and its replays, as Python tells
// them (python/opguard/compiled/device_graphs.py).
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// capture() -> Capture, or None where nothing is recorded: events belong to it from now on.
// Capture.end(); Capture.replays() before each replay, Capture.replayed(failed) after it.
PyObject* begin_capture(PyObject* module, PyObject* none);

// Makes the Python type; false with an error set.
bool init_graph_capture();

}  // namespace opguard
