// align/tolerance/declared_cut.h: which part of a dimension a rank has, as DTensor cuts it.
//
//   103 over 4 ranks       26, 26, 26, 25: parts of the size rounded up, and the last what is left
//   5 over 4 ranks         2, 2, 1, 0
//   _StridedShard(0, 2) over 2 ranks    cut into 4; a rank has the 1st and 3rd, or the 2nd and 4th
//
// A later dimension of the mesh cuts what the ones before have left.
// Counterexample: a part of two intervals that do not touch is none of a tensor's pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace opguard {

struct DeclaredInterval {
  int64_t first = 0, size = 0;
  bool operator==(const DeclaredInterval&) const = default;
};

class DeclaredCut {
 public:
  explicit DeclaredCut(int64_t whole) : left_{{0, whole}} {}

  // The part of one of `ranks` ranks.
  void take(size_t rank, size_t ranks, size_t split);
  // What is left, if that is one.
  std::optional<DeclaredInterval> interval() const;

 private:
  std::vector<DeclaredInterval> left_;
};

}  // namespace opguard
