// runtime/fingerprint/row_hashes.h: what a view's digest is, by the hashes of rows that were read.
//
//   x [512, 4096]               read: 512 hashes of rows are kept
//   x.view(4, 128, 4096)        the same rows in the same order: folded anew, nothing is read
//   x.view(4, 128, 4096).transpose(0, 1)        the same rows in another order
//
// Counterexample: x.t(), x.view(512, 2, 2048). Their rows are others, and they are read.
//
// The cost: some nanoseconds a row, and the eight bytes that are kept of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/fingerprint/fingerprint.h"

namespace opguard {

// Of a tensor whose rows lie evenly, each without gaps. Empty hashes: of none.
struct RowHashes {
  const char* data = nullptr;  // where the first row begins
  uint32_t size = 0;           // bytes of an element
  int64_t count = 0;           // elements of a row
  int64_t pitch = 0;           // bytes from a row to the next
  std::vector<uint64_t> hashes;
  Digest digest;  // of all of it

  void of(const Elements& elements, const Digest& of_all);  // all but the hashes
};

// How many digest() is to give; 0 where rows are too many or too short to be worth their place.
size_t row_hashes(const Elements& elements);

// What digest() would say of `elements`, whose memory nobody wrote since. None: its rows are not
// those, each once, or the digest depends on more than rows.
std::optional<Digest> digest_of_rows(const Elements& elements, const RowHashes& read);

}  // namespace opguard
