// Look-ups and what is put at places, by known indices or by tokens.
//
//   w[i], i constant 2         w2: the element itself
//   w[i], i a token below 3    w2 + [i = 0] (w0 - w2) + [i = 1] (w1 - w2)
//   w[i] = v                   each place n: [i = n] v + (1 - [i = n]) w_n
//
// So a look-up is proved for all values of a token, a vocabulary's mask with it. An index that is
// computed from reals is Unprovable, but for one from an order (operators_ordering.cc), which is a
// table as well.
//
// Counterexample: a mask whose truths are not known does not say how many elements there are. It is
// taken only where one number is put, which is a choice at each place.
//
// The cost: an element that a token picks out of n rows has parts of each of the n.
#include <algorithm>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// rows[index] of the rows of a matrix, for each index: [..., columns].
Array looked_up(Terms& t, const Array& rows, const Array& index) {
  const int64_t columns =
      rows.shape[0] == 0 ? 0 : static_cast<int64_t>(rows.at.size()) / rows.shape[0];
  Array result{index.shape, {}};
  result.shape.insert(result.shape.end(), rows.shape.begin() + 1, rows.shape.end());
  for (Element i : index.at) {
    const auto known = known_index(t, i, rows.shape[0]);
    for (int64_t column = 0; column < columns; ++column)
      result.at.push_back(known ? rows.at[static_cast<size_t>(*known * columns + column)]
                                : t.look_up(i, [&](int64_t v) {
                                    if (v < 0) v += rows.shape[0];
                                    if (v < 0 || v >= rows.shape[0])
                                      throw Unprovable("an index outside its dimension");
                                    return rows.at[static_cast<size_t>(v * columns + column)];
                                  }));
  }
  return result;
}
Results embedding(const Call& c) {
  for (size_t i : {2, 3, 4}) c.pass_over(i);  // of gradients
  return just(looked_up(c.terms(), c.array(0), c.array(1)));
}
// Row r gets the sum of g[i] * [index[i] = r]. The row of padding gets nothing.
Results embedding_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), index = c.array(1);
  const int64_t rows = c.whole(2, 0), padding = c.whole(3, -1);
  if (c.flag(4, false)) throw Unprovable("gradients scaled by how often a row is used");
  const int64_t columns = static_cast<int64_t>(g.at.size() / std::max<size_t>(index.at.size(), 1));
  for (Element i : index.at) require_within(t, i, 0, rows);
  Array result{{rows, columns}, {}};
  std::vector<Element> parts;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<std::pair<size_t, Element>> hits;
    for (size_t i = 0; i < index.at.size() && r != padding; ++i)
      if (const Element hit = is_value(t, index.at[i], r); hit != t.zero())
        hits.emplace_back(i, hit);
    for (int64_t column = 0; column < columns; ++column) {
      parts.clear();
      for (const auto& [i, hit] : hits) {
        const Element e = g.at[i * static_cast<size_t>(columns) + static_cast<size_t>(column)];
        parts.push_back(hit == t.one() ? e : t.where(hit, e, t.zero()));
      }
      result.at.push_back(parts.empty() ? t.zero() : t.sum(parts));
    }
  }
  return just(result);
}
// Look-ups are by the first dimension: dim goes there and back.
Results index_select(const Call& c) {
  const Array a = c.array(0), index = c.array(2);
  const size_t dim = dimension(c.whole(1, 0), a.dims());
  const std::vector<size_t> order = swapped(a.dims(), dim, true);
  return just(permuted(looked_up(c.terms(), permuted(a, order), index), order));
}

// Where an index of several tensors points to: element n is at index[k][n] along dims[k], for each
// k.
struct Places {
  std::vector<size_t> dims;  // those that are indexed
  std::vector<Array> index;  // one each, of the common shape
  Shape shape;               // the common one
};
bool is_mask(const Tensor& t) { return t.dtype == "bool" || t.dtype == "uint8"; }
// A mask stands for the places where it holds, an index for each of its dimensions.
void add_places_of_mask(Terms& t, const Array& mask, size_t dim, Places& found) {
  std::vector<Array> index(mask.dims(), Array{{0}, {}});
  const std::vector<int64_t> steps = steps_of(mask.shape);
  for (size_t n = 0; n < mask.at.size(); ++n) {
    const auto holds = t.constant(mask.at[n]);
    if (!holds) throw Unprovable("the number of elements depends on values");
    for (size_t d = 0; d < mask.dims() && !holds->zero(); ++d) {
      index[d].at.push_back(
          t.rational(static_cast<int64_t>(n) / steps[d] % std::max<int64_t>(mask.shape[d], 1)));
      ++index[d].shape[0];
    }
  }
  for (size_t d = 0; d < mask.dims(); ++d) {
    found.dims.push_back(dim + d);
    found.index.push_back(std::move(index[d]));
  }
}
// Each entry of the list is for a dimension: null leaves it whole, a mask is for as many as it has.
//   a[:, mask, i]     null, a mask of two dimensions, i: dims 1, 2 by the mask, 3 by i
Places places_of(const Call& c, size_t argument) {
  Places found;
  size_t dim = 0;
  for (const auto& entry : c.argument(argument)) {
    if (entry.is_null()) {
      ++dim;
      continue;
    }
    const Tensor tensor = tensor_of(entry);
    const Array index = c.rank().read(tensor);
    if (is_mask(tensor)) {
      add_places_of_mask(c.terms(), index, dim, found);
      dim += index.dims();
    } else {
      found.dims.push_back(dim++);
      found.index.push_back(index);
    }
  }
  std::vector<Shape> shapes;
  for (const Array& a : found.index) shapes.push_back(a.shape);
  found.shape = broadcast(shapes);
  for (Array& a : found.index) a = broadcast_to(a, found.shape);
  return found;
}
// A lone mask that is not known.
bool by_truth(const Call& c, size_t argument) {
  const auto& list = c.argument(argument);
  if (list.size() != 1 || !is_tensor(list[0]) || !is_mask(tensor_of(list[0]))) return false;
  const Array mask = c.rank().read(tensor_of(list[0]));
  return std::any_of(mask.at.begin(), mask.at.end(),
                     [&](Element e) { return !c.terms().constant(e); });
}

// An index that counts from the end where it is negative.
Element from_begin(Terms& t, Element index, int64_t size) {
  require_within(t, index, -size, size);
  const Element only[] = {index};
  return mapped_or(
      t, only,
      [size](std::span<const Rational> v) {
        return v[0].numerator() < 0 ? v[0] + Rational(size) : v[0];
      },
      "an index is computed from values");
}

// Constant indices are added up to a row, the rest to an element `open`. So each element takes one
// look-up, by several tokens too.
Results index(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0);
  if (by_truth(c, 1)) throw Unprovable("the number of elements depends on values");
  const Places p = places_of(c, 1);
  // The indexed dimensions first, then the rest; the result's order as numpy's.
  std::vector<size_t> order = p.dims, rest;
  for (size_t d = 0; d < a.dims(); ++d)
    if (std::find(p.dims.begin(), p.dims.end(), d) == p.dims.end()) rest.push_back(d);
  order.insert(order.end(), rest.begin(), rest.end());
  const Array first = permuted(a, order);
  int64_t inner = 1;
  for (size_t d : rest) inner *= a.shape[d];
  Array result;
  result.shape = p.shape;
  for (size_t d : rest) result.shape.push_back(a.shape[d]);
  for (int64_t n = 0; n < size_of(p.shape); ++n) {
    int64_t row = 0;
    Element open = t.zero();  // what depends on tokens
    int64_t stride = 1;
    for (size_t k = p.dims.size(); k-- > 0; stride *= a.shape[p.dims[k]]) {
      const Element at = p.index[k].at[static_cast<size_t>(n)];
      if (const auto known = known_index(t, at, a.shape[p.dims[k]]))
        row += *known * stride;
      else
        open = t.add(open, t.scaled(from_begin(t, at, a.shape[p.dims[k]]), Rational(stride)));
    }
    for (int64_t i = 0; i < inner; ++i)
      result.at.push_back(t.look_up(open, [&](int64_t v) {
        return first.at.at(static_cast<size_t>((row + v) * inner + i));
      }));
  }
  // Neighbouring indices stay where they were.
  const bool together = p.dims.empty() || p.dims.back() - p.dims.front() + 1 == p.dims.size();
  if (!together || p.dims.empty() || p.dims.front() == 0) return just(result);
  std::vector<size_t> back;
  const size_t before = p.dims.front(), width = p.shape.size();
  for (size_t d = 0; d < before; ++d) back.push_back(width + d);
  for (size_t d = 0; d < width; ++d) back.push_back(d);
  for (size_t d = before; d < rest.size(); ++d) back.push_back(width + d);
  return just(permuted(result, back));
}

// In order: where two indices may be one place, the later one counts, or both do with accumulate.
// Of a token each place that it may mean is written, as a choice between the new and the old.
Results index_put(const Call& c) {
  Terms& t = c.terms();
  const Array values = c.array(2);
  const bool adds = c.flag(3, false, "accumulate");
  Array a = adds || by_truth(c, 1) ? c.array(0) : c.array_to_put_over(0);
  c.pass_over(4, "unsafe");
  if (by_truth(c, 1)) {
    Array mask = c.rank().read(tensor_of(c.argument(1)[0]));
    while (mask.dims() < a.dims()) mask.shape.push_back(1);
    if (values.at.size() != 1) throw Unprovable("the number of elements depends on values");
    const Array all[] = {a, mask, values};
    return just(each(all, [&](std::span<const Element> x) {
      return chosen(t, x[1], adds ? t.add(x[0], x[2]) : x[2], x[0]);
    }));
  }
  const Places p = places_of(c, 1);
  std::vector<size_t> order = p.dims, rest;
  for (size_t d = 0; d < a.dims(); ++d)
    if (std::find(p.dims.begin(), p.dims.end(), d) == p.dims.end()) rest.push_back(d);
  order.insert(order.end(), rest.begin(), rest.end());
  Array first = permuted(a, order);
  int64_t inner = 1;
  for (size_t d : rest) inner *= a.shape[d];
  // Neighbouring indices behind other dimensions: the values have those first.
  const bool together = !p.dims.empty() && p.dims.back() - p.dims.front() + 1 == p.dims.size();
  const size_t before = together ? p.dims.front() : 0, width = p.shape.size();
  Shape as_given;
  for (size_t i = 0; i < before; ++i) as_given.push_back(a.shape[rest[i]]);
  as_given.insert(as_given.end(), p.shape.begin(), p.shape.end());
  for (size_t i = before; i < rest.size(); ++i) as_given.push_back(a.shape[rest[i]]);
  std::vector<size_t> turn;
  for (size_t i = 0; i < width; ++i) turn.push_back(before + i);
  for (size_t i = 0; i < before; ++i) turn.push_back(i);
  for (size_t i = before; i < rest.size(); ++i) turn.push_back(width + i);
  const Array given = permuted(broadcast_to(values, as_given), turn);
  const auto kept = [&](Element at) {
    if (at == Rank::kUnwritten)
      throw Unprovable(c.node().op + " leaves memory that nobody wrote, for some tokens");
    return at;
  };
  for (int64_t n = 0; n < size_of(p.shape); ++n) {
    // Every place that it may be, with the condition that it is.
    std::vector<std::pair<int64_t, Element>> rows = {{0, t.one()}};
    for (size_t k = 0; k < p.dims.size(); ++k) {
      const int64_t size = a.shape[p.dims[k]];
      const Element i = p.index[k].at[static_cast<size_t>(n)];
      std::vector<std::pair<int64_t, Element>> next;
      const auto known = known_index(t, i, size);
      if (!known) require_within(t, i, -size, size);
      for (const auto& [row, condition] : rows)
        for (int64_t v = known.value_or(0); v < (known ? *known + 1 : size); ++v) {
          // Counted from the end too.
          const Element hit = known ? t.one() : t.add(is_value(t, i, v), is_value(t, i, v - size));
          if (hit == t.zero()) continue;
          next.emplace_back(row * size + v, t.multiply(condition, hit));
        }
      rows = std::move(next);
    }
    for (const auto& [row, condition] : rows)
      for (int64_t i = 0; i < inner; ++i) {
        Element& at = first.at[static_cast<size_t>(row * inner + i)];
        const Element value = given.at[static_cast<size_t>(n * inner + i)];
        const Element put = adds ? t.add(at, value) : value;
        at = condition == t.one() ? put : t.where(condition, put, kept(at));
      }
  }
  std::vector<size_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  return just(permuted(first, back));
}

// out[.., n, ..] = a[.., index[.., n, ..], ..] along dim: each place of index looks into its own
// row.
Results gather(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0), index_ = c.array(2);
  c.pass_over(9, "sparse_grad");
  const size_t dim = dimension(c.whole(1, 0), a.dims());
  if (a.dims() == 0) return just(broadcast_to(a, index_.shape));
  // Cut to what the index covers, but for dim.
  Array cut = a;
  for (size_t d = 0; d < a.dims(); ++d)
    if (d != dim) cut = slice(cut, d, 0, index_.shape[d]);
  const std::vector<size_t> order = swapped(a.dims(), dim, false);
  const Array rows = permuted(cut, order), where = permuted(index_, order);
  const int64_t length = rows.shape.back(), count = where.shape.back();
  Array result{where.shape, {}};
  for (size_t n = 0; n < where.at.size(); ++n) {
    const size_t row = n / static_cast<size_t>(count) * static_cast<size_t>(length);
    const auto known = known_index(t, where.at[n], length);
    result.at.push_back(known ? rows.at[row + static_cast<size_t>(*known)]
                              : t.look_up(where.at[n], [&](int64_t v) {
                                  if (v < 0 || v >= length)
                                    throw Unprovable("an index outside its dimension");
                                  return rows.at[row + static_cast<size_t>(v)];
                                }));
  }
  return just(permuted(result, order));
}
// By places in the whole, row by row.
Results taken(const Call& c) {
  Array a = c.array(0);
  a.shape = {static_cast<int64_t>(a.at.size())};
  return just(looked_up(c.terms(), a, c.array(1)));
}

}  // namespace

std::vector<OperatorEntry> indexing_operators() {
  return {{"embedding", embedding},
          {"embedding_dense_backward", embedding_backward},
          {"index_select", index_select},
          {"index", index},
          {"_unsafe_index", index},
          {"index_put", index_put},
          {"_index_put_impl_", index_put},
          {"_unsafe_index_put", index_put},
          {"gather", gather},
          {"take", taken}};
}

}  // namespace opguard::proving
