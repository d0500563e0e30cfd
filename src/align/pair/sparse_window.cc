// Dynamic programming over cells of equal keys alone, from the last row up.
//
//   total(cell) = score(cell) + the best total of any cell further down and to the right
//
// That best is asked of a tree of maxima over columns (a Fenwick tree), so a cell costs log m.
// Cells are listed by their total, and take() reads the pairing off these lists.
//
// The band is checked and not believed. Bounds::hold() adds up what all tokens before and behind a
// cell could score at most. If no cell outside of the band can be on a way as good, the band's
// answer is the window's. Else all cells that can be are scored once more.
//
// The cost: 20 bytes a cell that is scored, c log m time for c of them.
#include "align/pair/sparse_window.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace opguard {
namespace {

constexpr uint64_t kFewCells = 1 << 10;  // not worth sorting for
constexpr uint64_t kBand = 48;           // tokens to either side
constexpr uint32_t kNoCell = UINT32_MAX;

}  // namespace

// What the first so many tokens of either side can score at most, whichever partners they take.
struct SparseWindow::Bounds {
  std::vector<int32_t> a, b;

  // Whether all pairings that score `total` or more keep to `ranges`, which hold these from now on.
  // Of each row these are the cells that can be on such a way. What lies before the cell on one
  // side and behind it on the other leaves as much.
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

bool SparseWindow::solve(const Window& w, Matches& matches) {
  const uint64_t n = w.a1 - w.a0, m = w.b1 - w.b0;
  if (n * m < kFewCells) return false;
  const Alike alike = tokens_alike(w);
  if (alike.cells > limits_.sparse_cells || alike.cells > n * m / 4) return false;
  std::vector<Range> ranges(n, Range{0, uint32_t(m)});
  if (alike.cells <= 4 * (n + m)) {
    take(w, score_cells(w, alike, ranges), matches);
    return true;
  }
  // Most edits are small, so a pairing near the diagonal is tried first. What it scores says how
  // far from there a better one, or one as good, could lead: often not out of that band.
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t middle = i * m / n;
    ranges[i] = {uint32_t(middle - std::min(middle, kBand)), uint32_t(std::min(m, middle + kBand))};
  }
  Cells cells = score_cells(w, alike, ranges);
  const bool found = bounds(w, alike).hold(cells.total, ranges);
  take(w, found ? cells : score_cells(w, alike, ranges), matches);
  return true;
}

// Tokens of side b are sorted by key with a counting sort, so each key's are one range of by_key.
SparseWindow::Alike SparseWindow::tokens_alike(const Window& w) {
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
    alike.of_a.push_back(key == TokenNumbers::kUnknown ? Range{0, 0}
                                                       : Range{begin[key], begin[key + 1]});
    alike.cells += alike.of_a.back().end - alike.of_a.back().begin;
  }
  return alike;
}

SparseWindow::Bounds SparseWindow::bounds(const Window& w, const Alike& alike) {
  const uint32_t n = w.a1 - w.a0, m = w.b1 - w.b0;
  const Token *a = a_.data() + w.a0, *b = b_.data() + w.b0;
  return {sum_bounds(a, alike.key_a, n, b, alike.key_b, m),
          sum_bounds(b, alike.key_b, m, a, alike.key_a, n)};
}

// Sums over `mine` of what each can score with any of `others`.
std::vector<int32_t> SparseWindow::sum_bounds(const Token* mine, const std::vector<uint32_t>& keys,
                                              uint32_t n, const Token* others,
                                              const std::vector<uint32_t>& their_keys, uint32_t m) {
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
    auto among = [&](uint64_t what, uint64_t value) { return present_.has(keys[i], what, value); };
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

// The cells of tokens that are alike, within `ranges`.
SparseWindow::Cells SparseWindow::score_cells(const Window& w, const Alike& alike,
                                              const std::vector<Range>& ranges) const {
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
void SparseWindow::take(const Window& w, const Cells& cells, Matches& matches) {
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
    matches.emplace_back(w.a0 + taken->i, w.b0 + taken->j);
    i = taken->i + 1;
    j = taken->j + 1;
    left -= taken->score;
  }
}

}  // namespace opguard
