// align/pair/sparse_window.h: the best pairing of a window, found among the cells that may be
// pairs.
//
// Tokens of other keys never pair, so with many boundaries most cells of a window score nothing:
//
//        q  k  v  q  k  v
//     q  x  .  .  x  .  .       8 cells of 24 are looked at
//     v  .  .  x  .  .  x
//     q  x  .  .  x  .  .
//     k  .  x  .  .  x  .
//
// A pairing near the diagonal is tried first. What it scores bounds how far from there one as good
// may lead. Often that is not out of the band, and the rest is never looked at. The pairs are those
// of the full dynamic programming.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "align/pair/sequence.h"
#include "align/pair/token_numbers.h"

namespace opguard {

// [a0, a1) of one side against [b0, b1) of the other.
struct Window {
  uint32_t a0, a1, b0, b1;
  uint64_t cells() const { return uint64_t(a1 - a0) * (b1 - b0); }
  bool empty() const { return a0 == a1 || b0 == b1; }
};

// What tokens of one side have, by their keys' numbers: sometimes yes for what none of them has.
class Present {
 public:
  // Room for so many facts: one in a thousand others is taken for one of them.
  void clear(size_t most) {
    const int bits = std::max(10, int(std::bit_width(32 * most)));
    shift_ = 64 - bits;
    bits_.assign((size_t{1} << bits) / 64, 0);
  }
  void add(uint32_t key, uint64_t what, uint64_t value) {
    const uint64_t h = hash(key, what, value);
    bits_[(h >> shift_) / 64] |= uint64_t{1} << (h >> shift_) % 64;
    bits_[(h << 32 >> shift_) / 64] |= uint64_t{1} << (h << 32 >> shift_) % 64;
  }
  bool has(uint32_t key, uint64_t what, uint64_t value) const {
    const uint64_t h = hash(key, what, value);
    return bits_[(h >> shift_) / 64] >> (h >> shift_) % 64 &
           bits_[(h << 32 >> shift_) / 64] >> (h << 32 >> shift_) % 64 & 1;
  }

 private:
  static uint64_t hash(uint32_t key, uint64_t what, uint64_t value) {
    uint64_t x = (value ^ (uint64_t{key} << 2 | what) * 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
  }

  std::vector<uint64_t> bits_;
  int shift_ = 54;
};

// Keeps its room from one window to the next.
class SparseWindow {
 public:
  SparseWindow(const std::vector<Token>& a, const std::vector<Token>& b, const Limits& limits)
      : a_(a), b_(b), limits_(limits) {}

  // The best monotone pairing of a window behind `matches`; of equally good ones the one that pairs
  // earliest. False, and nothing done: too many of its cells may be pairs, or it is too small to
  // be worth it.
  bool solve(const Window& w, Matches& matches);

 private:
  // [begin, end) of a window's side b, from its begin.
  struct Range {
    uint32_t begin, end;
  };

  // Which tokens of a window have the same key. It holds those of side b, key by key, and where in
  // that list the partners are that a token of side a may have.
  struct Alike {
    std::vector<uint32_t> by_key;        // increasing for each key
    std::vector<Range> of_a;             // parts of by_key
    std::vector<uint32_t> key_a, key_b;  // numbers; kUnknown: not in side b
    uint64_t cells = 0;
  };

  // total: of the best pairing of the suffixes that begins with this cell's pair.
  struct Cell {
    uint32_t i, j;
    int32_t score, total;
    uint32_t next;  // cell of the same total
  };
  struct Cells {
    std::vector<Cell> all;
    std::vector<uint32_t> of_total;  // first cell
    int32_t total = 0;               // of the best pairing
  };
  struct Bounds;

  int score(uint32_t i, uint32_t j) const { return pair_score(a_[i], b_[j]); }
  Alike tokens_alike(const Window& w);
  Bounds bounds(const Window& w, const Alike& alike);
  std::vector<int32_t> sum_bounds(const Token* mine, const std::vector<uint32_t>& keys, uint32_t n,
                                  const Token* others, const std::vector<uint32_t>& their_keys,
                                  uint32_t m);
  Cells score_cells(const Window& w, const Alike& alike, const std::vector<Range>& ranges) const;
  static void take(const Window& w, const Cells& cells, Matches& matches);

  const std::vector<Token>& a_;
  const std::vector<Token>& b_;
  const Limits limits_;
  TokenNumbers numbers_;
  Present present_;
};

}  // namespace opguard
