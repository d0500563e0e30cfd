// Conditions on reals as numbers: [x > 0] is 1 or 0. All comparing goes through that one function.
//
//   x < y    step(y - x)             relu(x)   x step(x)
//   x <= y   1 - step(x - y)         x == y    (1 - step(x - y)) (1 - step(y - x))
//
// step(c m) drops what is positive of the product c m, so that step(2 x / sqrt(y)) is step(x).
// Counterexample: step(-x) is not 1 - step(x), which differs at 0.
#include <algorithm>

#include "prove/terms.h"

namespace opguard::proving {

bool Terms::is_step(const AtomValue& atom) {
  return atom.kind == AtomKind::function && atom.first == static_cast<uint32_t>(Function::step);
}

// Roots, and what a logarithm is taken of, are positive by assumption; an even power is no less
// than zero whatever its base.
Terms::Sign Terms::sign_of(Element e, int depth) const {
  if (e == zero_) return Sign::not_negative;
  Sign found = Sign::not_negative;
  for (const Part& p : elements_[e]) {
    if (p.factor.numerator() < 0) return Sign::unknown;
    Sign product = Sign::positive;
    for (const Factor& f : monomials_[p.monomial]) {
      const Sign atom = sign_of_atom(atoms_[f.atom], depth);
      if (atom == Sign::positive) continue;
      if (atom == Sign::unknown && f.exponent % 2 != 0) return Sign::unknown;
      if (f.exponent > 0) product = Sign::not_negative;
    }
    if (product == Sign::positive) found = Sign::positive;
  }
  return found;
}

// A variable is unknown. A named sum is looked into, to a depth: without it the sign of a late
// layer would walk through all layers before.
Terms::Sign Terms::sign_of_atom(const AtomValue& atom, int depth) const {
  switch (atom.kind) {
    case AtomKind::exp:
    case AtomKind::root:
    case AtomKind::number:
      return Sign::positive;
    case AtomKind::indicator:
      return Sign::not_negative;
    case AtomKind::sum:
      return depth > 0 ? sign_of(atom.of, depth - 1) : Sign::unknown;
    case AtomKind::function:
      return is_step(atom) || atom.first == static_cast<uint32_t>(Function::absolute)
                 ? Sign::not_negative
                 : Sign::unknown;
    default:
      return Sign::unknown;
  }
}

// The element is the product of what is kept, of its sign, and of what is positive. Conditions
// (steps and indicators) stand outside: [c x > 0] = c [x > 0] for a c that is 0 or 1.
Terms::Bare Terms::bare(Element e) {
  const Product p = product(e);
  Factors kept, conditions;
  const FactorList factors = monomials_[p.monomial];
  for (const Factor& f : factors) {
    const AtomValue& atom = atoms_[f.atom];
    if (f.exponent > 0 && (is_step(atom) || atom.kind == AtomKind::indicator))
      conditions.push_back({f.atom, 1});
    else if (sign_of_atom(atom, kSignDepth) != Sign::positive)
      kept.push_back({f.atom, f.exponent % 2 != 0 ? 1 : 2});
  }
  return {p.factor.numerator() < 0 ? -1
          : p.factor.zero()        ? 0
                                   : 1,
          intern(kept), of_product({1, intern(conditions)})};
}

// What is decided needs no atom: constants, tables, what has one sign. Of the rest only the sign of
// the coefficient, the conditions and what may be negative are kept.
//   step(-2 x exp(y))     step(-x)
//   step([t = 1] x)       [t = 1] step(x)
Element Terms::step(Element e) {
  if (e == minus_infinity_) return zero_;
  if (const auto n = constant(e)) return n->numerator() > 0 ? one_ : zero_;
  const Element only[] = {e};
  if (is_table(e))
    if (const auto mapped =
            map([](std::span<const Rational> v) { return Rational(v[0].numerator() > 0); }, only))
      return *mapped;
  if (sign_of(e, kSignDepth) == Sign::positive) return one_;
  if (sign_of(scaled(e, Rational(-1)), kSignDepth) != Sign::unknown) return zero_;
  const Bare b = bare(e);
  const Element rest = of_product({b.sign, b.monomial});
  if (const auto n = constant(rest))
    return multiply(b.conditions, n->numerator() > 0 ? one_ : zero_);
  return multiply(b.conditions, function(Function::step, {rest}));
}

// A product with a step, as its gradient g step(x) is one: the two share the step's atom.
Element Terms::relu(Element e) {
  if (e == minus_infinity_) return zero_;
  if (sign_of(e) != Sign::unknown) return e;
  return multiply(e, step(e));
}

Element Terms::absolute(Element e) {
  if (const auto n = constant(e)) return rational(n->numerator() < 0 ? -*n : *n);
  if (sign_of(e, kSignDepth) != Sign::unknown) return e;
  const Element only[] = {e};
  if (is_table(e))
    if (const auto mapped = map(
            [](std::span<const Rational> v) { return v[0].numerator() < 0 ? -v[0] : v[0]; }, only))
      return *mapped;
  if (e == minus_infinity_) throw Unprovable("the magnitude of infinity");
  // |c x| = |c| |x|; -x and x have one.
  const Product p = product(e);
  const Rational c = p.factor.numerator() < 0 ? -p.factor : p.factor;
  const Element inside = of_product({1, p.monomial});
  if (sign_of(inside, kSignDepth) != Sign::unknown) return scaled(inside, c);
  return scaled(function(Function::absolute, {inside}), c);
}

Element Terms::sign(Element e) {
  if (const auto n = constant(e)) return rational(n->zero() ? 0 : n->numerator() < 0 ? -1 : 1);
  if (e == minus_infinity_) return rational(-1);
  if (sign_of(e, kSignDepth) == Sign::positive) return one_;
  const Element only[] = {e};
  if (is_table(e))
    if (const auto mapped = map(
            [](std::span<const Rational> v) {
              return Rational(v[0].zero() ? 0 : v[0].numerator() < 0 ? -1 : 1);
            },
            only))
      return *mapped;
  const Bare b = bare(e);
  const Element inside = of_product({1, b.monomial});
  const Element of = constant(inside) ? one_ : function(Function::sign, {inside});
  return multiply(b.conditions, scaled(of, Rational(b.sign)));
}

// step(b - a). Minus infinity is below all else, and not below itself.
Element Terms::less(Element a, Element b) {
  if (a == b || b == minus_infinity_) return zero_;
  if (a == minus_infinity_) return one_;
  return step(subtract(b, a));
}

// Not a < b, and not b < a. The product is a truth for is_truth(), and 1 only where a equals b.
Element Terms::equal(Element a, Element b) {
  if (a == b) return one_;
  if (a == minus_infinity_ || b == minus_infinity_) return zero_;
  const Element both[] = {a, b};
  if (is_table(a) && is_table(b))
    if (const auto mapped =
            map([](std::span<const Rational> v) { return Rational(v[0] == v[1]); }, both))
      return *mapped;
  return multiply(subtract(one_, less(a, b)), subtract(one_, less(b, a)));
}

Element Terms::sigmoid(Element e) {
  if (e == minus_infinity_) return zero_;
  return power(add(one_, exp(scaled(e, Rational(-1)))), Rational(-1));
}

// What is 0 or 1 whatever the tokens and the reals are. Steps count as free, which only loses some:
// step(x) + step(-x) is one, and is not seen to be. The cost: all parts, for each combination of
// steps and token values, of which there are at most kMost.
bool Terms::is_truth(Element e) const {
  std::vector<Atom> steps;
  std::vector<uint32_t> tokens;
  size_t cases = 1;
  constexpr size_t kMost = 4096;
  for (const Part& p : elements_[e])
    for (const Factor& f : monomials_[p.monomial]) {
      const AtomValue& v = atoms_[f.atom];
      if (f.exponent < 0) return false;
      if (is_step(v)) {
        if (std::find(steps.begin(), steps.end(), f.atom) != steps.end()) continue;
        steps.push_back(f.atom);
        cases *= 2;
      } else if (v.kind == AtomKind::indicator) {
        if (std::find(tokens.begin(), tokens.end(), v.first) != tokens.end()) continue;
        tokens.push_back(v.first);
        cases *= tokens_[v.first].size;
      } else if (v.kind == AtomKind::sum) {
        if (!is_truth(v.of) && !is_truth_negated(v.of)) return false;
        steps.push_back(f.atom);
        cases *= 2;
      } else {
        return false;
      }
      if (cases > kMost) return false;
    }
  for (size_t n = 0; n < cases; ++n) {
    size_t rest = n;
    std::vector<bool> holds;
    std::vector<size_t> values;
    for (size_t i = 0; i < steps.size(); ++i, rest /= 2) holds.push_back(rest % 2 == 1);
    for (uint32_t token : tokens) {
      values.push_back(rest % tokens_[token].size);
      rest /= tokens_[token].size;
    }
    Rational total(0);
    for (const Part& p : elements_[e]) {
      bool there = true;
      Rational by = p.factor;
      for (const Factor& f : monomials_[p.monomial]) {
        const AtomValue& v = atoms_[f.atom];
        if (v.kind == AtomKind::indicator) {
          const auto at = std::find(tokens.begin(), tokens.end(), v.first) - tokens.begin();
          there = there && values[static_cast<size_t>(at)] == v.second;
          continue;
        }
        const auto at = std::find(steps.begin(), steps.end(), f.atom) - steps.begin();
        there = there && holds[static_cast<size_t>(at)];
        // A sum whose negative is a truth is 0 or -1.
        if (v.kind == AtomKind::sum && !is_truth(v.of) && f.exponent % 2 != 0) by = -by;
      }
      if (there) total = total + by;
    }
    if (!total.zero() && total != Rational(1)) return false;
  }
  return true;
}

// primitive() makes step(x) - 1 of 1 - step(x), which is 0 or -1. Nothing is made here: where the
// negated sum was never made, the answer is no.
bool Terms::is_truth_negated(Element e) const {
  const PartList of = elements_[e];
  Parts parts(of.begin(), of.end());
  for (Part& p : parts) p.factor = -p.factor;
  const auto known = elements_.find(parts);
  return known && is_truth(*known);
}

}  // namespace opguard::proving
