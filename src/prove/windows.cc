#include "prove/windows.h"

#include "prove/meanings.h"

namespace opguard::proving {

int64_t flat_in(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t n = 0;
  for (size_t d = 0; d < shape.size(); ++d) n = n * shape[d] + at[d];
  return n;
}

std::vector<int64_t> spread(std::vector<int64_t> given, size_t dims) {
  if (given.size() == 1) given.resize(dims, given[0]);
  if (given.size() != dims) throw Unprovable("sizes of another number of dimensions");
  return given;
}

bool Window::lies(const std::vector<int64_t>& small, const std::vector<int64_t>& k,
                  const Shape& large, std::vector<int64_t>& at) const {
  for (size_t d = 0; d < small.size(); ++d) {
    at[d] = small[d] * stride[d] - padding[d] + k[d] * dilation[d];
    if (at[d] < 0 || at[d] >= large[d]) return false;
  }
  return true;
}

namespace {

using Shares = std::vector<std::vector<std::pair<int64_t, Rational>>>;

// Along dim: element i of the result is the sum of share * element over rows[i].
Array mixed_by(Terms& t, const Array& a, size_t dim, const Shares& rows) {
  const std::vector<size_t> order = swapped(a.dims(), dim, false);
  const Array last = permuted(a, order);
  const auto from = static_cast<size_t>(last.shape.back());
  Array result{last.shape, {}};
  result.shape.back() = static_cast<int64_t>(rows.size());
  const size_t count = from == 0 ? 0 : last.at.size() / from;
  std::vector<Element> parts;
  for (size_t n = 0; n < count; ++n)
    for (const auto& row : rows) {
      parts.clear();
      for (const auto& [place, share] : row)
        parts.push_back(t.scaled(last.at.at(n * from + static_cast<size_t>(place)), share));
      result.at.push_back(total_of(t, parts));
    }
  return permuted(result, order);
}

}  // namespace

Array mixed(Terms& t, const Array& a, size_t dim, const Mix& mix) {
  if (a.shape.at(dim) != mix.from) throw Unprovable("sizes do not fit");
  return mixed_by(t, a, dim, mix.rows);
}

// Where place went into row with a share, row's gradient goes to place with it.
Array mixed_back(Terms& t, const Array& g, size_t dim, const Mix& mix) {
  if (g.shape.at(dim) != static_cast<int64_t>(mix.rows.size()))
    throw Unprovable("sizes do not fit");
  Shares turned(static_cast<size_t>(mix.from));
  for (size_t row = 0; row < mix.rows.size(); ++row)
    for (const auto& [place, share] : mix.rows[row])
      turned.at(static_cast<size_t>(place)).emplace_back(static_cast<int64_t>(row), share);
  return mixed_by(t, g, dim, turned);
}

Array mixed_all(Terms& t, Array a, const std::vector<Mix>& mixes, bool back) {
  for (size_t i = 0; i < mixes.size(); ++i) {
    const size_t dim = a.dims() - mixes.size() + i;
    a = back ? mixed_back(t, a, dim, mixes[i]) : mixed(t, a, dim, mixes[i]);
  }
  return a;
}

}  // namespace opguard::proving
