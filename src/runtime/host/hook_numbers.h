// runtime/host/hook_numbers.h: a hook of ours takes no number that the program's would have had.
//
// torch numbers all hooks of a process in one row, RemovableHandle.next_id. A program may print its
// hooks' numbers, and sees there how many of ours came between. Ours have a row of their own:
//
//   program: 0    ours: 2^40    program: 1    ours: 2^40 + 1
//
// Python registers by the same rule: python/opguard/record/hook_numbers.py.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// node.method(hook); method: "register_hook", "register_prehook". None, and no error, if refused.
Ref register_own_hook(PyObject* node, const char* method, PyObject* hook);

}  // namespace opguard
