#include "support/qualified_name.h"

#include <algorithm>

namespace opguard {

std::string scope_of(std::string_view qualified) {
  std::string scope;
  while (!qualified.empty()) {
    const size_t dot = std::min(qualified.find('.'), qualified.size());
    const std::string_view part = qualified.substr(0, dot);
    qualified.remove_prefix(std::min(dot + 1, qualified.size()));
    if (part.starts_with('<') && part != "<lambda>" && part != "<module>") continue;
    if (!scope.empty()) scope += '.';
    scope += part;
  }
  return scope;
}

}  // namespace opguard
