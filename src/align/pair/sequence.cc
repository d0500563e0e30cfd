#include "align/pair/sequence.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace opguard {

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

// Keys, numbered from 0 in the order in which they were added.
class Numbers {
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
      if (number == Numbers::kUnknown) continue;
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
    if (!solve_sparse(w)) solve_dense(w);
  }

  // Looks only at cells whose tokens may pair, few where boundaries are many. False, and nothing
  // done: too many of them.
  bool solve_sparse(const Window& w) {
    const uint64_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    if (n * m < kFewCells) return false;
    const Alike alike = tokens_alike(w);
    if (alike.cells > limits_.sparse_cells || alike.cells > n * m / 4) return false;
    std::vector<Range> ranges(n, Range{0, uint32_t(m)});
    if (alike.cells <= 4 * (n + m)) {
      take(w, score_cells(w, alike, ranges));
      return true;
    }
    // Most edits are small, so a pairing near the diagonal is tried first. What it scores says how
    // far from there a better one, or one as good, could lead: often not out of that band.
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t middle = i * m / n;
      ranges[i] = {uint32_t(middle - std::min(middle, kBand)),
                   uint32_t(std::min(m, middle + kBand))};
    }
    Cells cells = score_cells(w, alike, ranges);
    const bool found = bounds(w, alike).hold(cells.total, ranges);
    take(w, found ? cells : score_cells(w, alike, ranges));
    return true;
  }

  // [begin, end) of a window's side b, from its begin.
  struct Range {
    uint32_t begin, end;
  };

  // Which tokens of a window have the same key: those of side b, key by key, and where in that list
  // the partners are that a token of side a may have.
  struct Alike {
    std::vector<uint32_t> by_key;        // increasing for each key
    std::vector<Range> of_a;             // parts of by_key
    std::vector<uint32_t> key_a, key_b;  // numbers; kUnknown: not in side b
    uint64_t cells = 0;
  };

  Alike tokens_alike(const Window& w) {
    const uint32_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    Alike alike;
    std::vector<uint32_t> begin;  // in by_key, by number
    numbers_.clear(m);
    alike.key_b.reserve(m);
    for (uint32_t j = 0; j < m; ++j) {
      const uint32_t key = numbers_.add(b_[w.b0 + j].key);
      if (key == begin.size()) begin.push_back(0);
      ++begin[key];
      alike.key_b.push_back(key);
    }
    begin.push_back(0);
    for (uint32_t sum = 0; uint32_t& count : begin) sum += std::exchange(count, sum);
    alike.by_key.resize(m);
    std::vector<uint32_t> next = begin;
    for (uint32_t j = 0; j < m; ++j) alike.by_key[next[alike.key_b[j]]++] = j;
    alike.key_a.reserve(n);
    alike.of_a.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t key = numbers_.find(a_[w.a0 + i].key);
      alike.key_a.push_back(key);
      alike.of_a.push_back(key == Numbers::kUnknown ? Range{0, 0}
                                                    : Range{begin[key], begin[key + 1]});
      alike.cells += alike.of_a.back().end - alike.of_a.back().begin;
    }
    return alike;
  }

  // What the first so many tokens of either side can score at most, whichever partners they take.
  struct Bounds {
    std::vector<int32_t> a, b;

    // Whether all pairings that score `total` or more keep to `ranges`, which hold these from now
    // on: of each row the cells where what lies before the cell on one side and behind it on the
    // other leaves as much.
    bool hold(int32_t total, std::vector<Range>& ranges) const {
      const size_t n = a.size() - 1, m = b.size() - 1;
      bool all = true;
      uint32_t begin = 0, end = 0;
      for (size_t i = 0; i < n; ++i) {
        while (begin < m && b[begin + 1] + (a[n] - a[i + 1]) < total) ++begin;
        while (end < m && a[i + 1] + (b[m] - b[end + 1]) >= total) ++end;
        const Range needed{begin, std::max(begin, end)};
        all &= begin >= end || (ranges[i].begin <= begin && end <= ranges[i].end);
        ranges[i] = needed;
      }
      return all;
    }
  };

  Bounds bounds(const Window& w, const Alike& alike) {
    const uint32_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    const Token *a = a_.data() + w.a0, *b = b_.data() + w.b0;
    return {sum_bounds(a, alike.key_a, n, b, alike.key_b, m),
            sum_bounds(b, alike.key_b, m, a, alike.key_a, n)};
  }

  // Sums over `mine` of what each can score with any of `others`.
  std::vector<int32_t> sum_bounds(const Token* mine, const std::vector<uint32_t>& keys, uint32_t n,
                                  const Token* others, const std::vector<uint32_t>& their_keys,
                                  uint32_t m) {
    enum : uint64_t { kKey, kContent, kInputs, kPlace };
    auto content = [](const Token& t) { return t.content ^ (uint64_t(t.step) << 32); };
    auto place = [](const Token& t) { return uint64_t(t.step) << 32 | t.occurrence; };
    present_.clear(4 * size_t{m});
    for (uint32_t j = 0; j < m; ++j) {
      const Token& t = others[j];
      present_.add(their_keys[j], kKey, 0);
      present_.add(their_keys[j], kContent, content(t));
      present_.add(their_keys[j], kInputs, t.inputs);
      present_.add(their_keys[j], kPlace, place(t));
    }
    std::vector<int32_t> sums(n + 1, 0);
    for (uint32_t i = 0; i < n; ++i) {
      const Token& t = mine[i];
      auto among = [&](uint64_t what, uint64_t value) {
        return present_.has(keys[i], what, value);
      };
      int32_t most = 0;
      if (among(kKey, 0)) {
        // A token like it in all that is not looked up here: pair_score.
        Token best = t;
        best.content = ~t.content;
        if (!among(kInputs, t.inputs)) best.inputs = ~t.inputs;
        if (!among(kPlace, place(t))) ++best.occurrence;
        if (among(kContent, content(t))) best.content = t.content;
        most = pair_score(t, best);
      }
      sums[i + 1] = sums[i] + most;
    }
    return sums;
  }

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

  // The cells of tokens that are alike, within `ranges`.
  Cells score_cells(const Window& w, const Alike& alike, const std::vector<Range>& ranges) const {
    const uint64_t n = w.a1 - w.a0, m = w.b1 - w.b0;
    Cells cells;
    // The best total of a cell at j or behind, in the rows below: a tree of maxima over prefixes,
    // by m - j.
    std::vector<int32_t> best(m + 1, 0);
    auto best_behind = [&](uint64_t j) {
      int32_t value = 0;
      for (uint64_t k = m - 1 - j; k > 0; k &= k - 1) value = std::max(value, best[k]);
      return value;
    };
    for (uint32_t i = uint32_t(n); i-- > 0;) {
      const size_t row = cells.all.size();
      const auto end = alike.by_key.begin() + alike.of_a[i].end;
      for (auto at =
               std::lower_bound(alike.by_key.begin() + alike.of_a[i].begin, end, ranges[i].begin);
           at != end && *at < ranges[i].end; ++at) {
        const int32_t s = score(w.a0 + i, w.b0 + *at);
        cells.all.push_back({i, *at, s, s + best_behind(*at), kNoCell});
      }
      for (size_t c = row; c < cells.all.size(); ++c) {
        Cell& cell = cells.all[c];
        std::vector<uint32_t>& of_total = cells.of_total;
        if (size_t(cell.total) >= of_total.size())
          of_total.resize(std::max<size_t>(size_t(cell.total) + 1, of_total.size() * 2), kNoCell);
        cell.next = std::exchange(of_total[size_t(cell.total)], uint32_t(c));
        cells.total = std::max(cells.total, cell.total);
        for (uint64_t k = m - cell.j; k <= m && best[k] < cell.total; k += k & (~k + 1))
          best[k] = cell.total;
      }
    }
    return cells;
  }

  // The first column as far down as it pairs; else the last row that still can.
  void take(const Window& w, const Cells& cells) {
    uint32_t i = 0, j = 0;
    for (int32_t left = cells.total; left > 0;) {
      const Cell* taken = nullptr;
      for (uint32_t c = cells.of_total[size_t(left)]; c != kNoCell; c = cells.all[c].next) {
        const Cell& cell = cells.all[c];
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
      left -= taken->score;
    }
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
  static constexpr uint64_t kBand = 48;           // tokens to either side
  static constexpr uint32_t kNoCell = UINT32_MAX;

  const std::vector<Token>& a_;
  const std::vector<Token>& b_;
  const Limits limits_;
  Numbers numbers_;
  Present present_;
  Matches matches_;
  bool banded_ = false;
};

}  // namespace

Matches align_sequences(const std::vector<Token>& a, const std::vector<Token>& b,
                        const Limits& limits) {
  return Aligner(a, b, limits).run();
}

}  // namespace opguard
