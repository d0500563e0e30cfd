// A dynamic program from the front and one from the back; together they price every other place.
//
//   before(i, j)    the best pairing of the first i with the first j
//   after(i, j)     the best of the rest, from i and j on
//   i at j          before(i, j) + value(i, j) + after(i + 1, j + 1)
//   i nowhere       the greatest before(i, j) + after(i + 1, j) over all j
//
// So what the whole loses when i goes elsewhere is one look-up a cell. Counterexample: to run the
// program again for each i. That would take n times as long.
#include "matcher/order.h"

#include <algorithm>

namespace opguard {
namespace {

// Table cells of one window; three tables of floats of this size are 50 MB.
constexpr size_t kMaxCells = size_t{1} << 22;

class Window {
 public:
  Window(size_t i0, size_t i1, size_t j0, size_t j1,
         const std::function<double(size_t, size_t)>& similarity)
      : i0_(i0), j0_(j0), n_(i1 - i0), m_(j1 - j0), width_(m_ + 1) {
    value_.assign(n_ * m_, 0);
    for (size_t i = 0; i < n_; ++i)
      for (size_t j = 0; j < m_; ++j)
        value_[i * m_ + j] = static_cast<float>(similarity(i0 + i, j0 + j));
    before_.assign((n_ + 1) * width_, 0);
    after_.assign((n_ + 1) * width_, 0);
    for (size_t i = 1; i <= n_; ++i)
      for (size_t j = 1; j <= m_; ++j)
        before(i, j) = std::max({before(i - 1, j), before(i, j - 1), through_before(i, j)});
    for (size_t i = n_; i-- > 0;)
      for (size_t j = m_; j-- > 0;)
        after(i, j) = std::max({after(i + 1, j), after(i, j + 1), through_after(i, j)});
  }

  void place(std::vector<Placement>& out) {
    trace_best(out);
    float best = n_ && m_ ? before(n_, m_) : 0;
    for (size_t i = 0; i < n_; ++i) {
      Placement& p = out[i0_ + i];
      // The best pairing that puts i elsewhere, or nowhere.
      float other = -1;
      int32_t rival = -1;
      if (p.at >= 0)
        for (size_t j = 0; j <= m_; ++j) other = std::max(other, before(i, j) + after(i + 1, j));
      for (size_t j = 0; j < m_; ++j) {
        float v = value(i, j);
        if (v <= 0 || static_cast<int32_t>(j0_ + j) == p.at) continue;
        float total = before(i, j) + v + after(i + 1, j + 1);
        // Of equal worth, naming the rival site says more than "nowhere".
        if (total < other || (total == other && rival >= 0)) continue;
        other = total;
        rival = static_cast<int32_t>(j0_ + j);
      }
      p.rival = rival;
      // Of what is nowhere in the best pairing: what the best place for it would cost the whole.
      p.lead = other < 0 ? best : best - other;
    }
  }

 private:
  float& before(size_t i, size_t j) { return before_[i * width_ + j]; }
  float& after(size_t i, size_t j) { return after_[i * width_ + j]; }
  float value(size_t i, size_t j) const { return value_[i * m_ + j]; }
  float through_before(size_t i, size_t j) {
    float v = value(i - 1, j - 1);
    return v > 0 ? before(i - 1, j - 1) + v : 0;
  }
  float through_after(size_t i, size_t j) {
    float v = value(i, j);
    return v > 0 ? after(i + 1, j + 1) + v : 0;
  }

  // Floats are compared for equality: each cell is one of the three values that its maximum was
  // taken of.
  void trace_best(std::vector<Placement>& out) {
    size_t i = n_, j = m_;
    while (i > 0 && j > 0) {
      float v = value(i - 1, j - 1);
      if (v > 0 && before(i, j) == before(i - 1, j - 1) + v) {
        --i, --j;
        out[i0_ + i].at = static_cast<int32_t>(j0_ + j);
        out[i0_ + i].value = v;
      } else if (before(i, j) == before(i - 1, j)) {
        --i;
      } else {
        --j;
      }
    }
  }

  size_t i0_, j0_, n_, m_, width_;
  std::vector<float> value_, before_, after_;
};

}  // namespace

std::vector<Placement> pair_in_order(size_t n, size_t m,
                                     const std::function<double(size_t, size_t)>& similarity,
                                     const std::vector<std::pair<size_t, size_t>>& anchors) {
  std::vector<Placement> out(n);
  if (n * m <= kMaxCells) {
    Window(0, n, 0, m, similarity).place(out);
    return out;
  }
  size_t i0 = 0, j0 = 0;
  auto window = [&](size_t i1, size_t j1) {
    // Without anchors to cut it, a stretch this long stays unpaired: lost, not guessed.
    if ((i1 - i0) * (j1 - j0) <= kMaxCells) Window(i0, i1, j0, j1, similarity).place(out);
  };
  for (const auto& [i, j] : anchors) {
    window(i, j);
    out[i].at = static_cast<int32_t>(j);
    out[i].value = out[i].lead = similarity(i, j);
    i0 = i + 1;
    j0 = j + 1;
  }
  window(n, m);
  return out;
}

}  // namespace opguard
