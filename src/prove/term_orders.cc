// How reals lie in order, where nobody knows them: an unknown with a value for each arrangement.
//
//   the two greatest of a, b, c: 0 stands for a before b, 1 for a before c, 2 for b before a, ...
//
// So what depends on an order is a table, as what depends on a token is. One row has one unknown.
// Its exponentials share it, and so does a positive multiple: a router's logits and their soft
// maximum have one order.
//
// Counterexample: the order of {a, b} and that of {a, b, c} are two unknowns. That the first
// follows from the second is not known, which may lose a proof.
//
// The cost: n! / (n - count)! values for a row of n, and each table over it has as many parts.
// Beyond kMostArrangements it is Unprovable.
#include <algorithm>
#include <numeric>

#include "prove/terms.h"

namespace opguard::proving {

// The value's digits, in a base that shrinks by one at each place (a factorial number). Each digit
// says which of the places that are left is next.
std::vector<size_t> Terms::arrangement(size_t value, size_t length, size_t count) {
  std::vector<size_t> left(length), places;
  std::iota(left.begin(), left.end(), size_t{0});
  size_t values = 1;
  for (size_t i = 1; i < count; ++i) values *= length - i;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = value / values;
    value %= values;
    if (i + 1 < count) values /= length - i - 1;
    places.push_back(left[at]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return places;
}

// A row in the same order, as bare as may be: without positive factors that all have, and of
// exponentials what they are of.
//   {2 exp(a) / s, 2 exp(b) / s}, s positive     {exp(a), exp(b)}, then {a, b}
// Both steps keep the order: a positive factor, and a function that rises.
std::vector<Element> Terms::ordered_as(std::span<const Element> row) {
  std::vector<Element> bare(row.begin(), row.end());
  for (int round = 0; round < 4; ++round) {
    std::vector<Product> products;
    for (Element e : bare) products.push_back(product(e));
    Parts parts;
    for (const Product& p : products) parts.push_back({p.monomial, p.factor});
    Factors outside = shared(parts);
    std::erase_if(outside, [&](const Factor& f) {
      return sign_of_atom(atoms_[f.atom], kSignDepth) != Sign::positive;
    });
    for (Factor& f : outside) f.exponent = -f.exponent;
    Rational largest(1);
    for (size_t i = 0; i < products.size(); ++i) {
      const Rational c = products[i].factor, size = c.numerator() < 0 ? -c : c;
      if (i == 0 || (size - largest).numerator() > 0) largest = size;
    }
    if (largest.zero()) return bare;
    const Element by = of_product({Rational(1) / largest, intern(outside)});
    bool exponentials = true;
    for (Element& e : bare) {
      e = multiply(e, by);
      const Product p = product(e);
      const FactorList factors = monomials_[p.monomial];
      exponentials &= p.factor == Rational(1) &&
                      std::all_of(factors.begin(), factors.end(), [&](const Factor& f) {
                        return atoms_[f.atom].kind == AtomKind::exp;
                      });
    }
    if (!exponentials) return bare;
    for (Element& e : bare) e = log(e);
  }
  return bare;
}

// The unknown belongs to the row sorted by ids, so that a permuted row meets it. by_id turns its
// places back into those of the row that was given.
std::vector<Element> Terms::places_in_order(std::span<const Element> row, size_t count) {
  if (std::find(row.begin(), row.end(), minus_infinity_) != row.end())
    throw Unprovable("an order of infinities");
  // Of all but the last the last is known.
  count = std::min(count, row.size());
  const size_t all = count + 1 == row.size() ? row.size() : count;
  size_t size = 1;
  for (size_t i = 0; i < all; ++i) {
    size *= row.size() - i;
    if (size > kMostArrangements)
      throw Unprovable("an order of values that may lie in more than " +
                       std::to_string(kMostArrangements) + " ways");
  }
  has_orders_ = true;
  if (row.size() < 2) return std::vector<Element>(count, zero_);
  // However the row is permuted, it has one unknown.
  const std::vector<Element> bare = ordered_as(row);
  std::vector<size_t> by_id(row.size());
  std::iota(by_id.begin(), by_id.end(), size_t{0});
  std::sort(by_id.begin(), by_id.end(), [&](size_t i, size_t j) { return bare[i] < bare[j]; });
  std::vector<Element> sorted;
  for (size_t i : by_id) sorted.push_back(bare[i]);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Unprovable("which of two equal values comes first is not said");
  const auto [at, fresh] =
      order_of_.try_emplace({sorted, all}, static_cast<uint32_t>(tokens_.size()));
  if (fresh)
    tokens_.push_back({"an order", at->second, static_cast<uint32_t>(size), {sorted, all}});
  std::vector<Element> places;
  for (size_t i = 0; i < count; ++i)
    places.push_back(by_cases(at->second, [&](uint32_t v) {
      return rational(static_cast<int64_t>(by_id[arrangement(v, row.size(), all)[i]]));
    }));
  return places;
}

}  // namespace opguard::proving
