#include "preflight/called_as.h"

#include <string_view>

#include "matcher/operator_names.h"

namespace opguard {
namespace {

// Names ATen gives what Python writes as an operator; for interpreters that say no more than a
// line.
struct AtenName {
  std::string_view aten, name;  // name: operator_name of a site
};
constexpr AtenName kAtenNames[] = {
    {"add", "add"},
    {"sub", "sub"},
    {"rsub", "sub"},
    {"mul", "mul"},
    {"div", "div"},
    {"reciprocal", "div"},
    {"floor_divide", "floordiv"},
    {"remainder", "mod"},
    {"pow", "pow"},
    {"matmul", "matmul"},
    {"mm", "matmul"},
    {"bmm", "matmul"},
    {"neg", "neg"},
    {"bitwise_not", "invert"},
    {"lt", "lt"},
    {"le", "le"},
    {"gt", "gt"},
    {"ge", "ge"},
    {"eq", "eq"},
    {"ne", "ne"},
    {"bitwise_and", "and"},
    {"bitwise_or", "or"},
    {"bitwise_xor", "xor"},
    {"select", "getitem"},
    {"slice", "getitem"},
    {"index", "getitem"},
    {"index_put", "setitem"},
    {"copy", "setitem"},
    {"fill", "setitem"},
    {"unbind", "iter"},
};

// "aten::mul_.Tensor" -> "mul"; a Python function's name stays.
std::string base_name(std::string_view callee) {
  constexpr std::string_view kAten = "aten::";
  if (callee.substr(0, kAten.size()) == kAten) {
    callee.remove_prefix(kAten.size());
    callee = callee.substr(0, callee.find('.'));
  }
  while (!callee.empty() && callee.back() == '_') callee.remove_suffix(1);
  return std::string(callee);
}

}  // namespace

bool is_called(const Site& site, const std::string& callee) {
  std::string name = operator_name(site);
  if (name == callee) return true;
  std::string base = base_name(callee);
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (base.empty()) return false;
  if (name == base) return true;
  for (const AtenName& known : kAtenNames)
    if (known.aten == base && known.name == name) return true;
  return false;
}

}  // namespace opguard
