// matcher/operator_names.h: what an operator is called, whatever its module was imported as.
//
//   F.softmax(x, -1)      operator_name "softmax"    full_callee "torch.nn.functional.softmax"
//   x.softmax(-1)         operator_name "softmax"    full_callee ".softmax"
//   x @ w                 operator_name "matmul"     full_callee "@"
//
// Aliases are those that PyTorch code has by convention. Counterexample: `import
// torch.nn.functional as G`. No import is read here, so `G.softmax` keeps its name, and is told by
// its last part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/site.h"

namespace opguard {

// "softmax" of "torch.softmax", "F.softmax" and ".softmax"; "mul" of `*`, "getitem" of `x[i]`,
// "iter" of a loop; "call" where the callee has no name.
std::string operator_name(const Site& site);

// The callee with the usual module aliases spelt out: "F.relu" -> "torch.nn.functional.relu".
// Operators keep their token.
std::string full_callee(const Site& site);
std::string full_name(std::string_view dotted);
// Arguments as they are passed: those by keyword in the order of their names.
std::vector<std::string> in_order(std::vector<std::string> arguments);
// How a site reads: form, callee, receiver and arguments, without the sites inside.
std::string reading(const Site& site);
// "models/" of "models/block.py", "" of "train.py".
std::string_view folder_of(std::string_view file);
// "forward" of "Block.forward".
std::string_view last_name(std::string_view scope);
// Of a full name: a function of a module, not a method of a value.
bool is_library_name(std::string_view dotted);

}  // namespace opguard
