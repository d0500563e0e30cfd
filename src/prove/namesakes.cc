// Elements are found by a ratio: what they are at the second point over what they are at the first.
// A factor drops out of it, so 2 s and s / 3 are found where s is kept. The other points and a
// proof decide.
//
//   s at the points    0.5  1.5  ...     ratio 3
//   2 s                1.0  3.0  ...     ratio 3, factor 2
#include "prove/namesakes.h"

#include <cmath>
#include <limits>

namespace opguard::proving {
namespace {

constexpr uint64_t kFirstSeed = 101;
constexpr Element kMostElements = 2'000'000;
constexpr long double kEqual = 1e-9L;  // of the larger
constexpr int kTries = 4;
constexpr uint64_t kMostEffort = 4'000'000;  // of Terms::effort_spent(): some ten seconds

bool near(long double a, long double b) {
  return std::fabs(a - b) <= kEqual * (std::fabs(a) + std::fabs(b));
}

// The fraction with a small denominator that a number is. None for 0.7071...: a factor that is no
// fraction is not looked for.
std::optional<Rational> short_fraction(long double x) {
  constexpr int64_t kLongest = 4096;
  for (int64_t q = 1; q <= kLongest; ++q) {
    const long double p = x * static_cast<long double>(q), whole = std::round(p);
    if (std::fabs(whole) > 1e12L) return {};
    if (whole != 0 && near(p, whole)) return Rational(static_cast<int64_t>(whole), q);
  }
  return {};
}

}  // namespace

Namesakes::Namesakes(Terms& terms, Element model_end) : terms_(terms), model_end_(model_end) {
  if (model_end > kMostElements) return;
  // Of positive variables all have numbers. Of others as many pieces of a maximum are seen.
  for (uint64_t i = 0; i < kPoints; ++i)
    points_.emplace_back(terms, kFirstSeed + i, i < kPoints / 2, true);
  for (Element e = 0; e < model_end; ++e)
    if (const auto v = values_of(e)) by_ratio_.emplace((*v)[1] / (*v)[0], e);
}

// None of what is zero or infinite at the first point: nothing is told by it.
std::optional<Namesakes::Values> Namesakes::values_of(Element e) {
  if (e == terms_.minus_infinity()) return {};
  Values values;
  for (size_t i = 0; i < kPoints; ++i) {
    const Number n = points_[i].number(e);
    values[i] = n.outside ? std::numeric_limits<long double>::quiet_NaN() : n.wide;
  }
  if (values[0] == 0 || !std::isfinite(values[1] / values[0])) return {};
  return values;
}

// Up to kTries elements that look alike are asked about. Unlike numbers cost nothing but the
// comparing.
std::optional<std::pair<Element, Rational>> Namesakes::equal_to(Element e) {
  if (terms_.effort_spent() > kMostEffort) return {};
  const auto own = values_of(e);
  if (!own) return {};
  const long double ratio = (*own)[1] / (*own)[0], margin = kEqual * 2 * std::fabs(ratio);
  int tries = 0;
  for (auto at = by_ratio_.lower_bound(ratio - margin);
       at != by_ratio_.end() && at->first <= ratio + margin && tries < kTries; ++at) {
    const Values v = *values_of(at->second);
    bool alike = true;  // where both have a number
    for (size_t i = 2; i < kPoints; ++i) {
      const long double x = v[i] * (*own)[0], y = (*own)[i] * v[0];
      alike &= std::isnan(x) || std::isnan(y) || near(x, y);
    }
    if (!alike) continue;
    const auto factor = short_fraction((*own)[0] / v[0]);
    if (!factor) continue;
    ++tries;
    const bool equal = terms_.same_by_products(e, terms_.scaled(at->second, *factor));
    if (equal) return std::pair(at->second, *factor);
  }
  return {};
}

// Sums within products, one by one.
Element Namesakes::with_known_sums(Element e) {
  const PartList parts = terms_.parts(e);
  std::vector<Element> all;
  bool changed = false;
  for (const Part& part : parts) {
    Element product = terms_.made(Sum{{0, part.factor}});
    const FactorList factors = terms_.factors(part.monomial);
    for (const Factor& f : factors) {
      const AtomValue atom = terms_.atom(f.atom);
      Element base = terms_.of_atom(f.atom);
      if (atom.kind == AtomKind::sum && atom.of >= model_end_)
        if (const Element known = of(atom.of); known != atom.of) {
          base = known;
          changed = true;
        }
      product = terms_.multiply(product, terms_.power(base, Rational(f.exponent)));
    }
    all.push_back(product);
  }
  return changed ? terms_.sum(all) : e;
}

Element Namesakes::of(Element e) {
  if (e < model_end_ || points_.empty()) return e;
  if (const auto known = found_.find(e); known != found_.end()) return known->second;
  Element result = e;
  try {
    result = with_known_sums(e);
    if (result >= model_end_)
      if (const auto equal = equal_to(result)) result = terms_.scaled(equal->first, equal->second);
  } catch (const Unprovable&) {  // a coefficient too long on the way: it stays as it is
  }
  found_[e] = result;
  return result;
}

}  // namespace opguard::proving
