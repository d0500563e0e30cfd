// What is put, added or otherwise combined at places along a dimension: by constants or by tokens.
//
//   scatter_add([a b c], index [2, 2], [x y])      a b c+x+y
//   scatter([a b c], index [i], [x]), token i      place n: x where i is n, else what was there
//
// Moves are done in order, so a later one sees what an earlier one has left. By a token each place
// that it may mean is written, as a choice.
//
// Counterexample: a mean, or a combination without what was there, counts how many came to a place.
// By a token that number is not known, and it is Unprovable.
//
// The cost: a move by a token is one choice for each place of its row.
#include <algorithm>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

enum class Combine { put, sum, product, mean, greatest, least };

Combine combining(const std::string& name) {
  if (name == "add" || name == "sum") return Combine::sum;
  if (name == "multiply" || name == "prod") return Combine::product;
  if (name == "mean") return Combine::mean;
  if (name == "amax") return Combine::greatest;
  if (name == "amin") return Combine::least;
  throw Unprovable("a reduction by " + name);
}
Element combined_with(Terms& t, Combine how, Element at, Element value) {
  switch (how) {
    case Combine::put:
      return value;
    case Combine::product:
      return t.multiply(at, value);
    case Combine::greatest:
      return greatest_of(t, at, value);
    case Combine::least:
      return least(t, at, value);
    default:
      return t.add(at, value);
  }
}

// One element that goes somewhere along a row of `length` places that are `step` apart. The row
// begins at place `row` of the whole array.
struct Move {
  size_t row;
  Element index, value;
};
struct Target {
  int64_t length, step;
};
// Applies the moves in order. with_self: what was there takes part. Else the first move to a place
// replaces it, and places that none comes to stay as they are.
void apply_moves(Terms& t, Array& to, const Target& target, const std::vector<Move>& moves,
                 Combine how, bool with_self) {
  const bool one_by_one = how != Combine::mean && with_self;
  std::vector<int64_t> counts(to.at.size(), with_self ? 1 : 0);
  for (const Move& move : moves) {
    const auto known = known_index(t, move.index, target.length);
    if (!known && !one_by_one) throw Unprovable("a reduction at a place that is not known");
    if (!known) require_within(t, move.index, 0, target.length);
    for (int64_t v = known.value_or(0); v < (known ? *known + 1 : target.length); ++v) {
      const Element hit = known ? t.one() : is_value(t, move.index, v);
      if (hit == t.zero()) continue;
      const size_t place = move.row + static_cast<size_t>(v * target.step);
      Element& at = to.at.at(place);
      const bool first = counts[place]++ == 0;
      if (at == Rank::kUnwritten && (how != Combine::put || hit != t.one()))
        throw Unprovable("an element is put beside memory that nobody wrote");
      at = hit == t.one() && how == Combine::put
               ? move.value
               : t.where(hit, first ? move.value : combined_with(t, how, at, move.value), at);
    }
  }
  if (how != Combine::mean) return;
  for (size_t n = 0; n < to.at.size(); ++n)
    if (counts[n] > 1) to.at[n] = t.scaled(to.at[n], Rational(1, counts[n]));
}

// Each element of source goes where index says along dim, in its own row of `a`.
Results scattered(const Call& c, const Array& source, Combine how, bool with_self) {
  Terms& t = c.terms();
  Array a = how == Combine::put ? c.array_to_put_over(0) : c.array(0);
  Array index = c.array(2);
  const Shape shape = a.shape;
  const size_t dim = dimension(c.whole(1, 0), a.dims());
  if (a.dims() == 0) a.shape = {1};
  if (index.dims() == 0) index.shape = {1};
  Array values = source;
  if (values.dims() == 0 && values.at.size() == 1) values = broadcast_to(values, index.shape);
  for (size_t d = 0; d < values.dims(); ++d) values = slice(values, d, 0, index.shape.at(d));
  const std::vector<int64_t> steps = steps_of(a.shape), of_index = steps_of(index.shape);
  std::vector<Move> moves;
  for (size_t n = 0; n < index.at.size(); ++n) {
    int64_t row = 0;
    for (size_t d = 0; d < a.dims(); ++d)
      if (d != dim) row += static_cast<int64_t>(n) / of_index[d] % index.shape[d] * steps[d];
    moves.push_back({static_cast<size_t>(row), index.at[n], values.at.at(n)});
  }
  apply_moves(t, a, {a.shape[dim], steps[dim]}, moves, how, with_self);
  a.shape = shape;
  return just(a);
}
Results scatter(const Call& c) {
  const std::string how = c.text(9, "", "reduce");
  return scattered(c, c.array(3, "value"), how.empty() ? Combine::put : combining(how), true);
}
Results scatter_add(const Call& c) { return scattered(c, c.array(3), Combine::sum, true); }
Results scatter_reduce(const Call& c) {
  return scattered(c, c.array(3), combining(c.text(4, "", "reduce")),
                   c.flag(9, true, "include_self"));
}

// Row n of the source goes to row index[n] along dim.
Results rows_moved(const Call& c, const Array& source, Combine how, bool with_self) {
  Terms& t = c.terms();
  Array a = how == Combine::put ? c.array_to_put_over(0) : c.array(0);
  const Array index = c.array(2);
  const Shape shape = a.shape;
  const size_t dim = dimension(c.whole(1, 0), a.dims());
  if (a.dims() == 0) a.shape = {1};
  Shape part = a.shape;
  part[dim] = static_cast<int64_t>(index.at.size());
  const Array values = source.at.size() == static_cast<size_t>(size_of(part))
                           ? reshaped(source, part)
                           : broadcast_to(source, part);
  const std::vector<int64_t> steps = steps_of(a.shape), of_part = steps_of(part);
  std::vector<Move> moves;
  for (size_t n = 0; n < values.at.size(); ++n) {
    int64_t row = 0;
    for (size_t d = 0; d < part.size(); ++d)
      if (d != dim) row += static_cast<int64_t>(n) / of_part[d] % part[d] * steps[d];
    const int64_t which = static_cast<int64_t>(n) / of_part[dim] % part[dim];
    moves.push_back({static_cast<size_t>(row), index.at[static_cast<size_t>(which)], values.at[n]});
  }
  apply_moves(t, a, {a.shape[dim], steps[dim]}, moves, how, with_self);
  a.shape = shape;
  return just(a);
}
Results index_add(const Call& c) {
  Terms& t = c.terms();
  const Element alpha = t.number(c.number(4, 1, "alpha"));
  return rows_moved(c, each(c.array(3), [&](Element e) { return t.multiply(e, alpha); }),
                    Combine::sum, true);
}
Results index_copy(const Call& c) { return rows_moved(c, c.array(3), Combine::put, true); }
Results index_fill(const Call& c) { return rows_moved(c, c.array(3), Combine::put, true); }
Results index_reduce(const Call& c) {
  return rows_moved(c, c.array(3), combining(c.text(4, "", "reduce")),
                    c.flag(9, true, "include_self"));
}
// By places in the whole, row by row: the array is one row.
Results put_anywhere(const Call& c) {
  Array a = c.array(0);
  const Array index = c.array(1), source = c.array(2);
  std::vector<Move> moves;
  for (size_t n = 0; n < index.at.size(); ++n) moves.push_back({0, index.at[n], source.at.at(n)});
  apply_moves(c.terms(), a, {static_cast<int64_t>(a.at.size()), 1}, moves,
              c.flag(3, false) ? Combine::sum : Combine::put, true);
  return just(a);
}

// ---- By masks, which have to be known: they say how many elements there are

bool holds_at(Terms& t, Element mask) {
  const auto known = t.constant(mask);
  if (!known) throw Unprovable("the number of elements depends on values");
  return !known->zero();
}
// Where the mask holds, the source's elements one after another.
// Where the mask holds, the source's elements one after another.
Results masked_scatter(const Call& c) {
  Terms& t = c.terms();
  Array a = c.array(0);
  const Array mask = broadcast_to(c.array(1), a.shape), source = c.array(2);
  size_t next = 0;
  for (size_t n = 0; n < a.at.size(); ++n)
    if (holds_at(t, mask.at[n])) a.at[n] = source.at.at(next++);
  return just(a);
}
Results masked_select(const Call& c) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1)};
  const Shape shapes[] = {all[0].shape, all[1].shape};
  const Shape shape = broadcast(shapes);
  const Array a = broadcast_to(all[0], shape), mask = broadcast_to(all[1], shape);
  Array result{{0}, {}};
  for (size_t n = 0; n < a.at.size(); ++n)
    if (holds_at(t, mask.at[n])) result.at.push_back(a.at[n]);
  result.shape[0] = static_cast<int64_t>(result.at.size());
  return just(result);
}
// The number of each row so many times, which has to be known: 2 0 1 gives 0 0 2.
Results repeat_interleave(const Call& c) {
  Terms& t = c.terms();
  c.pass_over(1, "output_size");
  const Array times_ = c.array(0);
  Array result{{0}, {}};
  for (size_t n = 0; n < times_.at.size(); ++n) {
    const auto count = t.constant(times_.at[n]);
    if (!count) throw Unprovable("the number of elements depends on values");
    for (int64_t k = 0; k < count->numerator(); ++k)
      result.at.push_back(t.rational(static_cast<int64_t>(n)));
  }
  result.shape[0] = static_cast<int64_t>(result.at.size());
  return just(result);
}

}  // namespace

std::vector<OperatorEntry> scattering_operators() {
  return {{"scatter", scatter},
          {"scatter_add", scatter_add},
          {"scatter_reduce", scatter_reduce},
          {"index_add", index_add},
          {"index_copy", index_copy},
          {"index_fill", index_fill},
          {"index_reduce", index_reduce},
          {"put", put_anywhere},
          {"masked_scatter", masked_scatter},
          {"masked_select", masked_select},
          {"repeat_interleave", repeat_interleave}};
}

}  // namespace opguard::proving
