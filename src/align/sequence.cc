#include "align/sequence.h"

#include <algorithm>
#include <unordered_map>

namespace opguard {
namespace {

// [a0, a1) of one side against [b0, b1) of the other.
struct Window {
  uint32_t a0, a1, b0, b1;
  uint64_t cells() const { return uint64_t(a1 - a0) * (b1 - b0); }
  bool empty() const { return a0 == a1 || b0 == b1; }
};

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
      : a_(a), b_(b), limits_(limits) {}

  Matches run() {
    align({0, uint32_t(a_.size()), 0, uint32_t(b_.size())});
    if (banded_) rescue();
    return std::move(matches_);
  }

 private:
  int score(uint32_t i, uint32_t j) const { return pair_score(a_[i], b_[j]); }

  // Appends the window's matches in order.
  void align(Window w) {
    // A pair of the highest score at an end is part of some best alignment: any other use of either
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
  Matches find_anchors(const Window& w) const {
    struct Seen {
      uint32_t count_a = 0, count_b = 0, a = 0, b = 0;
    };
    std::unordered_map<uint64_t, Seen> seen;
    seen.reserve(w.a1 - w.a0);
    for (uint32_t i = w.a0; i < w.a1; ++i) {
      Seen& s = seen[anchor_key(a_[i])];
      ++s.count_a;
      s.a = i;
    }
    for (uint32_t j = w.b0; j < w.b1; ++j) {
      auto at = seen.find(anchor_key(b_[j]));
      if (at == seen.end()) continue;
      ++at->second.count_b;
      at->second.b = j;
    }
    Matches unique;
    for (const auto& [key, s] : seen)
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
    if (!solve_sparse(w)) solve_dense(w);
  }

  // Looks only at cells whose tokens may pair, few where boundaries are many. False, and nothing
  // done: too many of them.
  bool solve_sparse(const Window& w) {
    const uint64_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    if (n * m < kFewCells) return false;
    std::vector<std::pair<uint64_t, uint32_t>> by_key;  // of b
    by_key.reserve(m);
    for (uint32_t j = 0; j < m; ++j) by_key.emplace_back(b_[w.b0 + j].key, j);
    std::sort(by_key.begin(), by_key.end());
    std::vector<std::pair<uint32_t, uint32_t>> alike(n);  // of each token of a: part of by_key
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t key = a_[w.a0 + i].key;
      auto from = std::lower_bound(by_key.begin(), by_key.end(), std::pair(key, 0u));
      auto to = from;
      while (to != by_key.end() && to->first == key) ++to;
      alike[i] = {uint32_t(from - by_key.begin()), uint32_t(to - by_key.begin())};
      count += uint64_t(to - from);
    }
    if (count > limits_.sparse_cells || count > n * m / 4) return false;

    // total: of the best pairing of the suffixes that begins with this cell's pair.
    struct Cell {
      uint32_t i, j;
      int32_t score, total;
      uint32_t next;  // cell of the same total
    };
    std::vector<Cell> cells;
    cells.reserve(count);
    std::vector<uint32_t> of_total;  // first cell
    // The best total of a cell at j or behind, in the rows below: a tree of maxima over prefixes,
    // by m - j.
    std::vector<int32_t> best(m + 1, 0);
    auto best_behind = [&](uint64_t j) {
      int32_t value = 0;
      for (uint64_t k = m - 1 - j; k > 0; k &= k - 1) value = std::max(value, best[k]);
      return value;
    };
    int32_t all = 0;
    for (uint32_t i = uint32_t(n); i-- > 0;) {
      const size_t row = cells.size();
      for (uint32_t k = alike[i].first; k < alike[i].second; ++k) {
        const uint32_t j = by_key[k].second;
        const int32_t s = score(w.a0 + i, w.b0 + j);
        cells.push_back({i, j, s, s + best_behind(j), kNoCell});
      }
      for (size_t c = row; c < cells.size(); ++c) {
        Cell& cell = cells[c];
        if (size_t(cell.total) >= of_total.size())
          of_total.resize(std::max<size_t>(size_t(cell.total) + 1, of_total.size() * 2), kNoCell);
        cell.next = of_total[size_t(cell.total)];
        of_total[size_t(cell.total)] = uint32_t(c);
        all = std::max(all, cell.total);
        for (uint64_t k = m - cell.j; k <= m && best[k] < cell.total; k += k & (~k + 1))
          best[k] = cell.total;
      }
    }
    // The first column as far down as it pairs; else the last row that still can.
    uint32_t i = 0, j = 0;
    while (all > 0) {
      const Cell* taken = nullptr;
      for (uint32_t c = of_total[size_t(all)]; c != kNoCell; c = cells[c].next) {
        const Cell& cell = cells[c];
        if (cell.i < i || cell.j < j) continue;
        const bool column = cell.j == j;
        if (!taken || (column && (taken->j != j || cell.i < taken->i)) ||
            (!column && taken->j != j &&
             (cell.i > taken->i || (cell.i == taken->i && cell.j < taken->j))))
          taken = &cell;
      }
      matches_.emplace_back(w.a0 + taken->i, w.b0 + taken->j);
      i = taken->i + 1;
      j = taken->j + 1;
      all -= taken->score;
    }
    return true;
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

  static constexpr uint64_t kFewCells = 1 << 10;  // not worth sorting for
  static constexpr uint32_t kNoCell = UINT32_MAX;

  const std::vector<Token>& a_;
  const std::vector<Token>& b_;
  const Limits limits_;
  Matches matches_;
  bool banded_ = false;
};

}  // namespace

int pair_score(const Token& a, const Token& b) {
  if (a.key != b.key) return 0;
  const int place = a.step == b.step && a.occurrence == b.occurrence ? 1 : 0;
  if (a.content == b.content && a.step == b.step) return 16 + place;
  // Another step is another execution, however alike.
  int score = a.step == b.step ? 4 : 2;
  if (a.inputs == b.inputs && a.inputs != 0) score += 5;
  if (a.shapes == b.shapes) score += 2;
  if (a.scalars == b.scalars) score += 1;
  return score + place;
}

Matches align_sequences(const std::vector<Token>& a, const std::vector<Token>& b,
                        const Limits& limits) {
  return Aligner(a, b, limits).run();
}

}  // namespace opguard
