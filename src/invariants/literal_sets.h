// invariants/literal_sets.h: sets of patterns as bits, and the conditions that pick them.
//
//   patterns        0: held=yes has_grad=yes   1: held=no has_grad=no   2: held=yes has_grad=no
//   held=yes        bits 101     has_grad=yes   bits 001
//   held=yes and not has_grad=yes               bits 100: pattern 2, a counterexample
//
// Bit i stands for pattern i of one VotedPatterns. Counterexample: sets of two views, or of
// different sizes, must not be combined. Nothing checks it, and the words of the shorter one end
// too early.
//
// The cost: a word for 64 patterns; every operation goes over the words once.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace opguard {

class PatternSet {
 public:
  explicit PatternSet(size_t size = 0, bool all = false)
      : words_((size + 63) / 64, all ? ~0ull : 0) {
    // No bit stands behind the last pattern, so that empty() and without() are right.
    if (all && size % 64) words_.back() = (1ull << size % 64) - 1;
  }
  void insert(size_t i) { words_[i / 64] |= 1ull << i % 64; }
  bool contains(size_t i) const { return words_[i / 64] >> i % 64 & 1; }
  bool empty() const {
    for (uint64_t word : words_)
      if (word) return false;
    return true;
  }
  PatternSet operator&(const PatternSet& other) const {
    PatternSet both = *this;
    for (size_t i = 0; i < words_.size(); ++i) both.words_[i] &= other.words_[i];
    return both;
  }
  PatternSet without(const PatternSet& other) const {
    PatternSet left = *this;
    for (size_t i = 0; i < words_.size(); ++i) left.words_[i] &= ~other.words_[i];
    return left;
  }
  void operator|=(const PatternSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool meets(const PatternSet& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i] & other.words_[i]) return true;
    return false;
  }
  template <typename Each>
  // The positions of its members, ascending. `word &= word - 1` takes the lowest one out.
  void each(Each do_with) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t word = words_[w]; word; word &= word - 1)
        do_with(w * 64 + static_cast<size_t>(std::countr_zero(word)));
  }
  // Of those that are in all of the sets, until one is told true; whether one was.
  template <typename Each>
  static bool each_common(std::initializer_list<const PatternSet*> sets, Each do_with) {
    for (size_t w = 0; w < (*sets.begin())->words_.size(); ++w) {
      uint64_t word = ~0ull;
      for (const PatternSet* set : sets) word &= set->words_[w];
      for (; word; word &= word - 1)
        if (do_with(w * 64 + static_cast<size_t>(std::countr_zero(word)))) return true;
    }
    return false;
  }
  size_t capacity() const { return words_.size() * 64; }

 private:
  std::vector<uint64_t> words_;
};

// column=value, and the patterns that have it.
struct Literal {
  uint32_t column = 0, value = 0;
  PatternSet patterns;
};

}  // namespace opguard
