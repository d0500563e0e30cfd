// A ring of kCount readings by number. A reading's vector is used again for the one kCount later,
// so nothing is allocated for most readings.
#include "runtime/recorder/latest_rows.h"

#include <utility>

namespace opguard {

RowHashes LatestRows::room() {
  RowHashes rows = std::move(rows_[(count_ + 1) % kCount]);
  rows.hashes.clear();
  return rows;
}

uint64_t LatestRows::add(RowHashes rows) {
  rows_[++count_ % kCount] = std::move(rows);
  return count_;
}

const RowHashes* LatestRows::find(uint64_t reading) const {
  if (reading == 0 || reading > count_ || reading + kCount <= count_) return nullptr;
  const RowHashes& rows = rows_[reading % kCount];
  return rows.hashes.empty() ? nullptr : &rows;
}

}  // namespace opguard
