// align/pair/token_numbers.h: small numbers for the keys of tokens.
//
// A window has tens of thousands of tokens and a few hundred boundaries: what is kept for each key
// lies in a vector, by number.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace opguard {

// Keys, numbered from 0 in the order in which they were added.
class TokenNumbers {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  // Room for so many.
  void clear(size_t most) {
    const int bits = std::max(4, int(std::bit_width(2 * most)));
    shift_ = 64 - bits;
    entries_.assign(size_t{1} << bits, Entry{});
    count_ = 0;
  }
  uint32_t add(uint64_t key) {
    Entry& entry = entries_[place(key)];
    if (entry.number == kUnknown) entry = {key, count_++};
    return entry.number;
  }
  uint32_t find(uint64_t key) const { return entries_[place(key)].number; }

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t number = kUnknown;
  };
  // Where the key is, or is to be.
  size_t place(uint64_t key) const {
    size_t at = key * 0x9e3779b97f4a7c15ull >> shift_;
    while (entries_[at].number != kUnknown && entries_[at].key != key)
      at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  std::vector<Entry> entries_;
  int shift_ = 60;
  uint32_t count_ = 0;
};

}  // namespace opguard
