// Products of matrices and vectors.
//
//   mm of [m, k] and [k, n]     m n sums of k products each (Terms::dot)
//   addmm(x, a, b)              beta x + alpha (a b), x broadcast
//   mv(a, x)                    mm with x as one column
//
// The sums of the model get names where they are used further (rank.h). So the terms of a next
// layer are as small as those of the first.
//
// Counterexample: neither the order of the sums nor blocks of a kernel are here. Over the reals
// they are one.
#include <algorithm>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

Results mm(const Call& c) { return just(matrix_product(c.terms(), c.array(0), c.array(1))); }
Results bmm(const Call& c) { return just(batched_product(c.terms(), c.array(0), c.array(1))); }
// beta * the first + alpha * the product.
Results added_to(const Call& c, const Array& product) {
  Terms& t = c.terms();
  const Element beta = t.number(c.number(3, 1, "beta")), alpha = t.number(c.number(4, 1, "alpha"));
  return just(each(c.array(0), product, [&](Element x, Element y) {
    return t.add(t.multiply(x, beta), t.multiply(y, alpha));
  }));
}
Array matrix_by_vector(Terms& t, const Array& a, Array x) {
  x.shape.push_back(1);
  Array y = matrix_product(t, a, x);
  y.shape.pop_back();
  return y;
}
Array outer_product(Terms& t, Array a, Array b) {
  a.shape.push_back(1);
  b.shape.insert(b.shape.begin(), 1);
  return times(t, a, b);
}
Results addmm(const Call& c) {
  return added_to(c, matrix_product(c.terms(), c.array(1), c.array(2)));
}
Results baddbmm(const Call& c) {
  return added_to(c, batched_product(c.terms(), c.array(1), c.array(2)));
}
Results addbmm(const Call& c) {
  Terms& t = c.terms();
  return added_to(c, summed(t, batched_product(t, c.array(1), c.array(2)), {0}, false));
}
Results addmv(const Call& c) {
  return added_to(c, matrix_by_vector(c.terms(), c.array(1), c.array(2)));
}
Results addr(const Call& c) {
  return added_to(c, outer_product(c.terms(), c.array(1), c.array(2)));
}
Results dot(const Call& c) {
  Terms& t = c.terms();
  return just(Array::scalar(total_of(t, times(t, c.array(0), c.array(1)).at)));
}
Results mv(const Call& c) { return just(matrix_by_vector(c.terms(), c.array(0), c.array(1))); }
// Of three along a dimension: entry i is x_j y_k - x_k y_j, with j and k the next two in a circle.
Results cross(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0), b = c.array(1);
  const Shape shapes[] = {a.shape, b.shape};
  const Shape shape = broadcast(shapes);
  const size_t dim = dimension(c.whole(2, -1, "dim"), shape.size());
  if (shape[dim] != 3) throw Unprovable("a cross product of other than three");
  const Array x = broadcast_to(a, shape), y = broadcast_to(b, shape);
  std::vector<Array> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    const Array left = times(t, slice(x, dim, j, j + 1), slice(y, dim, k, k + 1)),
                right = times(t, slice(x, dim, k, k + 1), slice(y, dim, j, j + 1));
    parts.push_back(each(left, right, [&](Element p, Element q) { return t.subtract(p, q); }));
  }
  return just(concatenated(parts, dim));
}
// The sum of three, each with new dimensions of its own, over some of all.
Results trilinear(const Call& c) {
  Terms& t = c.terms();
  std::vector<Array> of;
  for (size_t i = 0; i < 3; ++i) {
    Array a = c.array(i);
    for (int64_t d : c.list(3 + i)) a.shape.insert(a.shape.begin() + d, 1);
    of.push_back(std::move(a));
  }
  c.pass_over(7);  // which of them is unrolled
  const std::vector<int64_t> over = c.list(6);
  const Array all = times(t, times(t, of[0], of[1]), of[2]);
  return just(over.empty() ? all : summed(t, all, over, false));
}

}  // namespace

std::vector<OperatorEntry> product_operators() {
  return {{"mm", mm},         {"bmm", bmm},     {"addmm", addmm},        {"baddbmm", baddbmm},
          {"addbmm", addbmm}, {"addmv", addmv}, {"addr", addr},          {"dot", dot},
          {"vdot", dot},      {"mv", mv},       {"linalg_cross", cross}, {"_trilinear", trilinear}};
}

}  // namespace opguard::proving
