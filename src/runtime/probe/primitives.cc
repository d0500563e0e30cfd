// Three lists, by the callee's name: the movers of operators.txt, what was added, what was taken
// off.
//
//   "relu"                         added: every relu
//   "torch.nn.functional.gelu"     added: of that module alone
//   "-cat"                         taken off the movers
//
// The last word counts: "cat,-cat" takes it off, "-cat,cat" leaves it in.
#include "runtime/probe/primitives.h"

#include <string>
#include <unordered_set>

#include "operators/operators.h"

namespace opguard {
namespace {

// Beside the movers of operators.txt: what the program's owner adds, and takes off.
std::unordered_set<std::string>& added() {
  static auto* all = new std::unordered_set<std::string>;
  return *all;
}
std::unordered_set<std::string>& taken_off() {
  static auto* all = new std::unordered_set<std::string>;
  return *all;
}

}  // namespace

bool is_primitive(std::string_view name, std::string_view module) {
  const std::string own(name);
  if (added().contains(own)) return true;
  if (moves_bytes(name) && !taken_off().contains(own)) return true;
  return !module.empty() && added().contains(std::string(module) + "." + own);
}

void set_primitives(std::string_view names) {
  while (!names.empty()) {
    const size_t end = names.find(',');
    const std::string name(names.substr(0, end));
    if (name.starts_with('-')) {
      added().erase(name.substr(1));
      taken_off().insert(name.substr(1));
    } else if (!name.empty()) {
      taken_off().erase(name);
      added().insert(name);
    }
    if (end == std::string_view::npos) return;
    names.remove_prefix(end + 1);
  }
}

}  // namespace opguard
