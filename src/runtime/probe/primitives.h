// runtime/probe/primitives.h: the operators that mode `trusted` takes for right:
// docs/design/runtime.md.
#pragma once

#include <string_view>

namespace opguard {

// name: a callee's; module: where it says it is from, "" for tensors' methods.
bool is_primitive(std::string_view name, std::string_view module);

// Names to be skipped beside the list: "softmax", or "torch.nn.functional.softmax" for that one
// alone; "-view" takes one off the list. Separated by commas.
void set_primitives(std::string_view names);

}  // namespace opguard
