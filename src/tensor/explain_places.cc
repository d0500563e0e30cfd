// Is b made of a's elements in other places? Along each dim a tensor is a row of slices.
//
//   a [0 1 2 3 4]      b [4 0 1 2 3]      roll by 1
//                      b [4 3 2 1 0]      flip
//                      b [0 3 2 1 4]      permutation: 3 to 1, 1 to 3
//                      b [9 0 1 2 3]      shift by 1; 9 is new
//   a [[1 2] [3 4]]    b [[1 3] [2 4]]    transposed
//
// Slices are compared by hashes, and what the hashes say is then compared byte by byte.
// Counterexample: where most slices are one constant, as padding is, any shift would fit. So a
// shift is told only if what is shifted holds several slices.
//
// The cost: the elements are read once, for the sum of their hashes: that tells whether the same
// ones are there at all. Each dim costs a look at small samples, and two readings where they fit.
// To sort the slices that moved takes n log n.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tensor/elements.h"
#include "tensor/explain.h"

namespace opguard {
namespace {

constexpr int64_t kMaxSlices = int64_t{1} << 24;  // of one dim; 16 bytes of memory each
constexpr size_t kShown = 8;                      // moved rows that are named

uint64_t mix(uint64_t x) {  // splitmix64's finish
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Equal bytes have equal hashes; that unequal ones have unequal ones is checked byte by byte later.
uint64_t hash_bytes(const unsigned char* data, size_t size) {
  uint64_t h = size, word;
  for (; size >= 8; data += 8, size -= 8) {
    std::memcpy(&word, data, 8);
    h = (h ^ mix(word)) * 0x9e3779b97f4a7c15u;
  }
  word = 0;
  std::memcpy(&word, data, size);
  return mix(h ^ mix(word + 1));
}

// A tensor seen along one dim: for each of `outer` places, `n` pieces of `inner` bytes.
//   float32 [2, 3, 4] along dim 1     outer 2, n 3, inner 16: slice i is 2 pieces of 16 bytes
struct Along {
  uint64_t outer = 1, n = 1, inner = 1;
  const unsigned char* piece(const Tensor& t, uint64_t o, uint64_t i) const {
    return t.data + (o * n + i) * inner;
  }
};

Along along(const Tensor& t, size_t dim) {
  Along view;
  for (size_t d = 0; d < dim; ++d) view.outer *= static_cast<uint64_t>(t.shape[d]);
  view.n = static_cast<uint64_t>(t.shape[dim]);
  view.inner = t.dtype->size_bytes;
  for (size_t d = dim + 1; d < t.shape.size(); ++d) view.inner *= static_cast<uint64_t>(t.shape[d]);
  return view;
}

// sample: of a small part of each slice, equal wherever the whole slices are.
// A sum over the places, each mixed with its number: a slice whose pieces changed places is another
// one.
std::vector<uint64_t> slice_hashes(const Tensor& t, const Along& view, bool sample) {
  std::vector<uint64_t> hashes(view.n);
  const uint64_t outer = sample ? std::min<uint64_t>(view.outer, 4) : view.outer;
  const uint64_t inner = sample ? std::min<uint64_t>(view.inner, 64) : view.inner;
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = 0; i < view.n; ++i)
      hashes[i] += mix(hash_bytes(view.piece(t, o, i), inner) + o * 0xd1b54a32d192ed03u);
  return hashes;
}

// Is slice from[i] of a the slice i of b, for all of them?
bool slices_equal(const Tensor& a, const Tensor& b, const Along& view,
                  const std::vector<int64_t>& from) {
  for (uint64_t o = 0; o < view.outer; ++o)
    for (uint64_t i = 0; i < view.n; ++i)
      if (from[i] >= 0 && std::memcmp(view.piece(a, o, static_cast<uint64_t>(from[i])),
                                      view.piece(b, o, i), view.inner) != 0)
        return false;
  return true;
}

// Length of the longest proper beginning of `x` that `y` ends with (Knuth, Morris, Pratt).
//   x [1 2 3 4], y [9 9 1 2]     2: y ends as x begins
// In linear time, where to try each length would take n^2.
size_t overlap(const std::vector<uint64_t>& x, const std::vector<uint64_t>& y) {
  const size_t n = x.size();
  std::vector<uint32_t> border(n);
  size_t k = 0;
  for (size_t i = 1; i < n; ++i) {
    while (k > 0 && x[i] != x[k]) k = border[k - 1];
    k += x[i] == x[k];
    border[i] = static_cast<uint32_t>(k);
  }
  k = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    while (k > 0 && (k == n || y[i] != x[k])) k = border[k - 1];
    k += y[i] == x[k];
  }
  return k == n ? border[n - 1] : k;
}

bool several(const std::vector<uint64_t>& hashes, size_t first, size_t count) {
  for (size_t i = first + 1; i < first + count; ++i)
    if (hashes[i] != hashes[first]) return true;
  return false;
}

std::string of_dim(int dim) { return " along dim " + std::to_string(dim); }

// The permutation that takes a's slices to b's, keeping those in place that can stay; empty if
// there is none.
std::vector<int64_t> permutation(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<int64_t> in_a, in_b, from(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    from[i] = static_cast<int64_t>(i);
    if (a[i] == b[i]) continue;
    in_a.push_back(static_cast<int64_t>(i));
    in_b.push_back(static_cast<int64_t>(i));
  }
  auto by = [](const std::vector<uint64_t>& hashes) {
    return [&hashes](int64_t x, int64_t y) {
      return std::pair(hashes[static_cast<size_t>(x)], x) <
             std::pair(hashes[static_cast<size_t>(y)], y);
    };
  };
  std::sort(in_a.begin(), in_a.end(), by(a));
  std::sort(in_b.begin(), in_b.end(), by(b));
  for (size_t i = 0; i < in_a.size(); ++i) {
    if (a[static_cast<size_t>(in_a[i])] != b[static_cast<size_t>(in_b[i])]) return {};
    from[static_cast<size_t>(in_b[i])] = in_a[i];
  }
  return from;
}

bool explain_rolled(const Tensor& a, const Tensor& b, const Along& view, int dim,
                    const std::vector<uint64_t>& ha, const std::vector<uint64_t>& hb,
                    std::vector<Explanation>& out) {
  const size_t n = ha.size();
  std::vector<int64_t> from(n);
  // b occurs in a written twice.
  std::vector<uint64_t> twice(ha);
  twice.insert(twice.end(), ha.begin(), ha.end());
  std::vector<uint32_t> border(n);
  size_t k = 0;
  for (size_t i = 1; i < n; ++i) {
    while (k > 0 && hb[i] != hb[k]) k = border[k - 1];
    k += hb[i] == hb[k];
    border[i] = static_cast<uint32_t>(k);
  }
  k = 0;
  for (size_t i = 0; i < 2 * n; ++i) {
    while (k > 0 && twice[i] != hb[k]) k = border[k - 1];
    if (twice[i] == hb[k]) ++k;
    if (k < n) continue;
    const int64_t start = static_cast<int64_t>((i + 1 - n) % n);  // b[0] is a[start]
    for (size_t at = 0; at < n; ++at)
      from[at] = (start + static_cast<int64_t>(at)) % static_cast<int64_t>(n);
    if (!slices_equal(a, b, view, from)) return false;
    int64_t by = (static_cast<int64_t>(n) - start) % static_cast<int64_t>(n);
    // By the shorter way: of ten slices, 9 forwards is 1 backwards.
    if (by > static_cast<int64_t>(n) / 2) by -= static_cast<int64_t>(n);
    Explanation e{"roll", "b is a rolled by " + std::to_string(by) + of_dim(dim)};
    e.dim = dim;
    e.by = by;
    out.push_back(e);
    return true;
  }
  return false;
}

// The same slices in another order.
bool explain_order(const Tensor& a, const Tensor& b, const Along& view, int dim,
                   const std::vector<uint64_t>& ha, const std::vector<uint64_t>& hb,
                   std::vector<Explanation>& out) {
  std::vector<int64_t> from = permutation(ha, hb);
  if (from.empty()) return false;
  if (explain_rolled(a, b, view, dim, ha, hb, out)) return true;
  const int64_t n = static_cast<int64_t>(ha.size());
  if (std::equal(ha.begin(), ha.end(), hb.rbegin())) {
    for (int64_t i = 0; i < n; ++i) from[static_cast<size_t>(i)] = n - 1 - i;
    if (!slices_equal(a, b, view, from)) return false;
    out.push_back({"flip", "b is a in reverse order" + of_dim(dim)});
    out.back().dim = dim;
    return true;
  }
  if (!slices_equal(a, b, view, from)) return false;
  Explanation e{"permutation", ""};
  e.dim = dim;
  uint64_t moved = 0;
  std::string list;
  for (int64_t i = 0; i < n; ++i) {
    if (from[static_cast<size_t>(i)] == i || ++moved > kShown) continue;
    e.moved.emplace_back(from[static_cast<size_t>(i)], i);
    list += (list.empty() ? "" : ", ") + std::to_string(from[static_cast<size_t>(i)]) + " to " +
            std::to_string(i);
  }
  e.text = "b has a's slices" + of_dim(dim) + " in another order, " + std::to_string(moved) +
           " of " + std::to_string(n) + " moved: " + list + (moved > kShown ? ", ..." : "");
  out.push_back(e);
  return true;
}

// By how far the longest end of one is the beginning of the other, at least half of it; 0: not at
// all.
int64_t shift_of(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  const size_t n = a.size();
  const size_t up = overlap(a, b), down = overlap(b, a), same = std::max(up, down);
  // Two slices, or one that fits, would be a shift by chance.
  if (n < 3 || same < 2 || same < n - n / 2) return 0;
  return static_cast<int64_t>(n - same) * (up >= down ? 1 : -1);
}

// b[i] = a[i - by] for most i; what came in at the end is new.
bool explain_shift(const Tensor& a, const Tensor& b, const Along& view, int dim,
                   const std::vector<uint64_t>& ha, const std::vector<uint64_t>& hb,
                   std::vector<Explanation>& out) {
  const size_t n = ha.size();
  const int64_t by = shift_of(ha, hb);
  // Slices that are all alike are shifted by anything.
  const size_t same = n - static_cast<size_t>(std::abs(by));
  if (by == 0 || !several(by > 0 ? ha : hb, 0, same)) return false;
  std::vector<int64_t> from(n, -1);
  for (int64_t i = 0; i < static_cast<int64_t>(n); ++i)
    if (i - by >= 0 && i - by < static_cast<int64_t>(n)) from[static_cast<size_t>(i)] = i - by;
  if (!slices_equal(a, b, view, from)) return false;
  Explanation e{"shift", "b is a shifted by " + std::to_string(by) + of_dim(dim) + "; " +
                             std::to_string(n - same) + " slices of it are new"};
  e.dim = dim;
  e.by = by;
  out.push_back(e);
  return true;
}

// Equal for the same elements in any order.
// Two sums of 64 bits. Order is no matter to a sum, and the second is of other mixes than the
// first.
std::pair<uint64_t, uint64_t> bag(const Tensor& t) {
  uint64_t h = 0, g = 0;
  for (uint64_t i = 0, n = t.count(); i < n; ++i) {
    const ElementBits bits = element_bits(t, i);
    const uint64_t m = mix(bits.low + mix(bits.high + 0x9e3779b97f4a7c15u));
    h += m;
    g += mix(m ^ 0x2545f4914f6cdd1du);
  }
  return {h, g};
}

// Is b, element by element, a with two of its dims exchanged?
bool transposed(const Tensor& a, const Tensor& b, size_t p, size_t q) {
  const size_t rank = a.shape.size(), size = a.dtype->size_bytes;
  std::vector<uint64_t> strides(rank);
  std::vector<int64_t> shape = a.shape;
  uint64_t step = size;
  for (size_t d = rank; d-- > 0; step *= static_cast<uint64_t>(a.shape[d])) strides[d] = step;
  std::swap(shape[p], shape[q]);
  std::swap(strides[p], strides[q]);
  std::vector<int64_t> index(rank);
  uint64_t from = 0;
  for (uint64_t i = 0, n = a.count(); i < n; ++i) {
    if (std::memcmp(a.data + from, b.data + i * size, size) != 0) return false;
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * static_cast<uint64_t>(shape[d]);
      index[d] = 0;
    }
  }
  return true;
}

std::string dims(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

bool explain_transposed(const Tensor& a, const Tensor& b, std::vector<Explanation>& out) {
  for (size_t p = 0; p < a.shape.size(); ++p)
    for (size_t q = p + 1; q < a.shape.size(); ++q) {
      if (a.shape[p] < 2 || a.shape[q] < 2 || !transposed(a, b, p, q)) continue;
      std::vector<int64_t> shape = a.shape;
      std::swap(shape[p], shape[q]);
      Explanation e{"transposed", "b is a with dims " + std::to_string(p) + " and " +
                                      std::to_string(q) + " exchanged"};
      if (shape != b.shape) e.text += ", read in the shape " + dims(b.shape);
      e.dim = static_cast<int>(p);
      e.by = static_cast<int64_t>(q - p);
      out.push_back(e);
      return true;
    }
  return false;
}

}  // namespace

void explain_places(const Tensor& a, const Tensor& b, std::vector<Explanation>& out) {
  if (a.count() == 0) return;
  const bool one_shape = a.shape == b.shape;
  if (!one_shape && std::memcmp(a.data, b.data, a.size_bytes()) == 0) {
    out.push_back({"reshaped", "the same elements in the same order, in the shape " +
                                   dims(b.shape) + " and not " + dims(a.shape)});
    return;
  }
  // Decides which questions are asked at all: an order needs the same elements, a shift needs
  // others.
  const bool same_elements = bag(a) == bag(b);
  bool explained = false;
  for (size_t d = 0; one_shape && d < a.shape.size(); ++d) {
    if (a.shape[d] < 2 || a.shape[d] > kMaxSlices) continue;
    const Along view = along(a, d);
    std::vector<uint64_t> ha = slice_hashes(a, view, true), hb = slice_hashes(b, view, true);
    // Most tensors have nothing of the kind, and a sample shows it.
    if (same_elements ? permutation(ha, hb).empty() : !shift_of(ha, hb)) continue;
    ha = slice_hashes(a, view, false);
    hb = slice_hashes(b, view, false);
    const int dim = static_cast<int>(d);
    explained |= same_elements ? explain_order(a, b, view, dim, ha, hb, out)
                               : explain_shift(a, b, view, dim, ha, hb, out);
  }
  if (!same_elements) return;
  explained |= explain_transposed(a, b, out);
  if (!explained)
    out.push_back({"element_permutation", one_shape
                                              ? "b has a's elements in another order"
                                              : "b has a's elements in another order and shape"});
}

}  // namespace opguard
