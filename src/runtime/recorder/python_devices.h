// runtime/recorder/python_devices.h: what works on a device, asked from Python by `opguard doctor`.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// device(type) -> why tensors of the type ("cuda") have no values, "" where they have. It opens the
// device and makes the first one of the type ready; nothing may be recorded yet.
PyObject* device_state(PyObject* module, PyObject* type);

// read_on_device(tensor) -> (h, m) as its device computes it; waits 10 s at most. RuntimeError says
// why not. Nothing may be recorded yet: it takes what the device has finished.
PyObject* read_on_device(PyObject* module, PyObject* tensor);

}  // namespace opguard
