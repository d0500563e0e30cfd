// prove/evaluate.h: what terms are at a point: numbers that tell two of them apart.
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

// A point: every variable a number from seed, between 1/8 and 2 in magnitude; every token a value.
// Or those that are given.
//
// A point may lie outside of what a proof rests on: a root of a negative variance. Torch has no
// number there. One of positive variables alone seldom does.
class Point {
 public:
  Point(const Terms& terms, uint64_t seed, bool positive = false)
      : terms_(terms), seed_(seed), positive_(positive) {}
  Point(const Terms& terms, Given given) : terms_(terms), seed_(0), given_(std::move(given)) {}
  double value(Element e);
  // The tokens and variables that were met, "tokens[3]" -> 5.
  const std::map<std::string, double>& met() const { return met_; }
  // A denominator that is zero, a root or a logarithm of what is not positive was met.
  bool outside() const { return outside_; }

 private:
  double atom(Atom a);
  uint64_t random(uint64_t kind, uint64_t first, uint64_t second) const;

  const Terms& terms_;
  uint64_t seed_;
  bool positive_ = false, outside_ = false;
  Given given_;
  std::unordered_map<Element, double> elements_;
  std::unordered_map<Atom, double> atoms_;
  std::map<std::string, double> met_;
};

}  // namespace opguard::proving
