// runtime/fingerprint/uneven_cuts.h: where the pieces of a dimension begin that ranks do not cut
// into equal parts.
//
//   103 rows, ranks hold 26, 26, 26, 25     26 at 0, 26, 52; 25 at 78
//   5 rows, ranks hold 2, 2, 1, 0           2 at 0, 2; 1 at 4
//   103 rows, ranks hold 52, 51, 52, 51     two groups of ranks: 52 at 0, 51 at 52
//   [31, 13] as 300 and 103 elements        flat: the elements laid end to end, as FSDP1 cuts them
//   103 rows, each of 4 ranks holds 26      padded: 26 at 0, 26, 52, 78, the last with one row less
//
// What ranks hold of one tensor is listed in their order. The pieces of the ranks of a group follow
// each other, and add up to the dimension. A group is a dimension of a mesh, or two of them.
//
// Counterexample: sizes that no group adds up to the dimension tell nothing, as those of tokens
// that were sent to experts.
// The cost: for each dimension's size some sums for each list, once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace opguard {

// Pieces of one shape, of a tensor.
struct UnevenPieces {
  // That a rank holds. Of one dimension where the tensor has several: its elements end to end.
  std::vector<int64_t> local;
  // The first dimension of tensor and piece is that many times another one; 0: it is not.
  uint8_t outer = 0;
  // Of each dimension, the unfolded ones where there is an outer one.
  std::vector<std::vector<int64_t>> starts;
  bool operator==(const UnevenPieces&) const = default;
};

class UnevenCuts {
 public:
  // What the ranks, in their order, hold of one dimension.
  void add_parts(const std::vector<int64_t>& sizes);
  // A dimension of `whole` is cut in steps of `local`, and padded.
  void add_padded(int64_t whole, int64_t local);
  bool empty() const { return parts_.empty() && padded_.empty(); }

  // Those of a tensor of shape `whole`, by at most `world` ranks; and of each unfolding of its
  // first dimension by one of `outer`. None where `local` cuts it evenly, or not at all.
  std::vector<UnevenPieces> pieces(const std::vector<int64_t>& whole,
                                   const std::vector<int64_t>& local, int64_t world,
                                   const std::vector<int64_t>& outer);

  // Those of a tensor whose elements are laid end to end: `count` of them, `local` in a rank.
  std::vector<UnevenPieces> flat_pieces(int64_t count, int64_t local);

 private:
  using Starts = std::map<int64_t, std::set<int64_t>>;  // by the size of a piece

  const Starts& starts_of(int64_t whole);
  bool add_pieces(const std::vector<int64_t>& whole, const std::vector<int64_t>& local,
                  int64_t world, UnevenPieces& found);

  std::set<std::vector<int64_t>> parts_;
  std::set<std::pair<int64_t, int64_t>> padded_;
  std::map<int64_t, Starts> known_;
};

}  // namespace opguard
