// report/page_tables.h: what page_data.cc packs its rows into: columns of numbers, and tables of
// what repeats, named by index.
//
//   rows     3 events of model.py:11 on float32[4, 8], float32[4, 8], float32[2, 8]
//   tables   metas ["float32[4, 8]", "float32[2, 8]"], column "0,0,1"
//
// Counterexample: fingerprints in a Table. They are many, and each would be held twice and compared
// along a tree.
//
// The cost: a Table looks up in O(log n) and holds every key twice. Values looks up in O(1), and
// holds 32 digits of text for each fingerprint.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/record.h"

namespace opguard {

// Columns are plain lists of numbers; as a DOM they would take ten times their text.
class NumberColumn {
 public:
  void add(int64_t value) {
    if (!text_.empty()) text_ += ',';
    text_ += std::to_string(value);
  }
  std::string json() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

// Distinct values, by index in order of first appearance. `Hash` is the order of the map.
template <typename Key, typename Hash = std::less<Key>>
class Table {
 public:
  size_t index(const Key& key) {
    auto [at, fresh] = at_.try_emplace(key, keys_.size());
    if (fresh) keys_.push_back(key);
    return at->second;
  }
  const std::vector<Key>& keys() const { return keys_; }

 private:
  std::map<Key, size_t, Hash> at_;
  std::vector<Key> keys_;
};

// Both halves are as good as random already; the product keeps {x, x} and {y, y} apart.
struct FingerprintHash {
  size_t operator()(const Fingerprint& value) const {
    return value.h ^ (value.m * 0x9e3779b97f4a7c15);
  }
};

// Fingerprints are many and as good as random: a hash table, and one string of hex digits.
class Values {
 public:
  // From 1, in the order of first appearance; 0: no value. page/data.js cuts the digits of value i
  // out at (i - 1) * 32.
  size_t index(const Slot& slot) {
    if (slot.flags & kUnreadable) return 0;
    auto [at, fresh] = at_.try_emplace(slot.value, at_.size() + 1);
    if (fresh) {
      char buffer[33];
      std::snprintf(buffer, sizeof buffer, "%016" PRIx64 "%016" PRIx64, slot.value.h, slot.value.m);
      hex_ += buffer;
    }
    return at->second;
  }
  const std::string& hex() const { return hex_; }

 private:
  std::unordered_map<Fingerprint, size_t, FingerprintHash> at_;
  std::string hex_;
};

using Numbers = std::vector<int64_t>;

}  // namespace opguard
