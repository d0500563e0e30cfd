#include "align/values/overwrites.h"

namespace opguard {

bool overwrites(std::string_view callee, std::string_view slot) {
  const std::string_view name = callee.substr(callee.rfind('.') + 1);
  return (name == "copy_" && slot == "self") ||
         (name == "_foreach_copy_" && slot.starts_with("arg0["));
}

}  // namespace opguard
