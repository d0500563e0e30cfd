// Pairing two sequences of events: anchors first, then dynamic programming between them.
//
//   a   embed norm  qkv  softmax proj             embed, norm: equal, taken from the front
//   b   embed norm  qkv  scale  softmax proj      proj: equal, taken from the back
//                                                 qkv, softmax: pairs by key; scale: b's alone
//
// 1. Equal ends are taken off: a pair of the highest score is part of some best pairing.
// 2. A small window (Limits::exact_cells) is solved exactly.
// 3. In a large one the anchors are held fast: contents that occur once on each side. Their longest
//    chain that increases on both sides is kept. The gaps between them begin at 1 again.
// 4. Behind a pivot no content is equal any more. Then each step, then each micro-batch, is
//    a gap.
//
// Counterexample: a constant that every layer makes is no anchor, since it occurs more than once.
// An operator that moved is not paired here, as that would cross other pairs: flow_pairs.h does it.
//
// The cost: anchors take n log n. A window of n by m cells takes n * m steps and bytes, 64 MB at
// most. Of a larger one a band around its diagonal is looked at. Then rescue() fills what the band
// hid.
#include "align/pair/sequence.h"

#include <algorithm>
#include <utility>

#include "align/pair/sparse_window.h"
#include "align/pair/token_numbers.h"

namespace opguard {

namespace {

uint64_t anchor_key(const Token& t) {
  // The step is part of an anchor: constants recur in every step, and one of them may be missing.
  return (t.key * 0x9e3779b97f4a7c15ull) ^ t.content ^ (uint64_t(t.step) * 0xc2b2ae3d27d4eb4full);
}

// The longest subsequence that increases on both sides; `pairs` increases in its first part.
Matches longest_increasing(const Matches& pairs) {
  std::vector<uint32_t> tails;  // index of the smallest last element of a chain, by chain length
  std::vector<int64_t> before(pairs.size(), -1);
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    auto at = std::lower_bound(
        tails.begin(), tails.end(), pairs[i].second,
        [&](uint32_t index, uint32_t value) { return pairs[index].second < value; });
    if (at != tails.begin()) before[i] = *(at - 1);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  Matches chain;
  for (int64_t i = tails.empty() ? -1 : int64_t(tails.back()); i >= 0; i = before[i])
    chain.push_back(pairs[i]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

class Aligner {
 public:
  Aligner(const std::vector<Token>& a, const std::vector<Token>& b, const Limits& limits)
      : a_(a), b_(b), limits_(limits), sparse_(a, b, limits) {}

  Matches run() {
    align({0, uint32_t(a_.size()), 0, uint32_t(b_.size())});
    if (banded_) rescue();
    return std::move(matches_);
  }

 private:
  int score(uint32_t i, uint32_t j) const { return pair_score(a_[i], b_[j]); }

  // Appends the window's matches in order.
  void align(Window w) {
    // A pair of the highest score at an end is part of some best alignment. Any other use of either
    // token could be exchanged for it.
    while (!w.empty() && score(w.a0, w.b0) == kMaxScore) matches_.emplace_back(w.a0++, w.b0++);
    Matches tail;
    while (!w.empty() && score(w.a1 - 1, w.b1 - 1) == kMaxScore) tail.emplace_back(--w.a1, --w.b1);
    if (!w.empty()) align_middle(w);
    matches_.insert(matches_.end(), tail.rbegin(), tail.rend());
  }

  void align_middle(const Window& w) {
    if (w.cells() <= limits_.exact_cells) return solve(w);
    if (Matches anchors = find_anchors(w); !anchors.empty()) {
      Window gap = w;
      for (auto [a, b] : anchors) {
        gap.a1 = a;
        gap.b1 = b;
        align(gap);
        matches_.emplace_back(a, b);
        gap.a0 = a + 1;
        gap.b0 = b + 1;
      }
      gap.a1 = w.a1;
      gap.b1 = w.b1;
      return align(gap);
    }
    // Nothing equal is left to hold on to, as after the pivot: steps and micro-batches still are.
    if (split(w, [](const Token& t) { return t.step; })) return;
    if (split(w, [](const Token& t) { return t.micro_batch; })) return;
    solve(w);
  }

  // Tokens whose content occurs once on each side.
  Matches find_anchors(const Window& w) {
    struct Seen {
      uint32_t count_a = 0, count_b = 0, a = 0, b = 0;
    };
    std::vector<Seen> seen;  // by number of the key
    numbers_.clear(w.a1 - w.a0);
    for (uint32_t i = w.a0; i < w.a1; ++i) {
      const uint32_t number = numbers_.add(anchor_key(a_[i]));
      if (number == seen.size()) seen.emplace_back();
      ++seen[number].count_a;
      seen[number].a = i;
    }
    for (uint32_t j = w.b0; j < w.b1; ++j) {
      const uint32_t number = numbers_.find(anchor_key(b_[j]));
      if (number == TokenNumbers::kUnknown) continue;
      ++seen[number].count_b;
      seen[number].b = j;
    }
    Matches unique;
    for (const Seen& s : seen)
      if (s.count_a == 1 && s.count_b == 1 && score(s.a, s.b) > 0) unique.emplace_back(s.a, s.b);
    std::sort(unique.begin(), unique.end());
    return longest_increasing(unique);
  }

  // Aligns the stretches of equal `part` one by one. False if there is one such stretch only, or
  // the values do not increase.
  template <typename Part>
  bool split(const Window& w, Part part) {
    auto increases = [&](const std::vector<Token>& tokens, uint32_t from, uint32_t to) {
      for (uint32_t i = from + 1; i < to; ++i)
        if (part(tokens[i]) < part(tokens[i - 1])) return false;
      return true;
    };
    if (!increases(a_, w.a0, w.a1) || !increases(b_, w.b0, w.b1)) return false;
    if (part(a_[w.a0]) == part(a_[w.a1 - 1]) && part(b_[w.b0]) == part(b_[w.b1 - 1]) &&
        part(a_[w.a0]) == part(b_[w.b0]))
      return false;
    Window piece{w.a0, w.a0, w.b0, w.b0};
    while (piece.a0 < w.a1 && piece.b0 < w.b1) {
      auto value = std::min(part(a_[piece.a0]), part(b_[piece.b0]));
      while (piece.a1 < w.a1 && part(a_[piece.a1]) == value) ++piece.a1;
      while (piece.b1 < w.b1 && part(b_[piece.b1]) == value) ++piece.b1;
      align(piece);
      piece.a0 = piece.a1;
      piece.b0 = piece.b1;
    }
    return true;
  }

  // The best monotone pairing of a window. Of equally good ones the one that pairs earliest is
  // taken: both ways below take the same.
  void solve(const Window& w) {
    if (!sparse_.solve(w, matches_)) solve_dense(w);
  }

  // Dynamic programming over the window's suffixes, all cells or those of a band.
  void solve_dense(const Window& w) {
    const uint64_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    uint64_t half = m;
    if (n * m > limits_.max_cells) {
      banded_ = true;
      // At least one slope step wide, so that the bands of two rows always touch.
      half = std::max<uint64_t>(limits_.max_cells / (2 * n), m / n + 8);
    }
    auto low = [&](uint64_t i) { return i * m / n > half ? i * m / n - half : 0; };
    auto high = [&](uint64_t i) { return std::min(m, i * m / n + half); };
    const uint64_t stride = std::min(m, 2 * half) + 1;
    enum : uint8_t { kPair, kSkipA, kSkipB };
    std::vector<uint8_t> steps((n + 1) * stride, kSkipB);
    constexpr int32_t kOutside = INT32_MIN / 2;
    std::vector<int32_t> row(m + 2, kOutside), below(m + 2, kOutside);  // by j
    for (uint64_t i = n + 1; i-- > 0;) {
      std::swap(row, below);
      const uint64_t lo = low(i), hi = high(i);
      if (hi + 1 < row.size()) row[hi + 1] = kOutside;
      for (uint64_t j = hi + 1; j-- > lo;) {
        int32_t best = i == n || j == m ? 0 : kOutside;
        uint8_t step = i == n ? kSkipB : kSkipA;
        if (i < n && j < m) {
          if (int s = score(w.a0 + i, w.b0 + j); s > 0 && below[j + 1] > kOutside) {
            best = below[j + 1] + s;
            step = kPair;
          }
        }
        if (i < n && below[j] > best) best = below[j], step = kSkipA;
        if (j < m && row[j + 1] > best) best = row[j + 1], step = kSkipB;
        row[j] = best;
        steps[i * stride + (j - lo)] = step;
      }
      // What lies left of the band must not be read as a score by the row above.
      if (lo > 0) row[lo - 1] = kOutside;
    }
    for (uint64_t i = 0, j = 0; i < n && j < m;) {
      switch (steps[i * stride + (j - low(i))]) {
        case kPair:
          matches_.emplace_back(w.a0 + i++, w.b0 + j++);
          break;
        case kSkipA:
          ++i;
          break;
        default:
          ++j;
      }
    }
  }

  // A band may have hidden partners that lie in the gap between two pairs: such gaps are small now.
  void rescue() {
    Matches found = std::move(matches_);
    matches_.clear();
    Window gap{0, 0, 0, 0};
    found.emplace_back(a_.size(), b_.size());
    for (auto [a, b] : found) {
      gap.a1 = a;
      gap.b1 = b;
      if (!gap.empty() && gap.cells() <= limits_.max_cells) align(gap);
      if (a < a_.size() && b < b_.size()) matches_.emplace_back(a, b);
      gap.a0 = a + 1;
      gap.b0 = b + 1;
    }
  }

  const std::vector<Token>& a_;
  const std::vector<Token>& b_;
  const Limits limits_;
  TokenNumbers numbers_;
  SparseWindow sparse_;
  Matches matches_;
  bool banded_ = false;
};

}  // namespace

Matches align_sequences(const std::vector<Token>& a, const std::vector<Token>& b,
                        const Limits& limits) {
  return Aligner(a, b, limits).run();
}

}  // namespace opguard
