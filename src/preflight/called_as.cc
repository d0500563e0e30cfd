#include "preflight/called_as.h"

#include <string>
#include <string_view>

#include "matcher/operator_names.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// "aten::mul_.Tensor" -> "mul"; a Python function's name stays.
std::string base_name(std::string_view callee) {
  callee = aten_name(callee);
  while (!callee.empty() && callee.back() == '_') callee.remove_suffix(1);
  return std::string(callee);
}

}  // namespace

bool is_called(const Site& site, const std::string& callee) {
  std::string name = operator_name(site);
  if (name == callee) return true;
  // In place or not is the same operator here: `x.mul_(y)` and `x * y` both run a "mul".
  std::string base = base_name(callee);
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (base.empty()) return false;
  if (name == base) return true;
  return callee.starts_with("aten::") && python_operator(aten_name(callee)) == name;
}

}  // namespace opguard
