// prove/evaluate.h: what terms are at a point: numbers that tell two of them apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "prove/terms.h"

namespace opguard::proving {

// A point: every variable a number from seed, between 1/8 and 2 in magnitude; every token a value.
class Point {
 public:
  Point(const Terms& terms, uint64_t seed) : terms_(terms), seed_(seed) {}
  double value(Element e);
  // The tokens and variables that were met, "tokens[3]" -> 5.
  const std::map<std::string, double>& met() const { return met_; }

 private:
  double atom(Atom a);
  uint64_t random(uint64_t kind, uint64_t first, uint64_t second) const;

  const Terms& terms_;
  uint64_t seed_;
  std::unordered_map<Element, double> elements_;
  std::unordered_map<Atom, double> atoms_;
  std::map<std::string, double> met_;
};

}  // namespace opguard::proving
