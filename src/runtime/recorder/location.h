// runtime/recorder/location.h: where in the program a boundary is.
#pragma once

#include <string>

#include "runtime/host/py.h"

namespace opguard {

// Tells where the boundary is, once; `frame` is the Python frame running now.
void locate_boundary(const std::string& boundary, PyObject* frame);

// The frame running now, past frames of torch and of our own package; none if there is no Python
// frame (a thread of the engine).
Ref user_frame();

}  // namespace opguard
