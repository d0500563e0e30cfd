#include "align/tolerance/declared_cut.h"

#include <algorithm>

namespace opguard {

void DeclaredCut::take(size_t rank, size_t ranks, size_t split) {
  int64_t size = 0;
  for (const DeclaredInterval& part : left_) size += part.size;
  const auto parts = static_cast<int64_t>(ranks * split);
  const int64_t each = parts == 0 ? 0 : (size + parts - 1) / parts;
  std::vector<DeclaredInterval> taken;
  for (size_t s = 0; s < split; ++s) {
    const int64_t from = static_cast<int64_t>(s * ranks + rank) * each, to = from + each;
    int64_t before = 0;
    for (const DeclaredInterval& part : left_) {
      const int64_t first = std::max(from - before, int64_t{0}),
                    last = std::min(to - before, part.size);
      if (first < last) taken.push_back({part.first + first, last - first});
      before += part.size;
    }
  }
  left_ = std::move(taken);
}

std::optional<DeclaredInterval> DeclaredCut::interval() const {
  if (left_.empty()) return DeclaredInterval{};
  DeclaredInterval all = left_.front();
  for (size_t i = 1; i < left_.size(); ++i) {
    if (left_[i].first != all.first + all.size) return std::nullopt;
    all.size += left_[i].size;
  }
  return all;
}

}  // namespace opguard
