// What is left is a list of intervals, and each cut takes parts of it as if they lay end to end.
//
//   left {0-103}, rank 3 of 4            parts of 26: from 78 on there are 25
//   left {0-8}, rank 1 of 2, split 2     4 parts of 2: the 2nd and the 4th, {2-4} and {6-8}
//   then rank 0 of 2 of a later mesh     4 elements are left, cut into 2: {2-4}
//
// The cost: for each cut the product of split and of the intervals that are left.
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

// Nothing left is an interval of size 0: DTensor leaves such a rank an empty tensor.
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
