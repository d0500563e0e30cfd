// runtime/recorder/latest_rows.h: the row hashes of the latest readings, for views of what was
// read.
//
//   y = x.view(4, 128, 4096)    x was reading 17: y's digest is folded from its rows
//   eight readings later        17 is gone, and y is read
//
// The cost: 64 KiB a reading at most.
#pragma once

#include <cstdint>

#include "runtime/fingerprint/row_hashes.h"

namespace opguard {

// With the GIL held.
class LatestRows {
 public:
  // Memory of a reading that is given up, for the next one: it is filled while other threads run.
  RowHashes room();
  // The reading's number, from 1.
  uint64_t add(RowHashes rows);
  // nullptr: none of that number, or no more. Good until the next call.
  const RowHashes* find(uint64_t reading) const;

 private:
  static constexpr size_t kCount = 8;
  RowHashes rows_[kCount];
  uint64_t count_ = 0;  // of which the latest kCount are there
};

}  // namespace opguard
