// align/flat_groups.h: the names of flat buffers that hold the tensors of one event one after the
// other: og1 of a whole follows from its parts' (docs/record-format.md).
#pragma once

#include <vector>

#include "align/value_flow.h"

namespace opguard {

// For each list of two tensors or more that an event reads or leaves (an optimizer's gradients, a
// bucket's, `arg0[0]`, `arg0[1]`, ...): all of them in order, and in the opposite order, in which
// backward makes gradients. Lists whose lanes differ in width from the whole's have none.
std::vector<ValueKey> flat_groups(const ProcessLog& log, const Event& event);

}  // namespace opguard
