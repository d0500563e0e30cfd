// runtime/recorder/kept.h: what the program keeps beside its parameters: module buffers, and what
// it saves.
//
// At the end of each step the buffers that changed are one event `<buffers>` of kind state. A
// buffer whose storage and version are those of the last look is not read again, so that a step
// pays for what it changed. Batch norm's running statistics count no versions. They are small and
// always read, as is whatever has fewer bytes than a look at its storage costs.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// function: called without arguments for a list of (name, tensor, may it change uncounted); held
// for ever.
void set_buffers(PyObject* function);

// Under OwnWork.
void record_buffers();
// The next event of them has all, whatever an earlier one had.
void forget_buffers();

// An event `<saved>` with the tensors of `value`, which is about to be written to a file.
void record_saved(PyObject* value);

}  // namespace opguard
