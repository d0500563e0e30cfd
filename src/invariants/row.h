// invariants/row.h: one row of a view (view.h).
//
//   Row r: view 0, step 3, process 1, cells {yes, yes, no, float32, ...}, name "fc1.weight",
//          place "train.py:38:main"
//
// The cost: 4 bytes a cell, and nothing is copied: a row is looked at as it is made.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/event.h"

namespace opguard {

// Texts by number; the same for all runs that are looked at together. 0 is "yes", 1 is "no".
class CellTexts {
 public:
  CellTexts();
  // It gets one where it has none.
  uint32_t number(std::string_view text);
  uint32_t find(std::string_view text) const;  // kNone: no cell has it
  const std::string& text(uint32_t number) const { return texts_[number]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view t) const { return std::hash<std::string_view>{}(t); }
  };
  std::vector<std::string> texts_;
  // A text is held twice, here and in texts_. A look-up by string_view makes no string.
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
};

inline constexpr uint32_t kCellYes = 0, kCellNo = 1;
inline constexpr uint32_t kUnknown = kNone;  // a cell nobody can fill

struct ViewRow {
  // The texts and the cells are of whoever makes the row, and are gone when add() returns.
  uint16_t view = 0;
  uint32_t step = 0;                  // optimizer steps that had ended before
  int32_t rank = -1;                  // -1: of all ranks
  uint64_t order = 0;                 // of two rows of a step, the smaller one was earlier
  std::span<const uint32_t> cells{};  // one a column, CellTexts' numbers or kUnknown
  std::string_view name{};            // "fc1.weight", "AdamW", "" where there is none
  std::string_view module{};          // "layers.0.attn (Attention)", ""
  std::string_view place{};           // "/home/me/train.py:38:main", "" where it is not known
  std::string_view detail{};          // the values in words: "5f1c... on rank 0, 90aa... on rank 1"
  uint64_t event = kNone;  // the log's events from which on it counts, to look for an operator
  double number = std::numeric_limits<double>::quiet_NaN();  // of views with ranges
};

// Who takes rows. A row is whole only during the call.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void add(const ViewRow& row) = 0;
};

}  // namespace opguard
