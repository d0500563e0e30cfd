// invariants/cell_index.h: rows of cells -> numbers, the same number for the same cells.
//
//   CellIndex index(27);
//   uint32_t pattern = index.number(row.cells);   0, 1, 2 ... in the order in which they came
//
// The cost: one hash a row, none where a row equals the one before; memory by distinct rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opguard {

class CellIndex {
 public:
  explicit CellIndex(size_t width = 0) : width_(width) {}

  uint32_t number(std::span<const uint32_t> cells);
  std::span<const uint32_t> cells(uint32_t number) const {
    return {cells_.data() + number * width_, width_};
  }
  uint32_t size() const { return static_cast<uint32_t>(hashes_.size()); }
  void clear();

 private:
  bool is(uint32_t number, std::span<const uint32_t> cells) const;
  void grow();

  size_t width_;
  std::vector<uint32_t> cells_, slots_;  // slots: a power of two of them, kNone: free
  std::vector<uint64_t> hashes_;
  uint32_t last_ = 0;
};

}  // namespace opguard
