// runtime/host/hook_numbers.h: a hook of ours takes no number that the program's would have had.
//
// torch numbers all hooks of a process in one row, RemovableHandle.next_id. A program may print its
// hooks' numbers, and sees there how many of ours came between. Ours have a row of their own:
//
//   program: 0    ours: 2^40    program: 1    ours: 2^40 + 1
//
// Python registers by the same rule: python/opguard/record/hook_numbers.py.
//
// Every node of a backward pass gets one. For each, torch's registration has Python make a handle,
// which nobody of ours wants. So ours stands in that function's place
// (torch.autograd.function._HookMixin._register_hook). It hangs a hook of ours, and hands all
// others on. Counterexample: a torch that has no such function is asked as ever.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// Where a hook hangs: hooks[id]. Both none, and no error, if it was refused.
struct OwnHook {
  Ref hooks;  // the node's dictionary of hooks, which lives as long as the node
  Ref id;
};

// node.method(hook); method: "register_hook", "register_prehook".
OwnHook register_own_hook(PyObject* node, const char* method, PyObject* hook);

}  // namespace opguard
