#include "support/nearest.h"

#include "llvm/ADT/StringRef.h"

namespace opguard {

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kBeginning = 3;  // letters; of fewer, a beginning says nothing
  std::string best;
  size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : known) {
    if (word.size() >= kBeginning && candidate.starts_with(word)) return candidate;
    const size_t distance = llvm::StringRef(word.data(), word.size()).edit_distance(candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string best = nearest(word, known);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace opguard
