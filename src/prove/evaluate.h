// prove/evaluate.h: what terms are at a point: numbers that tell two of them apart.
//
//   Point p(terms, 1);
//   p.number(a)    a in float64 and in 80 bits, and whether that says anything
//   p.met()        "w[0]" -> -1.25, "tokens[3]" -> 5
//
// Different numbers are a refutation, with met() as its witness. Equal numbers are nothing but a
// hint.
//
// Counterexample: step(x y) is decided by signs, so points of positive variables alone would not
// see its other half. So half of the points of a check have both signs.
//
// The cost: each element and each atom is computed once for a point, and kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "prove/terms.h"

namespace opguard::proving {

// What variables and tokens hold, by name: a list in logical order.
using Given = std::map<std::string, std::vector<double>>;

// A term's value, computed in float64 and in 80 bits. By how far the two are apart, rounding is
// seen at work. An interval would not do: it grows with the depth of a network until it says
// nothing.
struct Number {
  double value = 0;
  long double wide = 0;
  // A denominator that is zero, a root or a logarithm of what is not positive had a part in it. A
  // proof assumes that there is none.
  bool outside = false;

  // How far apart the two precisions are: what rounding has done so far, about.
  long double rounding() const { return value > wide ? value - wide : wide - value; }
};

// A point: every variable a multiple of 1/16 from the seed, from 1/8 to 15/8 in magnitude; every
// token a value. Or those that are given. Of positive variables alone few terms have no number. A
// number follows from the seed, the name and the position, so two sides see the same one.
class Point {
 public:
  // Where variables are small, no soft maximum is all of one of its parts.
  Point(const Terms& terms, uint64_t seed, bool positive = false, bool small = false)
      : terms_(terms), seed_(seed), positive_(positive), small_(small) {}
  Point(const Terms& terms, Given given) : terms_(terms), seed_(0), given_(std::move(given)) {}
  Number number(Element e);
  Number of_atom(Atom a) { return atom(a); }
  double value(Element e) { return number(e).value; }
  // The tokens and variables that were met, "tokens[3]" -> 5.
  const std::map<std::string, double>& met() const { return met_; }

 private:
  Number atom(Atom a);
  Number in_order(const Terms::Order& order, uint32_t value);
  uint64_t random(uint64_t kind, uint64_t first, uint64_t second) const;

  const Terms& terms_;
  uint64_t seed_;
  bool positive_ = false, small_ = false;
  Given given_;
  std::unordered_map<Element, Number> elements_;
  std::unordered_map<Atom, Number> atoms_;
  std::map<std::string, double> met_;
};

}  // namespace opguard::proving
