// A hash table with open addresses: rows lie one behind the other in cells_, and slots_ holds their
// numbers.
//
//   slots_    - 1 - - 0 - 2 -     a row's first slot is its hash modulo the size, a power of two
//   hashes_   of rows 0, 1, 2     kept, so grow() computes none again
//
// At most half of the slots are taken, so a search ends after a few of them. Nothing is ever
// removed but all.
//
// Counterexample: equal hashes are not equal rows. The cells are compared as well.
#include "invariants/cell_index.h"

#include <algorithm>
#include <cstring>

#include "invariants/row.h"
#include "llvm/Support/xxhash.h"

namespace opguard {

bool CellIndex::is(uint32_t number, std::span<const uint32_t> cells) const {
  return std::memcmp(cells_.data() + number * width_, cells.data(), cells.size_bytes()) == 0;
}

void CellIndex::clear() {
  cells_.clear();
  slots_.clear();
  hashes_.clear();
  last_ = 0;
}

void CellIndex::grow() {
  slots_.assign(std::max<size_t>(64, slots_.size() * 2), kNone);
  const size_t mask = slots_.size() - 1;
  for (uint32_t i = 0; i < hashes_.size(); ++i) {
    size_t at = hashes_[i] & mask;
    while (slots_[at] != kNone) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

uint32_t CellIndex::number(std::span<const uint32_t> cells) {
  // A view of which no rule asks anything: all of its rows are alike.
  if (width_ == 0) {
    if (hashes_.empty()) hashes_.push_back(0);
    return 0;
  }
  // Rows of a kind come one after the other.
  if (!hashes_.empty() && is(last_, cells)) return last_;
  // Also where the row turns out to be known. So a free slot is always there to end the search.
  if (hashes_.size() * 2 >= slots_.size()) grow();
  const uint64_t hash = llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(cells.data()), cells.size_bytes()));
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at] != kNone; at = (at + 1) & mask)
    if (hashes_[slots_[at]] == hash && is(slots_[at], cells)) return last_ = slots_[at];
  last_ = slots_[at] = size();
  hashes_.push_back(hash);
  cells_.insert(cells_.end(), cells.begin(), cells.end());
  return last_;
}

}  // namespace opguard
