#include "invariants/row.h"

namespace opguard {

CellTexts::CellTexts() {
  number("yes");
  number("no");
}

uint32_t CellTexts::number(std::string_view text) {
  if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
  const auto made = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), made);
  return made;
}

uint32_t CellTexts::find(std::string_view text) const {
  auto it = numbers_.find(text);
  return it == numbers_.end() ? kNone : it->second;
}

}  // namespace opguard
