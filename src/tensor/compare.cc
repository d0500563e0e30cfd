// Compares element by element, measures, and then asks explain_values.cc and explain_places.cc why.
//
//   a, b of shape [4, 8], row 2 of b is another    8 of 32 differ, first [2, 0], last [2, 7]
//                                                  "they differ only in index 2 of dim 0"
//   elements [0, 0] and [3, 7] differ              the box around them is the whole: no such words
//
// Of one dtype the bits decide: 0.0 and -0.0 differ, and so do two NaN of other bits. Of two dtypes
// the values decide, and float32 2.0 equals int64 2. Counterexample: the largest error alone would
// not tell a fault of one element from rounding of all.
//
// The cost: blocks of 2048 numbers are compared as bytes first. Only one that differs is decoded.
#include "tensor/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/elements.h"
#include "tensor/explain.h"

namespace opguard {
namespace {

constexpr size_t kMaxMarked = size_t{1} << 26;  // marked one by one, a byte each

std::vector<int64_t> index_of(uint64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(flat % static_cast<uint64_t>(shape[d]));
    flat /= static_cast<uint64_t>(shape[d]);
  }
  return index;
}

// Where the differing elements lie.
// By order of memory: first, last, the box around them, and for each dim which of its slices.
//   shape [4, 8], elements 16 to 23     rows 2 to 2, columns 0 to 7; slices 1 of 4, 8 of 8
// Holds a byte for each slice of each dim, and nothing for each element.
class Spread {
 public:
  explicit Spread(const std::vector<int64_t>& shape)
      : shape_(shape), low_(shape), high_(shape.size(), -1), slices_(shape.size()) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (static_cast<uint64_t>(shape[d]) <= kMaxMarked)
        slices_[d].resize(static_cast<size_t>(shape[d]));
  }

  // In increasing order. Within a row only the last dim's index is new.
  void add(uint64_t flat) {
    if (count_++ == 0) first_ = flat;
    last_ = flat;
    if (flat >= row_end_) {
      const size_t rank = shape_.size();
      const uint64_t row = rank > 0 ? static_cast<uint64_t>(shape_[rank - 1]) : 1;
      row_ = flat / row * row;
      row_end_ = row_ + row;
      uint64_t rest = flat / row;
      for (size_t d = rank; d-- > 0;) {
        if (d + 1 == rank) continue;
        mark(d, static_cast<int64_t>(rest % static_cast<uint64_t>(shape_[d])));
        rest /= static_cast<uint64_t>(shape_[d]);
      }
    }
    if (!shape_.empty()) mark(shape_.size() - 1, static_cast<int64_t>(flat - row_));
  }

  void tell(Difference& difference) const {
    difference.differing = count_;
    if (count_ == 0) return;
    difference.first = index_of(first_, shape_);
    difference.last = index_of(last_, shape_);
    for (const std::vector<char>& slices : slices_)
      difference.slices.push_back(slices.empty() ? -1
                                                 : std::count(slices.begin(), slices.end(), 1));
  }

  uint64_t first() const { return first_; }

  // At least half of a box, or of a run in memory, that is not the whole.
  void explain(uint64_t elements, std::vector<Explanation>& out) const {
    uint64_t volume = 1;
    for (size_t d = 0; d < shape_.size(); ++d)
      volume *= static_cast<uint64_t>(high_[d] - low_[d] + 1);
    Explanation e;
    if (volume < elements && count_ >= volume - volume / 2) {
      e.kind = "block";
      for (size_t d = 0; d < shape_.size(); ++d) {
        e.ranges.emplace_back(low_[d], high_[d]);
        if (high_[d] - low_[d] + 1 == shape_[d]) continue;
        e.text += (e.text.empty() ? "they differ only in " : " and ") + range(low_[d], high_[d]) +
                  " of dim " + std::to_string(d);
      }
    } else if (const uint64_t run = last_ - first_ + 1;
               run < elements && count_ >= run - run / 2 && shape_.size() > 1) {
      e.kind = "run";
      e.ranges.emplace_back(first_, last_);
      e.text = "they differ only in elements " + std::to_string(first_) + " to " +
               std::to_string(last_) + " of memory order";
    } else {
      return;
    }
    if (count_ == 1) e.text = "one element differs";
    out.push_back(e);
  }

 private:
  static std::string range(int64_t low, int64_t high) {
    if (low == high) return "index " + std::to_string(low);
    return "indices " + std::to_string(low) + " to " + std::to_string(high);
  }

  void mark(size_t d, int64_t i) {
    low_[d] = std::min(low_[d], i);
    high_[d] = std::max(high_[d], i);
    if (!slices_[d].empty()) slices_[d][static_cast<size_t>(i)] = 1;
  }

  const std::vector<int64_t>& shape_;
  std::vector<int64_t> low_, high_;
  std::vector<std::vector<char>> slices_;
  uint64_t count_ = 0, first_ = 0, last_ = 0, row_ = 0, row_end_ = 0;
};

void raise(std::optional<double>& most, double value) {
  if (!most || value > *most) most = value;
}

// Of one pair of numbers. NaN and infinity are counted and not measured: a distance to them is
// none.
void measure(const Tensor& a, const Tensor& b, uint64_t bits_a, uint64_t bits_b, double x, double y,
             Difference& d) {
  const bool nan_x = std::isnan(x), nan_y = std::isnan(y);
  d.nan_a += nan_x && !nan_y;
  d.nan_b += nan_y && !nan_x;
  if (nan_x || nan_y) return;
  if (!std::isfinite(x) || !std::isfinite(y)) {
    d.infinite += x != y;
    return;
  }
  const FloatFormat* format = a.dtype->format;
  d.signed_zeros += format && x == 0 && y == 0 && bits_a != bits_b;
  double distance = std::abs(x - y);
  if (a.dtype == b.dtype && format) {
    // Unsigned: ranks of float64 of two signs may be further apart than int64 holds.
    const int64_t from = format->rank(bits_a), to = format->rank(bits_b);
    const uint64_t ulp = from > to ? static_cast<uint64_t>(from) - static_cast<uint64_t>(to)
                                   : static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    if (!d.max_ulp || ulp > *d.max_ulp) d.max_ulp = ulp;
  } else if (a.dtype == b.dtype) {
    distance = static_cast<double>(integer_distance(*a.dtype, bits_a, bits_b));
  }
  raise(d.max_absolute, distance);
  if (const double larger = std::max(std::abs(x), std::abs(y)); larger > 0)
    raise(d.max_relative, distance / larger);
}

// Of one dtype bits decide, else values (equal numbers, or both NaN).
void compare_elements(const Tensor& a, const Tensor& b, Difference& d, Spread& spread) {
  const Elements1D x(a), y(b);
  const bool one_dtype = a.dtype == b.dtype, numbers = a.dtype->numbers() && b.dtype->numbers();
  const uint32_t parts = a.dtype->parts();
  uint64_t bits_a[kBlock], bits_b[kBlock];
  double values_a[kBlock], values_b[kBlock];
  uint64_t marked = ~uint64_t{0};  // an element of two numbers is told once
  for (uint64_t at = 0; at < x.count(); at += kBlock) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kBlock, x.count() - at));
    x.bits(at, n, bits_a);
    y.bits(at, n, bits_b);
    if (one_dtype && std::memcmp(bits_a, bits_b, n * sizeof bits_a[0]) == 0) continue;
    x.values(bits_a, n, values_a);
    y.values(bits_b, n, values_b);
    for (size_t i = 0; i < n; ++i) {
      const double u = values_a[i], v = values_b[i];
      if (one_dtype ? bits_a[i] == bits_b[i] : u == v || (std::isnan(u) && std::isnan(v))) continue;
      const uint64_t element = (at + i) / parts;
      if (element != marked) spread.add(element);
      marked = element;
      if (numbers) measure(a, b, bits_a[i], bits_b[i], u, v, d);
    }
  }
}

// Is one the other, read as its dtype?
void explain_dtypes(const Tensor& a, const Tensor& b, Difference& d) {
  if (d.differing == 0) {
    d.explanations.push_back({"dtype", "every value is the same; only the dtype differs"});
    return;
  }
  // Which was made of which is not known: both ways are asked.
  for (const bool to_b : {true, false}) {
    const Tensor &from = to_b ? a : b, &to = to_b ? b : a;
    if (!from.dtype->format || !to.dtype->format || from.dtype->kind != to.dtype->kind) continue;
    const Elements1D x(from), y(to);
    uint64_t bits[kBlock];
    double u[kBlock], v[kBlock];
    bool all = true;
    for (uint64_t at = 0; at < x.count() && all; at += kBlock) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(kBlock, x.count() - at));
      x.bits(at, n, bits);
      x.values(bits, n, u);
      y.bits(at, n, bits);
      y.values(bits, n, v);
      for (size_t i = 0; i < n && all; ++i) {
        const double cast = rounded(u[i], *to.dtype->format, Rounding::nearest_even);
        all = cast == v[i] || (std::isnan(cast) && std::isnan(v[i]));
      }
    }
    if (!all) continue;
    Explanation e{"cast", std::string(to_b ? "b is a" : "a is b") + " cast to " + to.dtype->name};
    e.through = to.dtype->name;
    e.side = to_b ? "b" : "a";
    d.explanations.push_back(e);
  }
}

}  // namespace

Difference compare_tensors(const Tensor& a, const Tensor& b) {
  Difference d;
  d.name = a.name;
  d.dtype_a = a.dtype->name;
  d.dtype_b = b.dtype->name;
  d.shape_a = a.shape;
  d.shape_b = b.shape;
  d.elements = a.count();
  d.elementwise = a.shape == b.shape;
  const bool one_dtype = a.dtype == b.dtype;
  if (d.elementwise && one_dtype &&
      (d.elements == 0 || std::memcmp(a.data, b.data, a.size_bytes()) == 0)) {
    d.equal = true;
    d.explanations.push_back({"equal", "every bit is the same"});
    return d;
  }
  if (!d.elementwise) {
    if (one_dtype && a.count() == b.count()) explain_places(a, b, d.explanations);
    return d;
  }
  // A complex number beside a real one: no element of one is one of the other.
  if (a.dtype->parts() != b.dtype->parts()) return d;
  Spread spread(a.shape);
  compare_elements(a, b, d, spread);
  spread.tell(d);
  if (d.differing > 0) {
    d.first_a = element_text(a, spread.first());
    d.first_b = element_text(b, spread.first());
  }
  if (!one_dtype) {
    explain_dtypes(a, b, d);
    return d;
  }
  explain_values(a, b, d, d.explanations);
  explain_places(a, b, d.explanations);
  spread.explain(d.elements, d.explanations);
  // What bounds the errors tells least.
  std::stable_partition(d.explanations.begin(), d.explanations.end(),
                        [](const Explanation& e) { return e.kind != "rounding"; });
  return d;
}

bool FileComparison::equal() const {
  return only_a.empty() && only_b.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [](const Difference& d) { return d.equal; });
}

FileComparison compare_files(const SafetensorsFile& a, const SafetensorsFile& b) {
  FileComparison comparison;
  for (const Tensor& tensor : a.tensors()) {
    if (const Tensor* other = b.named(tensor.name))
      comparison.tensors.push_back(compare_tensors(tensor, *other));
    else
      comparison.only_a.push_back(tensor.name);
  }
  for (const Tensor& tensor : b.tensors())
    if (!a.named(tensor.name)) comparison.only_b.push_back(tensor.name);
  return comparison;
}

}  // namespace opguard
