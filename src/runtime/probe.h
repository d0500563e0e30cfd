// runtime/probe.h: `og`, and the objects that stand for an operand during one operator.
#pragma once

#include "runtime/py.h"

namespace opguard {

// The object `og` that instrumented sources import; new reference, nullptr with an error set.
PyObject* make_og();

}  // namespace opguard
