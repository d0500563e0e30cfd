// record/entry_search.h: the first of many entries of which something holds that holds of none
// before it.
//
//   100,000 entries          17 of them are asked, each in the middle of what is left
//   near entry 73,100        73,100 and 73,099; where it is not there, 73,097, 73,093, ...
//
// A step is found by its number where logs have each step once, and an event by its share of all.
// Counterexample: it holds of an entry and not of a later one. Then some entry is found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "record/bring.h"

namespace opguard {

class EntrySearch {
 public:
  // near: where it may be; kToEnd: nobody knows.
  explicit EntrySearch(uint64_t entries, uint64_t near = kToEnd)
      : high_(entries), entries_(entries), near_(near) {}

  // Whether something is to be asked yet: of entry asks().
  bool is_open() const { return low_ < high_; }
  uint64_t asks() const { return is_near() ? near_ : low_ + (high_ - low_) / 2; }
  void tell(bool holds) {
    const uint64_t asked = asks();
    if (is_near()) {
      near_ = !holds ? asked + away_ : asked > 0 ? asked - std::min(asked, away_) : kToEnd;
      away_ *= 2;
    }
    (holds ? high_ : low_) = holds ? asked : asked + 1;
  }
  // `entries`: there is none.
  uint64_t found() const { return low_; }

 private:
  // No two entries are known that it lies between.
  bool is_near() const { return near_ < entries_ && (low_ == 0 || high_ == entries_); }

  uint64_t low_ = 0, high_, entries_, near_, away_ = 1;
};

// Nothing: of an entry it cannot be told. holds: of an entry's number, std::optional<bool>.
template <typename Holds>
std::optional<uint64_t> first_entry(uint64_t entries, Holds holds, uint64_t near = kToEnd) {
  EntrySearch search(entries, near);
  while (search.is_open()) {
    const std::optional<bool> there = holds(search.asks());
    if (!there) return {};
    search.tell(*there);
  }
  return search.found();
}

}  // namespace opguard
